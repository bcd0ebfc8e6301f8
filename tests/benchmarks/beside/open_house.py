"""OpenHouse's rule for the order of compactions: a budget goes to those that remove most files per GB-hour.

AutoComp (Liu et al., SIGMOD 2025) has the rule, for Iceberg. The benefit of a candidate is the number of files that its
compaction removes. The cost is the memory of an executor, multiplied by the hours that it needs for the rewrite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.acceptance.daemon import ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.acceptance.daemon import Daemon

_MEMORY_GB = 2.0
# The throughput before any job has ended.
_FIRST_BYTES_PER_SECOND = 10e6


@dataclass(frozen=True)
class Candidate:
    """A table with log files: how many files its compaction removes, and what it costs."""

    table_id: str
    files_removed: int
    bytes: float
    gb_hours: float


@dataclass
class OpenHouse:
    """Compacts tables by the rule, once in a round of `round_seconds`. The budget of a round is a share of the slot's
    GB-hours in that time; throughput is measured by the jobs that have ended."""

    daemon: Daemon
    table_ids: Sequence[str]
    budget_share: float
    round_seconds: float
    _running: dict[str, tuple[str, float]] = field(default_factory=dict)
    _bytes: float = 0.0
    _seconds: float = 0.0

    def take_round(self) -> None:
        self._learn()
        budget = self.budget_share * _MEMORY_GB * self.round_seconds / 3600
        for each in chosen(self._candidates(), budget):
            self._running[each.table_id] = self.daemon.submit(each.table_id, "compaction"), each.bytes

    def _candidates(self) -> list[Candidate]:
        found = []
        per_second = self._bytes / self._seconds if self._seconds else _FIRST_BYTES_PER_SECOND
        for table_id in self.table_ids:
            total = self._get(f"/v1/tables/{table_id}/snapshot")["total"]
            if table_id not in self._running and total["log_files"]:
                amount = float(total["base_bytes"] + total["log_bytes"])
                gb_hours = _MEMORY_GB * amount / per_second / 3600
                found.append(Candidate(table_id, total["log_files"], amount, gb_hours))
        return found

    def _learn(self) -> None:
        for table_id, (job_id, amount) in list(self._running.items()):
            job = self.daemon.job(job_id)
            if job["state"] in ENDED:
                del self._running[table_id]
                self._bytes += amount
                began, ended = (datetime.fromisoformat(job[name]) for name in ("started_at", "finished_at"))
                self._seconds += (ended - began).total_seconds()

    def _get(self, path: str) -> Mapping[str, Any]:
        answer = self.daemon.call("GET", path)
        assert answer.is_success, answer.text
        found: Mapping[str, Any] = answer.json()
        return found


def chosen(candidates: Sequence[Candidate], budget: float) -> list[Candidate]:
    """Returns the candidates that fit into the budget of GB-hours, those that remove most files per GB-hour first."""
    found, left = [], budget
    for each in sorted(candidates, key=lambda each: each.files_removed / max(each.gb_hours, 1e-12), reverse=True):
        if each.gb_hours <= left:
            found.append(each)
            left -= each.gb_hours
    return found
