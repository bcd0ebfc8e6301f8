"""Chooses the stale writes that a repair recovers. The others are left alone, or only marked as repaired."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from jobs.contract import Problem
from jobs.errors import RefusedError
from jobs.format import kafka_connect
from jobs.format.stale_writes import Doubt, StaleWrite, stale_writes
from jobs.hudi import hash_ranges, history, rows
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.records import Commit
from jobs.hudi.table import HudiTable
from jobs.kinds.repair import RepairParams, RepairResult
from jobs.problems.tables import ROWS_THERE_TWICE
from jobs.protocol import preflight
from jobs.services import groups_without_bucket, later_overwrites

_LOOKING_FOR_KEYS = frozenset({"UPSERT", "UPSERT_PREPPED", kafka_connect.OPERATION})


def chosen(
    table: HudiTable, named: Collection[str], waived: Collection[str]
) -> tuple[list[StaleWrite], list[StaleWrite], list[Commit]]:
    """Returns the stale writes to repair, the stale writes to leave alone, and the commits as far back as needed.
    Archived writes are included only if they are named or waived. All writes to file groups without a bucket are
    repaired, if such a file group is in a partition to which the repair writes, or if an earlier repair has taken one
    out of use. A proved write that is not named is left alone only if it is `waived` and no job could recover its rows.
    Raises RefusedError if a named or waived write is neither on the timeline nor in the history."""
    past = history.past_since(table, {*named, *waived}, replacing=True)
    history.require_known(table, {*named, *waived}, past)
    commits = past.commits
    archived = {commit.write.instant for commit in commits if commit.write.is_archived}
    every = stale_writes((commit.write for commit in commits), misdated=misdated_instants(table, table.clock.frame))
    stale = [write for write in every if write.instant not in archived or write.instant in {*named, *waived}]
    # Once an overwrite is archived, readers see again the file groups that it replaced, with only the rows of later
    # writes. An interrupted repair may have taken these file groups out of use; then readers do not see them.
    unseen = groups_without_bucket.left_out(commits)
    seen = [
        each
        for each in stale
        if each.doubt is Doubt.OVERWRITTEN and archived.issuperset(each.groups.values()) and each.instant not in unseen
    ]
    if seen and not _has_second_rows(table, [each for each in seen if each.instant in named]):
        stale = [each for each in stale if each not in seen or each.instant in waived]
    enough = {None} if named else {None, Doubt.ORDER, Doubt.CLOCKS}
    only_marks = bool(waived) and bool(preflight.of_recovered_rows(table))
    due = {
        write.instant: write
        for write in stale
        if write.instant in named
        or (
            (write.doubt in enough or groups_without_bucket.dropped([write], commits))
            and not ((only_marks or write.doubt is not None) and write.instant in waived)
            and write.instant not in archived
        )
    }
    left = [write for write in stale if write.instant not in due]
    on_timeline = [commit for commit in commits if not commit.write.is_archived]
    for write in groups_without_bucket.writes_to_groups(table, on_timeline, {*due, *named}):
        known = due.get(write.instant, write)
        due[write.instant] = replace(known, groups={**write.groups, **known.groups})
    return list(due.values()), left, commits


def planned(table: HudiTable, params: RepairParams) -> RepairResult:
    """Returns the result of a dry run."""
    suspects = params.instants or ()
    problems = preflight.of_repair(table)
    try:
        stale, left, commits = chosen(table, suspects, params.accepted or ())
        problems += not_recoverable(table, params, suspects)
    except RefusedError as error:
        return RepairResult(refusals=(*problems, *error.reasons))
    problems += [*later_overwrites.hidden_by_themselves(stale), *groups_without_bucket.of_other_rows(table, stale)]
    due = tuple(write.instant for write in stale)
    return RepairResult(
        refusals=tuple(problems),
        stale=due,
        left=tuple(write.instant for write in left),
        suspects=tuple(instant for instant in suspects if instant not in due),
        file_groups=sum(len(write.groups) for write in stale),
        nothing_to_do=not (stale or suspects or hash_ranges.out_of_use(table, commits)),
    )


def not_harmless(table: HudiTable, instants: Collection[str], commits: Sequence[Commit]) -> list[Problem]:
    """Returns the refusal to mark these writes as harmless; none of them is stale. The refusal is for a table without
    buckets, if a write that looks up its keys (such as an upsert) has written keys that have rows in other file groups,
    too."""
    written = {each.write.instant: each.write for each in commits if each.write.operation in _LOOKING_FOR_KEYS}
    looking = [written[each] for each in instants if each in written] if table.bucket_rules() is None else []
    paths = {path for each in looking for path, _ in each.written}
    found = rows.rows_there_twice(table, {each.instant for each in looking}, paths)
    texts = [f"{count} keys of {instant}" for instant, count in sorted(found.items())]
    return [ROWS_THERE_TWICE.because(", ".join(texts))] if texts else []


def _has_second_rows(table: HudiTable, writes: Sequence[StaleWrite]) -> bool:
    """Returns whether keys of these writes have rows in other file groups as well. A writer that still used the file
    ids from before the overwrite has not found the rows that came since."""
    partitions = {path for write in writes for path, _ in write.groups}
    return bool(rows.rows_there_twice(table, {write.instant for write in writes}, partitions))


def not_recoverable(table: HudiTable, params: RepairParams, named: Collection[str]) -> list[Problem]:
    """Returns the refusals to recover rows, unless the job only marks writes as repaired."""
    problems = preflight.of_recovered_rows(table)
    if not problems or not params.accepted or named:
        return problems
    due, _, _ = chosen(table, named, params.accepted)
    return problems if due else []
