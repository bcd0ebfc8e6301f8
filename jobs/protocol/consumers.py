"""Consumers of a table: incremental readers that continue from the last commit that they have read. Cleaning keeps the
files that they need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from jobs.contract import Problem
from jobs.format import plan_files
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.instants import wall_clock
from jobs.format.plan_files import File
from jobs.hudi.plans import pending_plans
from jobs.hudi.records import Commit
from jobs.hudi.table import HudiTable
from jobs.job_params import CleaningPolicy
from jobs.kinds.cleaning import Consumer
from jobs.problems.plans import CLEAN_DELETES_FILES_OF_CONSUMER, CONSUMER_BEHIND


def first_needed(commits: Sequence[Commit], consumers: Sequence[Consumer]) -> int | None:
    """Returns the index in `commits` of the commit that the slowest consumer has read; None if there are no consumers.
    `commits` are in the order of completion. Consumers need the table as of that commit, and all later commits. If a
    consumer's instant is not among the commits, the commit before the first later one counts."""
    places = [_place(commits, each.instant) for each in consumers]
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
    """Returns the number of commits, hours or file versions to retain so that Hudi's cleaner deletes nothing that is
    needed.

    `now` is in the time zone of the instants.
    """
    if needed is None:
        return retained
    first = min(commit.write.instant for commit in commits[needed:])
    match policy:
        case CleaningPolicy.KEEP_LATEST_COMMITS:
            # Hudi counts back by the start times of commits.
            least = sum(commit.write.instant >= first for commit in commits)
        case CleaningPolicy.KEEP_LATEST_BY_HOURS:
            least = math.ceil((now - wall_clock(first)).total_seconds() / 3600) + 1
        case CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
            # A file group has at most one version for each of these commits, and one older version.
            least = len(commits) - needed + 1
    return max(retained, least)


def behind_replacements(policy: CleaningPolicy, commits: Sequence[Commit], needed: int | None) -> list[Problem]:
    """Returns the refusal to clean by file versions while a consumer has not read the last replacement.

    Hudi (1.2) then deletes replaced file groups at once (`CleanPlanner.getFilesToCleanKeepingLatestVersions`).
    """
    if needed is None or policy is not CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
        return []
    replacing = [commit.write.instant for commit in commits[needed + 1 :] if commit.write.replaced]
    if not replacing:
        return []
    return [
        CONSUMER_BEHIND.because(
            ", ".join(replacing[:5]),
            title="A consumer has not seen the commits that replaced file groups, and may need the replaced ones",
            hint="Wait for the consumer, delete it, or clean by commits or hours.",
        )
    ]


def pending_cleans(table: HudiTable, consumers: Sequence[Consumer]) -> list[Problem]:
    """Returns the refusals of pending cleans that delete files which a consumer needs, because their planners did not
    know the consumer."""
    if not consumers:
        return []
    commits = table.commits()
    needed = first_needed(commits, consumers)
    if needed is None:
        return []
    problems = []
    for plan in pending_plans(table, frozenset({"clean"})):
        files = sorted(files_needed(commits, needed, plan_files.deleted_by(plan.content)))
        if files:
            named = ", ".join("/".join(part for part in file if part) for file in files[:5])
            more = f" and {len(files) - 5} more" if len(files) > 5 else ""
            behind = [each.name for each in consumers if _place(commits, each.instant) == needed]
            problems.append(
                CLEAN_DELETES_FILES_OF_CONSUMER.because(
                    f"clean {plan.instant} deletes, needed by {', '.join(behind)}: {named}{more}"
                )
            )
    return problems


def files_needed(commits: Sequence[Commit], needed: int, files: Iterable[File]) -> set[File]:
    """Returns the files that belong to the table after commit number `needed`, or at any later time.

    `commits` are all of the active timeline, in the order of completion. A file was current until a later base file of
    its file group was committed, or the group was replaced.
    """
    written = {name for commit in commits for name in commit.file_names}
    first = min((commit.write.instant for commit in commits), default="")
    found = set()
    for partition, name in files:
        parsed = parse_base_file_name(name) or parse_log_file_name(name)
        # Consumers have read nothing of a write that has not completed.
        if parsed is None or (name not in written and parsed.instant >= first):
            continue
        group = (partition, parsed.file_id)
        ends = (place for place, commit in enumerate(commits) if _supersedes(commit, group, parsed.instant))
        if next(ends, -1) > needed:
            found.add((partition, name))
    return found


def _supersedes(commit: Commit, group: tuple[str, str], instant: str) -> bool:
    """Returns whether this commit replaced the file group, or wrote a base file for it later than at `instant`."""
    if group in commit.write.replaced:
        return True
    paths = commit.files.get(group[0], {}).get(group[1], ())
    names = (parse_base_file_name(path.rpartition("/")[2]) for path in paths)
    return commit.write.instant > instant and any(name is not None for name in names)
