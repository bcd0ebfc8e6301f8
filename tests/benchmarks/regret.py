"""Measures what readers pay because jobs wait for slots, in a simulated fleet, compared with an order that knows how
often each table is read.

    python tests/benchmarks/regret.py [--tables 1000] [--days 14] [--shares 0.5,1,2] [--seeds 1] [--slowness 3]
        [--exponents 1.5,1.2] [--json]

The fleet comes from a seeded generator (`past_fleet`). Readers pay for the logs of tables whose compactions wait.
`regret` says how much more they pay than under an order that knows all reads, as a share; `first come` says the same of
the order in which jobs were submitted. `--shares` limits the slots: 1 is the number that all jobs need if none waits.
`seconds` is the CPU time of one simulation of the order of the service. `exponents` says how much more readers pay if
jobs are ordered by gain * age^A / work^B, with these A and B. The service uses 1 and 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from service.outcome.gain import Gain
from tests.unit.control_plane.test_scarcity import a_scarce_fleet, check, paid

if TYPE_CHECKING:
    from collections.abc import Sequence


def other_order(given: argparse.Namespace, seed: int, slots: int, exponents: Sequence[float]) -> float:
    """Returns how much more readers pay with these exponents than in the order of the service, as a share."""
    of_age, of_work = exponents

    def worth(gain: Gain, age: float, work_seconds: float) -> float:
        return gain.seconds_per_hour * max(age, 1.0) ** of_age / max(work_seconds, 0.001) ** of_work

    known, true, run = a_scarce_fleet(given.tables, given.days, seed, given.slowness)
    ours = paid(run(known, slots), true)
    with patch.object(Gain, "paid_per_second", worth):
        return paid(run(known, slots), true) / ours - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--days", type=float, default=14.0)
    parser.add_argument(
        "--shares", type=lambda text: [float(each) for each in text.split(",")], default=[0.5, 1.0, 2.0]
    )
    parser.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[1])
    parser.add_argument("--slowness", type=float, default=3.0, help="by which jobs take longer than in `past_fleet`")
    parser.add_argument("--exponents", type=lambda text: [float(each) for each in text.split(",")])
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    found = []
    for seed in given.seeds:
        for share in given.shares:
            figures = dict(check(given.tables, given.days, seed, share, given.slowness))
            if given.exponents:
                figures["exponents"] = other_order(given, seed, int(figures["slots"]), given.exponents)
            found.append({"seed": seed, "share": share, **figures})
            print({name: round(value, 4) for name, value in found[-1].items()}, flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
