"""The number of commits, hours or versions that a clean retains: the number in its parameters, or more if consumers or
sessions need more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.contract import Problem
from jobs.hudi.records import Commit
from jobs.job_params import CleaningPolicy
from jobs.kinds.cleaning import Consumer
from jobs.problems.plans import RETAIN_TOO_SMALL
from jobs.protocol.consumers import behind_replacements, first_needed, retention

# A running query may read the version before the latest, so its files must not be deleted.
_MIN_RETAIN = {
    CleaningPolicy.KEEP_LATEST_COMMITS: 1,
    CleaningPolicy.KEEP_LATEST_BY_HOURS: 1,
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: 2,
}
_RETAINED = {
    CleaningPolicy.KEEP_LATEST_COMMITS: "hoodie.clean.commits.retained",
    CleaningPolicy.KEEP_LATEST_BY_HOURS: "hoodie.clean.hours.retained",
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: "hoodie.clean.fileversions.retained",
}


@dataclass(frozen=True)
class CleanRetention:
    policy: CleaningPolicy
    retain: int
    consumers: Sequence[Consumer]
    has_sessions: bool

    def retained(self, commits: Sequence[Commit], now: datetime) -> int:
        """Returns the number to retain; `commits` are all that the cleaner will see."""
        wanted = self.retain
        if self.policy is CleaningPolicy.KEEP_LATEST_COMMITS:
            wanted = commits_to_retain(commits, self.retain, has_sessions=self.has_sessions)
        return retention(self.policy, wanted, commits, first_needed(commits, self.consumers), now)

    def options(self, commits: Sequence[Commit], now: datetime) -> dict[str, str]:
        """Returns the options of the client."""
        retained = str(self.retained(commits, now))
        return {"hoodie.clean.policy": self.policy.value, _RETAINED[self.policy]: retained}

    def problems(self, commits: Sequence[Commit]) -> list[Problem]:
        return behind_replacements(self.policy, commits, first_needed(commits, self.consumers))

    def too_small(self) -> list[Problem]:
        least = _MIN_RETAIN[self.policy]
        if self.retain >= least:
            return []
        return [
            RETAIN_TOO_SMALL.because(
                f"{self.policy.value} with retain {self.retain}",
                hint=f"Retain at least {least}: running readers still need that version.",
            )
        ]


def commits_to_retain(commits: Sequence[Commit], retain: int, *, has_sessions: bool) -> int:
    """Returns the number of commits to retain so that Hudi's cleaner keeps what the last `retain` commits replaced.
    `commits` are in the order of completion. Hudi counts back by the start times of commits. If other commits began
    later than a long commit and completed earlier, Hudi would delete the files that the long commit replaced as soon as
    it has completed, and running queries would fail.

    `has_sessions`: sessions of Spark SQL write the table. Such a session plans a query with the files that it has
    cached since its last statement. So that table services in between do not make the query fail, only commits that
    bring rows are counted.
    """
    counting = [place for place, commit in enumerate(commits) if commit.write.brings_rows or not has_sessions]
    start = counting[-retain] if len(counting) >= retain else 0
    first = min((commit.write.instant for commit in commits[start:]), default="")
    return max(retain, sum(commit.write.instant >= first for commit in commits))
