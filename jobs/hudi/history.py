"""Commits that have left the active timeline.

Archivers of Hudi (1.2.0) move the oldest instants first. But a savepoint may keep an older instant on the active
timeline, and an instant that was in flight may have completed later than archived ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jobs.errors import HudiError, refuse
from jobs.hudi import hashing_config
from jobs.hudi.commit_order import in_order
from jobs.hudi.jvm import translated
from jobs.hudi.records import Commit, commit_of
from jobs.hudi.rows import count_of_instants
from jobs.hudi.table import HudiTable
from jobs.problems.tables import HISTORY_INCOMPLETE, INSTANTS_UNKNOWN

# The text sorts after all instants.
_NO_INSTANT = "9" * 20


@dataclass(frozen=True)
class Past:
    """The commits of the active timeline and, if they were needed, older ones of the history, in the order of
    completion. `unknown_before`: commits that were requested before this instant may be missing; "" if none is.
    `because` says why if the history cannot be read."""

    commits: list[Commit]
    unknown_before: str = ""
    because: str = ""


def past_since(table: HudiTable, instants: Collection[str], *, replacing: bool = False) -> Past:
    """Returns the commits since the first of these instants, or since the last change of the number of buckets before
    it. If the active timeline has all these instants, only its commits are returned. If `replacing`, also returns all
    commits that replaced file groups, for which the whole history is read."""
    active = table.commits()
    gone = _not_among(active, instants)
    if not gone and not (replacing and instants):
        return Past(active)
    first = min((each.write.instant for each in active), default="")
    since = min([*gone, *filter(None, [hashing_config.last_change(table)])]) if gone else _NO_INSTANT
    try:
        found = _with_archived(table, active, since, replacing=replacing)
        cut_off = table.damage_of_history() if gone else ""
    except HudiError as error:
        return Past(active, first if gone else "", error.detail)
    return Past(found, first if cut_off or _not_among(found, gone) else "", cut_off)


def since_last_change(table: HudiTable) -> list[Commit]:
    """Returns the commits of the active timeline, and those of the history since the last change of the number of
    buckets, in the order of completion. Raises HudiError if the history cannot be read."""
    active, since = table.commits(), hashing_config.last_change(table)
    return active if since is None else _with_archived(table, active, since)


def require_known(table: HudiTable, instants: Collection[str], past: Past) -> None:
    """Raises RefusedError if one of these instants is no commit on the table's timeline or in its history, whether the
    table has rows of it or not. Those that the timeline names as rolled back are known."""
    unknown = _not_among(past.commits, instants)
    because = f": {past.because}" if past.because else ""
    if counts := count_of_instants(table, unknown, in_logs=True):
        found = f"{sum(counts.values())} rows of {', '.join(sorted(counts)[:5])}"
        refuse([HISTORY_INCOMPLETE.because(f"{found}{because}")])
    if nowhere := sorted({*unknown} - table.rollbacks().keys()):
        refuse([INSTANTS_UNKNOWN.because(f"{', '.join(nowhere)}{because}")])


def archived_among(table: HudiTable, instants: Collection[str]) -> set[str]:
    """Returns which of these instants are commits of the history; none if the history cannot be read."""
    if not instants:
        return set()
    try:
        found = _archived(table, min(instants), replacing=False)
    except HudiError:
        return set()
    return {each.write.instant for each in found} & {*instants}


def _not_among(commits: Sequence[Commit], instants: Collection[str]) -> list[str]:
    known = {each.write.instant for each in commits}
    return [each for each in instants if each not in known]


def _with_archived(table: HudiTable, active: list[Commit], since: str, *, replacing: bool = False) -> list[Commit]:
    # An archiver that died may have left instants on the active timeline that the history has, too.
    on_timeline = {each.write.instant for each in active}
    old = [each for each in _archived(table, since, replacing=replacing) if each.write.instant not in on_timeline]
    return in_order(table, [*old, *active])


def _archived(table: HudiTable, since: str, *, replacing: bool) -> list[Commit]:
    with translated("reading the archived timeline"):
        listed = json.loads(table.jvm.reads.archivedCommits(table.meta, since, replacing))
    found = {requested: commit_of(requested, completed or "", record) for requested, completed, record in listed}
    return [replace(each, write=replace(each.write, is_archived=True)) for each in found.values()]
