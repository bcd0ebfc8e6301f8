"""Consumers of a table: readers that go on from the last commit that they have seen. Cleaning keeps what they need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from jobs.contract import CleaningPolicy, Problem
from jobs.format.instants import wall_clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from jobs.hudi.records import Commit


def first_needed(commits: Sequence[Commit], consumers: Sequence[Mapping[str, Any]]) -> int | None:
    """Returns the place of the commit that the consumer furthest behind has seen; None without consumers.

    `commits` are in the order of completion. The table as of that commit is needed, and all that came after. An instant
    that is none of these commits counts as the last one before all that began later.
    """
    places = [_place(commits, str(each["instant"])) for each in consumers]
    return min(places, default=None) if commits else None


def _place(commits: Sequence[Commit], seen: str) -> int:
    for place, commit in enumerate(commits):
        if commit.write.instant == seen:
            return place
    later = [place for place, commit in enumerate(commits) if commit.write.instant > seen]
    return max(min(later, default=len(commits)) - 1, 0)


def retention(
    policy: CleaningPolicy, retained: int, commits: Sequence[Commit], needed: int | None, now: datetime
) -> int:
    """Returns the number of commits, hours or file versions for Hudi's cleaner with which nothing needed is deleted.

    `now` is in the time zone of the instants.
    """
    if needed is None:
        return retained
    first = min(commit.write.instant for commit in commits[needed:])
    match policy:
        case CleaningPolicy.KEEP_LATEST_COMMITS:
            # Hudi counts back by the times at which commits began.
            least = sum(commit.write.instant >= first for commit in commits)
        case CleaningPolicy.KEEP_LATEST_BY_HOURS:
            least = math.ceil((now - wall_clock(first)).total_seconds() / 3600) + 1
        case CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
            # At most one version of a file group for each commit, and the one before.
            least = len(commits) - needed + 1
    return max(retained, least)


def behind_replacements(policy: CleaningPolicy, commits: Sequence[Commit], needed: int | None) -> list[Problem]:
    """Returns the refusal to clean by file versions beside a consumer that has not seen the last replacement.

    Hudi (1.2) then deletes replaced file groups at once (`CleanPlanner.getFilesToCleanKeepingLatestVersions`).
    """
    if needed is None or policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
        return []
    replacing = [commit.write.instant for commit in commits[needed + 1 :] if commit.write.replaced]
    if not replacing:
        return []
    return [
        Problem(
            "consumer-behind",
            "A consumer has not seen the commits that replaced file groups, and may need these",
            ", ".join(replacing[:5]),
            "Wait for the consumer, delete it, or clean by commits or hours.",
            retriable=True,
        )
    ]
