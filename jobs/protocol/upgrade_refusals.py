"""Refusals of a change of the table's version, and of other jobs while such a change is unfinished."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.contract import Problem, WorkOrder
from jobs.errors import WritersActiveError
from jobs.format.hudi_versions import OLDEST_FOR_TABLE, release
from jobs.format.stale_writes import RESCALE
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import upgrade_backup
from jobs.hudi.client import WriteClient
from jobs.hudi.file_times import times_in
from jobs.hudi.heartbeats import has_expired
from jobs.hudi.merging import TAKING_THE_NEWER, merging_of
from jobs.hudi.records import COMPACTION
from jobs.hudi.savepoints import savepoints_of
from jobs.hudi.table import HudiTable
from jobs.kinds.upgrade import UpgradeParams
from jobs.problems.upgrades import (
    HUDI_TOO_OLD_FOR_VERSION,
    UPGRADE_NOT_PROVED,
    UPGRADE_UNFINISHED,
    VERSION_NOT_OFFERED,
    VERSIONS_NOT_DECLARED,
)
from jobs.protocol import left_plans, missing_parts, older_hudi, preflight
from jobs.protocol.writers import dead_writes

_BUCKET_RESCALE_SINCE = 9


def needed(version: int) -> str:
    """Returns the oldest Hudi that reads and writes this table version, such as `1.1`."""
    return ".".join(map(str, OLDEST_FOR_TABLE[version]))


def excluded(table: HudiTable, version: int) -> list[str]:
    """Returns the declared writers and readers that cannot use this table version, in words for users."""
    declared = table.declared
    users = (("writers", declared.writers_hudi_version), ("readers", declared.readers_hudi_version))
    return [f"{who}: Hudi {hudi}" for who, hudi in users if hudi and release(hudi) < OLDEST_FOR_TABLE[version]]


def of_change(table: HudiTable, client: WriteClient, order: WorkOrder[UpgradeParams]) -> list[Problem]:
    """Returns all reasons why the version cannot be changed now."""
    to = order.params.to_version
    if to not in OLDEST_FOR_TABLE:
        return [VERSION_NOT_OFFERED.because(f"version {to}")]
    problems = [*preflight.writers_not_stopped(table, order), *preflight.of_lock(table), *_of_users(table, order)]
    problems += [UPGRADE_NOT_PROVED.because(detail) for detail in _not_proved(table, client, to)]
    problems += preflight.misplaced_rows(
        table.commits(), "Rows of the table are in files that no reader sees; repair them first"
    )
    return problems + missing_parts.missing(table, order.kind) + busy(table, client)


def busy(table: HudiTable, client: WriteClient, *, compacted: bool = False) -> list[Problem]:
    """Returns the refusal because of pending instants, or of writers that are about to begin one. The job itself rolls
    dead writers back and executes pending compactions, whose unfinished rollbacks Hudi finishes then. Once it has done
    so (`compacted`), these rollbacks, pending compactions and logs are reasons as well."""
    ended = set() if compacted else {*dead_writes(table, client), *_rollbacks_of_compactions(table, client)}
    pending = [item for item in table.instants() if item.state != "COMPLETED" and item.requested not in ended]
    plans = [item for item in pending if table.is_plan(item)]
    found = [f"{item.requested} ({item.action}, {item.state.lower()})" for item in pending if item not in plans]
    known = {item.requested for item in table.instants()}
    heartbeats = times_in(table, ".hoodie/.heartbeat").keys() - known
    found += [f"{each} (a heartbeat)" for each in sorted(heartbeats) if not has_expired(table, each)]
    if compacted:
        found += [f"logs of {item.file_id}" for item in table.file_slices() if item.log_files]
    problems = []
    if found:
        title = "Something is in flight on the table"
        hint = "Wait until it has ended, or run a `cleaning` or a `rollback` if its writer is dead."
        problems.append(WritersActiveError.because(", ".join(found[:5]), title=title, hint=hint, retriable=True))
    if left := [item for item in plans if compacted or item.action != COMPACTION or not table.is_merge_on_read]:
        held = left_plans.described(table, left)
        problems.append(left_plans.refusal(table, held, title="A table service is pending"))
    return problems


def _rollbacks_of_compactions(table: HudiTable, client: WriteClient) -> list[str]:
    pending = {item.requested for item in table.pending() if item.action == COMPACTION}
    return [each for each, instant in client.pending_rollbacks().items() if instant in pending] if pending else []


def while_unfinished(table: HudiTable) -> list[Problem]:
    """Returns the refusal of every other job while a change of the version has not ended."""
    backup = upgrade_backup.unfinished(table)
    if backup is None:
        return []
    return [UPGRADE_UNFINISHED.because(f"from version {backup.from_version} to {backup.to_version}, by {backup.owner}")]


def _of_users(table: HudiTable, order: WorkOrder[UpgradeParams]) -> Iterator[Problem]:
    to, declared = order.params.to_version, table.declared
    if found := excluded(table, to):
        yield HUDI_TOO_OLD_FOR_VERSION.because(f"version {to} needs Hudi {needed(to)}; declared {', '.join(found)}")
    elif to > table.version and (older := older_hudi.seen_before_1_0(table, 1)):
        # The last write shows which Hudi writes, whatever is declared.
        yield HUDI_TOO_OLD_FOR_VERSION.because(f"version {to} needs Hudi {needed(to)}; {older}")
    versions = {"writers": declared.writers_hudi_version, "readers": declared.readers_hudi_version}
    if not order.params.undeclared and not all(versions.values()):
        shown = ", ".join(f"{who}: {version or 'not declared'}" for who, version in versions.items())
        yield VERSIONS_NOT_DECLARED.because(shown)


def _not_proved(table: HudiTable, client: WriteClient, to: int) -> Iterator[str]:
    """Yields the features of the table that are not proved to survive Hudi's upgrader, in words for users."""
    properties = table.properties
    if table.scheme not in ("file", "s3a"):
        yield f"a table on {table.scheme}: it was tried on local disks and S3"
    elif table.scheme != "file" and min(table.version, to) < WITH_COMPLETION_TIMES:
        yield f"version {min(table.version, to)} on {table.scheme}: restored files there do not get their old times"
    if savepoints := savepoints_of(table):
        yield f"a savepoint of {savepoints[0].instant}: a restore to it would cross the change of the version"
    merging = merging_of(table)
    if merging.mode == "CUSTOM" or (unknown := sorted(merging.payloads - TAKING_THE_NEWER)):
        name = "a custom merge mode" if merging.mode == "CUSTOM" else ", ".join(unknown)
        yield f"rows merged by {name}: other versions may merge them differently"
    if to != table.version and to >= WITH_COMPLETION_TIMES:
        mode = client.upgrader.rehearse(to).get("hoodie.record.merge.mode", (None, None))[1]
        if mode and mode != merging.mode:
            yield f"rows are merged by {merging.mode} now, and would be merged by {mode} afterwards"
    if client.upgrader.has_ambiguous_keys():
        yield "a complex key generator with one field: versions of Hudi write its keys differently (Hudi #14164)"
    if table.records_changes:
        yield "change data capture: its log files were not tried"
    if table.has_consistent_hashing():
        yield "a consistent-hashing bucket index: its files were not tried"
    if "hoodie.bootstrap.base.path" in properties:
        yield "a bootstrapped table: its base files are elsewhere"
    if to < WITH_COMPLETION_TIMES and len(table.ordering_fields) > 1:
        yield f"{len(table.ordering_fields)} ordering fields: version {to} has one"
    if to < _BUCKET_RESCALE_SINCE:
        rescales = [
            each.write.instant
            for each in table.commits()
            if each.write.operation == RESCALE and "groundskeeper.rescaled" not in each.extra
        ]
        if rescales:
            yield f"{rescales[0]} was a BUCKET_RESCALE of Hudi, which Hudi before 1.1 cannot read"
