"""Measures what readers pay because jobs wait for slots, in a simulated fleet, compared with an order that knows how
often each table is read.

    python tests/benchmarks/regret.py [--tables 1000] [--days 14] [--shares 0.5,1,2] [--seeds 1] [--slowness 3] [--json]

The fleet comes from a seeded generator (`past_fleet`). `regret` is what readers pay for logs in addition to the order
of a clairvoyant, as a share; `first come` is the same of the order of submission. A share of 1 gives the fleet the
slots that all jobs need if none waits. `seconds` is the CPU time of one simulation of the order of the service.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.unit.control_plane.test_scarcity import check


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--days", type=float, default=14.0)
    parser.add_argument(
        "--shares", type=lambda text: [float(each) for each in text.split(",")], default=[0.5, 1.0, 2.0]
    )
    parser.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[1])
    parser.add_argument("--slowness", type=float, default=3.0, help="by which jobs take longer than in `past_fleet`")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    found = []
    for seed in given.seeds:
        for share in given.shares:
            figures = check(given.tables, given.days, seed, share, given.slowness)
            found.append({"seed": seed, "share": share, **figures})
            print({name: round(value, 4) for name, value in found[-1].items()}, flush=True)
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
