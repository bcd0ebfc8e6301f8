"""Refusals because of the engines that write a table, which their marks show or the owner has declared.

Flink 1.20 with Hudi 1.2: a task reads its file ids once and keeps them. If it has a state index (`FLINK_STATE`, the
default), savepoints and checkpoints keep the file ids even after the task has ended. A task has an instant in flight
only briefly at each checkpoint. Rows that are rolled back or conflict are lost, because their checkpoint is complete.

Spark SQL: `UPDATE` and `DELETE` read the rows first. On a table with a hashing config this first read loses rows
wherever the bucket index prunes (`PartitionBucketIndexSupport.computeCandidateFileNames` confuses "any bucket" with
"none"), so the statement commits without them. `hoodie.bucket.index.query.pruning=false` prevents this.
"""

from __future__ import annotations

from collections.abc import Container

from jobs.contract import Problem, WorkOrder, WriterEngine
from jobs.hudi import hashing_config
from jobs.hudi.table import HudiTable
from jobs.problems.rescales import FLINK_MAY_BE_RUNNING, SQL_STATEMENTS_LOSE_ROWS

PRUNING = "hoodie.bucket.index.query.pruning"
# `WriteOperationType`s of statements that carry the locations of the rows they have read.
_PREPPED = frozenset({"UPSERT_PREPPED", "DELETE_PREPPED"})


def of_running_flink(table: HudiTable, order: WorkOrder) -> list[Problem]:
    """Returns the reasons why file groups of this table cannot be replaced now: a Flink job may be running."""
    if table.declared.writers_stopped or order.writers_stopped:
        return []
    evidence = table.may_have_flink
    if evidence is None:
        return []
    if table.declared.index is None:
        title = "A Flink job keeps the file group of each key in its state; stop it first"
        stop = 'Stop it, confirm that with `{"restart": "without-state"}` (POST /v1/jobs/{id}/writers-stopped), and'
        stop += " start it afterwards without that state, that is, not from its savepoint"
    else:
        title = "A Flink job keeps using the file groups and the number of buckets that it has read; stop it first"
        stop = "Stop it with a savepoint and confirm that for the job (POST /v1/jobs/{id}/writers-stopped)"
    other = 'if no Flink job writes the table any more, PATCH it with `{"writers": {"engines": ["spark"], ...}}`'
    return [FLINK_MAY_BE_RUNNING.because(evidence, title=title, hint=f"{stop}; or, {other}.")]


def of_flink_meanwhile(table: HudiTable, known: Container[str]) -> list[Problem]:
    """Returns the refusal to replace file groups if Flink has made a commit that is not among the `known` instants, and
    certainly runs, whatever anybody has declared. A job commits at each checkpoint, also without rows."""
    if not (found := table.flink_commits(known)):
        return []
    evidence = f"{', '.join(found[:5])}: committed by Flink since this attempt began"
    title = "A Flink job is running, although the writers count as stopped; stop it first"
    hint = "Stop each Flink job that writes this table, with a savepoint, and confirm that for the job (POST"
    hint += " /v1/jobs/{id}/writers-stopped). Nothing was changed."
    return [FLINK_MAY_BE_RUNNING.because(evidence, title=title, hint=hint)]


def of_flink_with_ranges(evidence: str | None) -> list[Problem]:
    """Returns the refusal to change the ranges of consistent hashing of a table that Flink may write. Neither a second
    attempt nor a stop of Flink can avoid it."""
    if evidence is None:
        return []
    title = "A Flink job may not go on with new ranges"
    hint = 'If no Flink job writes the table any more, PATCH it with `{"writers": {"engines": ["spark"], ...}}`.'
    return [FLINK_MAY_BE_RUNNING.because(evidence, title=title, hint=hint, retriable=False)]


def of_sql_statements(table: HudiTable) -> list[Problem]:
    """Returns the reasons why this table must not get its first hashing config: Spark SQL statements that would lose
    rows. Empty if the owner has declared the remedy (`writers.query_pruning_off`), or if the table has a config
    already."""
    if table.declared.writers_query_pruning_off or hashing_config.is_in_force(table):
        return []
    evidence = evidence_of_statements(table)
    if evidence is None:
        return []
    return [
        SQL_STATEMENTS_LOSE_ROWS.because(
            f"{evidence} (Hudi 1.2, PartitionBucketIndexSupport)",
            hint=f"Set {PRUNING}=false for every session that reads or writes the table by SQL (SET, or spark.{PRUNING}"
            f" in the session's conf) or for the table (ALTER TABLE ... SET TBLPROPERTIES ('{PRUNING}'='false')), and "
            'declare it: PATCH the table with `{"writers": {"query_pruning_off": true, ...}}`.',
        )
    ]


def evidence_of_statements(table: HudiTable) -> str | None:
    """Returns why Spark SQL statements may change this table, or None."""
    seen = [commit.write for commit in table.commits() if commit.write.operation in _PREPPED]
    if seen:
        return f"{seen[-1].instant} was {seen[-1].operation}"
    return "Spark SQL is a declared writer" if WriterEngine.SPARK_SQL in table.declared.writers_engines else None
