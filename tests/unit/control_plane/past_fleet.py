"""Makes a fleet of tables with a made-up past. The same seed makes the same fleet."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from service.lake.table import TableType
from service.policies.policy import Policy
from service.policies.precedence import Subject
from service.queue.cost import Basis, Cost
from service.simulation.growth import Growth
from service.simulation.table_past import Beginning, TablePast, Write

if TYPE_CHECKING:
    from jobs.kinds.results import Work

MIB = 1024**2
HOUR, DAY = 3600.0, 86_400.0
BEGIN = 1_767_225_600.0  # 2026-01-01


def a_past(number: int = 0, **changes: Any) -> TablePast:
    """Returns a merge-on-read table of 1 GiB in 8 file groups. The default of `writes` is 1 MiB every 10 minutes for a
    day."""
    writes = [Write(BEGIN + 600.0 * each, MIB, 4) for each in range(1, 145)]
    known: dict[str, Any] = {
        "id": f"tbl_{number}",
        "subject": Subject(f"t{number}"),
        "table_type": TableType.MERGE_ON_READ,
        "policy": Policy(),
        "writes": writes,
        "beginning": Beginning(base_files=8, base_bytes=1024 * MIB),
        "small_file_bytes": 100 * MIB,
        "first_commit_at": BEGIN - 30 * DAY,
    }
    return TablePast(**{**known, **changes})


def a_fleet(tables: int, days: float, *, seed: int = 1, policy: Policy | None = None) -> list[TablePast]:
    """Returns tables whose writes follow a Zipf distribution: the first commits once a minute, most once an hour or
    less. Three of four are merge-on-read."""
    rng = Random(seed)
    found = []
    for number in range(tables):
        every = min(60.0 * (number + 1) ** 0.75, 6 * HOUR)
        is_merged = number % 4 != 3
        size = int(2 ** rng.uniform(28, 37))
        files = max(1, size // (120 * MIB))
        at, writes = BEGIN + rng.uniform(0, every), []
        while at < BEGIN + days * DAY:
            writes.append(Write(at, int(size * rng.uniform(0.0005, 0.005)), rng.randint(1, max(1, files // 4))))
            at += rng.expovariate(1 / every)
        found.append(
            a_past(
                number,
                table_type=TableType.MERGE_ON_READ if is_merged else TableType.COPY_ON_WRITE,
                policy=policy or Policy(),
                writes=writes,
                beginning=Beginning(base_files=files, base_bytes=size),
                growth=Growth(logged=1.0 if is_merged else 0.0, kept=0.2),
            )
        )
    return found


def cost(table_id: str, kind: str, work: Work, *, dry_run: bool = False) -> Cost:
    """A job takes one second, and ten more seconds for each GiB."""
    seconds = 1.0 + 10 * work.bytes / (1024 * MIB)
    return Cost(seconds, seconds, seconds, Basis.TABLE, 2.0)
