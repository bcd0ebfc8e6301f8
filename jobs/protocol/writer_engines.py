"""Which engines write a table, by what they leave on it, and what must not be done beside them.

Flink 1.20 with Hudi 1.2: a task looks its file ids up once and keeps them, its instant is open for a moment at each
checkpoint only, and what is rolled back or conflicts is lost, since the checkpoint it belongs to is done.

Spark SQL: `UPDATE` and `DELETE` read the rows first. On a table with a hashing config that read loses rows wherever the
bucket index prunes (`PartitionBucketIndexSupport.computeCandidateFileNames` takes "any bucket" for "none"), so that the
statement commits without them; unless `hoodie.bucket.index.query.pruning` is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import Problem, WriterEngine
from jobs.hudi import hashing_config

if TYPE_CHECKING:
    from jobs.contract import WorkOrder
    from jobs.hudi.table import HudiTable

PRUNING = "hoodie.bucket.index.query.pruning"
# `WriteOperationType`s of statements that carry the locations of rows which they have read.
PREPPED = frozenset({"UPSERT_PREPPED", "DELETE_PREPPED"})


def of_running_flink(table: HudiTable, order: WorkOrder) -> list[Problem]:
    """Why file groups of this table cannot be replaced now: a Flink job may be running."""
    if table.declared.writers_stopped or order.writers_stopped:
        return []
    because = table.may_have_flink
    if because is None:
        return []
    return [
        Problem(
            "flink-may-be-running",
            "A Flink job keeps the file groups and the number of buckets that it has read; it has to be stopped first",
            because,
            "Stop it with a savepoint and tell the job so (POST /v1/jobs/{id}/writers-stopped), or declare what writes "
            'the table: PATCH it with `{"writers": {"engines": ["spark"], ...}}` if no Flink job does any more.',
            retriable=True,
        )
    ]


def of_sql_statements(table: HudiTable) -> list[Problem]:
    """Why this table must not get its first hashing config: it is written by statements that this breaks.

    None if the owner has taken the remedy (`writers.query_pruning_off`), or if the table has a config already.
    """
    if table.declared.writers_query_pruning_off or hashing_config.is_in_force(table):
        return []
    seen = [commit.write for commit in table.commits() if commit.write.operation in PREPPED]
    if not seen and WriterEngine.SPARK_SQL not in table.declared.writers_engines:
        return []
    told = f"{seen[-1].instant} was {seen[-1].operation}" if seen else "Spark SQL is declared to be among its writers"
    return [
        Problem(
            "sql-statements-lose-rows",
            "On a table with more buckets than it was made with, Spark SQL's UPDATE, DELETE and SELECT miss rows",
            f"{told} (Hudi 1.2, PartitionBucketIndexSupport)",
            f"Set {PRUNING}=false for every session that reads or writes the table by SQL (SET, or spark.{PRUNING} in "
            f"the session's conf) or for the table (ALTER TABLE ... SET TBLPROPERTIES ('{PRUNING}'='false')), and say "
            'so: PATCH the table with `{"writers": {"query_pruning_off": true, ...}}`.',
        )
    ]
