"""Compares ways to decide when tables are compacted and cleaned, by the cost of these services and of queries.

    python tests/benchmarks/outcome.py [--tables 20] [--minutes 30] [--seeds 1,2,3] [--variants inline,default] [--json]

Each variant gets the same writes and queries of the same tables at the same times. The variants run one after the other
in one warm Spark session. A few tables get most of the writes, and a few others get most of the queries: both follow
Zipf distributions, which are drawn independently. The variants are:

- `inline`: the writer runs Hudi's own services, with Hudi's defaults. The cost of these services is the
  cost of these writes minus the cost of the same writes in `none`, or, if `none` is not run, minus their average cost
  in the other variants.
- `default`: a daemon with our default thresholds, and a worker of one slot.
- `open_house`: the same daemon and worker; OpenHouse's rule (`beside/open_house.py`) selects the compactions, our
  default thresholds the cleanings.
- `objective`: the same daemon and worker, which decide by an objective: `read_seconds`, `of_reads` and
  `storage_overhead`, or those members that are given. The owners declare how often the tables are read, in place of the
  history of reads that the service would have after some days; with `--lineage` each query is reported instead.
- `none`: no services at all, for comparison.

The cost of a daemon is the CPU time of all its processes until the last job has ended, after jobs on other tables have
warmed it up; `service_parts` has the parts of the worker's JVM and of all Python processes. At the end the rows of all
variants must be equal. On a machine with other work only CPU seconds mean anything.

A line is printed about each minute. After each variant all figures so far, and their comparison, are written to
`--results FILE`. If the file has results of an earlier run, this run adds only the missing variants. So each variant
can run alone, in a session that is as warm as for the others. If a variant fails, the script says
so, goes on with the others, and ends with exit code 1. SIGTERM ends the run with the comparison of the variants that
have ended.

A machine is seldom equally fast for an hour. If `--together` is given, all variants run at the same time, each with its
own daemon, and each event is done for one variant after the other, so a slower machine slows all of them down. There
are then more events, which need more time: `--together --variants objective,default --write-every 4 --query-every 6
--minutes 12`. The JVM's compiler and collector may work during a query of one variant, and not during the same query of
another; with `--asks 2` each query is asked twice, and the cheaper one counts (`--write-every 6 --query-every 9
--minutes 18`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.acceptance.daemon import Daemon
from tests.benchmarks import fleet, trips
from tests.benchmarks.beside.open_house import OpenHouse
from tests.benchmarks.beside.outcome_figures import (
    DEFAULT,
    INLINE,
    NONE,
    OBJECTIVE,
    OPEN_HOUSE,
    Figures,
    figures_of,
    settled_inline,
    tell_table,
    tell_verdict,
    verdict,
)
from tests.benchmarks.beside.writer import printed_options
from tests.benchmarks.beside.zipf_load import Event, EventKind, Session, Took, reads_per_day, schedule, shape_of
from tests.benchmarks.by_itself import jobs_of, settled
from tests.benchmarks.process_tree import Cost, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VARIANTS = (INLINE, DEFAULT, OPEN_HOUSE, OBJECTIVE)
HUDIS_SERVICES = {"hoodie.compact.inline": "true", "hoodie.clean.automatic": "true"}
# The benchmark repeats batches itself, to count conflicts.
OWN_REPEATS = {"hoodie.write.num.retries.on.conflict.failures": "0"}
# `read_seconds`, `of_reads` and `storage_overhead`, if the command line names no member of the objective.
OBJECTIVE_OF_READS = 1.45, 0.96, 6.0
SETTINGS = {"automatic": "true", "slots": "1", "spare_slots": "0", "workers": "1", "driver_memory": fleet.MEMORY}


@dataclass
class _Part:
    """The tables of a variant with the options of their writers, the daemon that looks after them, and what the events
    have cost. `after` is called after each event with the seconds since the beginning, and with None while nothing is
    due."""

    variant: str
    bases: Sequence[Path]
    options: Sequence[dict[str, str]]
    after: Callable[[Event | None, float], None] = lambda _event, _at: None
    daemon: Daemon | None = None
    ids: Sequence[str] = ()
    cost: Cost = field(default_factory=Cost)
    took: list[Took] = field(default_factory=list)
    jobs: Counter[str] = field(default_factory=Counter)


class Bench:
    """The tables, written once, and a run of each variant on copies of them."""

    def __init__(self, session: Session, folder: Path, given: argparse.Namespace) -> None:
        self._session, self._folder, self._given = session, folder, given
        self._warm = fleet.Fleet(session.spark, folder / "warm", ["a", "b"])
        for number in range(given.tables):
            session.make(self._model(number), number)
        scratch = self._copies("scratch")
        for event in schedule(given.tables, given.warm_up, {EventKind.WRITE: 1, EventKind.QUERY: 1}, 0):
            self._do(event, scratch, [fleet.options(each, shape_of(n)) for n, each in enumerate(scratch)])
        shutil.rmtree(scratch[0].parent)

    def run(
        self, variants: Sequence[str], events: Sequence[Event], seed: int
    ) -> list[tuple[Figures, list[trips.Fingerprint]]]:
        """Plays the events on tables of each variant, each event on those of one variant after the other; returns the
        figures of each variant, and the rows of its tables afterwards."""
        with ExitStack() as stack:
            parts = [self._part(variant, seed, stack) for variant in variants]
            with ExitStack() as measuring:
                for part in parts:
                    if part.daemon:
                        part.cost = measuring.enter_context(measured(part.daemon.process.pid))
                late = self._play(events, parts)
                for part in parts:
                    if part.daemon and (left := [job for each in part.ids for job in settled(part.daemon, each)]):
                        _log(f"{part.variant}: jobs that have not ended: {', '.join(left)}")
            for part in parts:
                if part.daemon:
                    found = [job for each in part.ids for job in jobs_of(part.daemon, each)]
                    part.jobs.update(f"{job['kind']} {job['state']}" for job in found)
        return [self._ended(part, seed, late) for part in parts]

    def _part(self, variant: str, seed: int, stack: ExitStack) -> _Part:
        bases = self._copies(variant)
        options = [fleet.options(each, shape_of(number)) | OWN_REPEATS for number, each in enumerate(bases)]
        if variant in (INLINE, NONE):
            services = HUDIS_SERVICES if variant == INLINE else {}
            return _Part(variant, bases, [each | services for each in options])
        daemon = stack.enter_context(Daemon(self._folder / f"{variant}_{seed}", **SETTINGS))
        self._warm_up(daemon)
        ids = self._register(daemon, bases, variant, seed)
        shown = [own | printed_options(daemon, each, "spark") for own, each in zip(options, ids, strict=True)]
        _log(f"the daemon of {variant} is warm")
        after = self._after(daemon, variant, ids, bases)
        return _Part(variant, bases, [each | OWN_REPEATS for each in shown], after, daemon, ids)

    def _ended(self, part: _Part, seed: int, late: float) -> tuple[Figures, list[trips.Fingerprint]]:
        found = figures_of(part.variant, seed, part.took, part.cost.cpu_seconds)
        found.jobs, found.late_seconds = dict(sorted(part.jobs.items())), round(late, 1)
        found.service_parts = {role: round(seconds, 1) for role, seconds in part.cost.cpu.items()}
        found.megabytes = sum(trips.size_of_files(each) for each in part.bases) >> 20
        rows = [trips.fingerprint(self._session.spark, each) for each in part.bases]
        shutil.rmtree(part.bases[0].parent)
        return found, rows

    def _play(self, events: Sequence[Event], parts: Sequence[_Part]) -> float:
        """Does what the schedule says; returns how late the last event was."""
        began, minute = time.monotonic(), 0
        for place, event in enumerate(events):
            if (at := time.monotonic() - began) >= 60 * (minute + 1):
                minute = int(at // 60)
                _log(f"minute {minute}: {place} of {len(events)} events, {max(0.0, at - event.at):.0f} s late")
            while (at := time.monotonic() - began) < event.at:
                for part in parts:
                    part.after(None, at)
                time.sleep(min(0.2, event.at - at))
            first = place % len(parts)
            for part in (*parts[first:], *parts[:first]):
                part.took.append(self._do(event, part.bases, part.options))
                part.after(event, time.monotonic() - began)
        return max(0.0, time.monotonic() - began - events[-1].at)

    def _do(self, event: Event, bases: Sequence[Path], options: Sequence[dict[str, str]]) -> Took:
        base = bases[event.table]
        if event.kind is EventKind.WRITE:
            return self._session.write(event, base, options[event.table])
        asked = [self._session.query(event, base) for _ in range(self._given.asks)]
        return min(asked, key=lambda each: each.cpu_seconds)

    def _warm_up(self, daemon: Daemon) -> None:
        """Runs jobs on other tables, which are then forgotten."""
        daemon.wait_for_worker()
        place = self._folder / "warming"
        for shape, base in self._warm.copies(fleet.COMPACTION, place, self._given.warm_up):
            table = daemon.register(base, shape.buckets, writers={"stopped": True})
            off = {"compaction": {"enabled": False}, "cleaning": {"enabled": False}, "audit": {"enabled": False}}
            assert daemon.call("PUT", f"/v1/tables/{table}/policy", off).is_success
            daemon.succeed(table, "compaction")
            daemon.succeed(table, "cleaning", retain=1)
            assert daemon.call("DELETE", f"/v1/tables/{table}").is_success
        shutil.rmtree(place)

    def _register(self, daemon: Daemon, bases: Sequence[Path], variant: str, seed: int) -> list[str]:
        policy: dict[str, Any] = {"audit": {"enabled": False}}
        if variant == OPEN_HOUSE:
            policy["compaction"] = {"enabled": False}
        if variant == OBJECTIVE:
            policy["objective"] = {
                "read_overhead": self._given.overhead,
                "read_seconds": self._given.read_seconds,
                "of_reads": self._given.of_reads,
                "least_worth": self._given.least_worth,
                "storage_overhead": self._given.storage_overhead,
            }
        answer = daemon.call("PUT", "/v1/policies/*", policy)
        assert answer.is_success, answer.text
        declared: list[dict[str, Any]] = [{} for _ in bases]
        if variant == OBJECTIVE and not self._given.lineage:
            rates = reads_per_day(len(bases), self._given.query_every, seed)
            declared = [{"readers": {"reads_per_day": each}} for each in rates]
        writers = {"hudi_version": "1.2.0", "retry_conflicts": True}
        return [
            daemon.register(each, shape_of(number).buckets, writers=writers, **declared[number])
            for number, each in enumerate(bases)
        ]

    def _after(
        self, daemon: Daemon, variant: str, ids: Sequence[str], bases: Sequence[Path]
    ) -> Callable[[Event | None, float], None]:
        rule = OpenHouse(daemon, ids, self._given.budget, self._given.round_seconds)
        rounds = 0

        def after(event: Event | None, at: float) -> None:
            nonlocal rounds
            if variant == OPEN_HOUSE and at >= (rounds + 1) * self._given.round_seconds:
                rounds += 1
                rule.take_round()
            if variant == OBJECTIVE and self._given.lineage and event and event.kind is EventKind.QUERY:
                _report_read(daemon, bases[event.table])

        return after

    def _copies(self, name: str) -> list[Path]:
        found = []
        shutil.rmtree(self._folder / name, ignore_errors=True)  # A variant that failed has left its tables.
        for number in range(self._given.tables):
            target = self._folder / name / f"orders_{number}"
            found.append(Path(shutil.copytree(self._model(number), target)))
        os.sync()
        return found

    def _model(self, number: int) -> Path:
        return self._folder / "models" / f"orders_{number}"


def _report_read(daemon: Daemon, base: Path) -> None:
    """Reports a query as OpenLineage's listener in the reader's session does."""
    event = {
        "eventType": "COMPLETE",
        "run": {"runId": str(uuid4())},
        "producer": "https://github.com/OpenLineage/OpenLineage",
        "inputs": [{"namespace": "file", "name": str(base)}],
    }
    answer = daemon.call("POST", "/v1/lineage", event)
    assert answer.json()["counted"] == 1, answer.text


def _log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(given: argparse.Namespace, folder: Path) -> Result:
    spark = start_session(
        master="local[2,4]",
        app_name="outcome",
        driver_memory=fleet.MEMORY,
        conf={"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": fleet.JAVAS_DEFAULTS},
    )
    bench = Bench(Session(spark), folder, given)
    every = {EventKind.WRITE: given.write_every, EventKind.QUERY: given.query_every}
    result = Result(given)
    with suppress(_Ended):
        for place, seed in enumerate(given.seeds):
            events = schedule(given.tables, given.minutes * 60, every, seed)
            # The session still gets a little faster, so each seed begins with another variant.
            first = place % len(given.variants)
            order = [each for each in given.variants[first:] + given.variants[:first] if not result.has(seed, each)]
            for variants in [order] if given.together and order else [[each] for each in order]:
                names = ", ".join(variants)
                _log(f"seed {seed}, {names}")
                try:
                    for found, rows in bench.run(variants, events, seed):
                        result.add(found, [[each.rows, each.data] for each in rows])
                        found.tell()
                except Exception as error:
                    result.failed(seed, names, error)
    spark.stop()
    return result


class _Ended(BaseException):
    """SIGTERM has come, so the run ends."""


def _end(_signal: int, _frame: object) -> None:
    raise _Ended


class Result:
    """The figures of all variants that have ended, by seed, with the rows that their tables have, and the failures.
    The results are written after each variant. If the file has results of the same options, these are kept."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._found: dict[int, dict[str, Figures]] = {}
        self._rows: dict[int, list[Any]] = {}
        self.failures: list[str] = []
        if given.results and given.results.exists():
            self._read(json.loads(given.results.read_text()))

    def has(self, seed: int, variant: str) -> bool:
        return variant in self._found.get(seed, {})

    def add(self, figures: Figures, rows: list[Any]) -> None:
        """Adds the figures. Raises AssertionError if another variant has other rows."""
        expected = self._rows.setdefault(figures.seed, rows)
        if rows != expected:
            raise AssertionError(f"{figures.variant}: rows differ: {rows}, expected {expected}")
        self._found.setdefault(figures.seed, {})[figures.variant] = figures
        self._write()

    def failed(self, seed: int, variant: str, error: Exception) -> None:
        _log("".join(format_exception(error)))
        self.failures.append(f"seed {seed}, {variant}: {type(error).__name__}: {error}"[:1000])
        self._write()

    def as_json(self) -> dict[str, Any]:
        seeds = []
        for seed, each in self._found.items():
            found = settled_inline(each)
            figures = {name: asdict(of) for name, of in found.items()}
            seeds.append({"seed": seed, **verdict(found), "variants": figures, "rows": self._rows[seed]})
        given = {name: str(value) if name == "results" else value for name, value in vars(self._given).items()}
        return {"given": given, "cores": os.cpu_count(), "seeds": seeds, "failures": self.failures}

    def tell(self) -> None:
        for each in self._found.values():
            tell_table(settled_inline(each))
        for each in self.as_json()["seeds"]:
            tell_verdict(each)
        for failure in self.failures:
            print(f"failed: {failure}")

    def _read(self, written: dict[str, Any]) -> None:
        free = {"variants", "seeds", "results", "json"}
        before, now = (
            {name: value for name, value in each.items() if name not in free}
            for each in (written["given"], vars(self._given))
        )
        if before != now:
            raise SystemExit(f"{self._given.results} has results of other options: {before}")
        for each in written["seeds"]:
            self._found[each["seed"]] = {name: Figures(**of) for name, of in each["variants"].items()}
            self._rows[each["seed"]] = each["rows"]

    def _write(self) -> None:
        if self._given.results:
            part = self._given.results.with_suffix(".part")
            part.write_text(json.dumps(self.as_json(), indent=1))
            part.replace(self._given.results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30.0, help="of each variant and seed")
    parser.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], default=[1])
    parser.add_argument("--variants", type=lambda text: text.split(","), default=list(VARIANTS))
    parser.add_argument("--together", action="store_true", help="plays all variants at once, event by event")
    parser.add_argument("--write-every", type=float, default=2.0, help="seconds between two batches")
    parser.add_argument("--query-every", type=float, default=3.0, help="seconds between two queries")
    parser.add_argument("--asks", type=int, default=1, help="how often each query is asked; the cheapest one counts")
    parser.add_argument("--overhead", type=float, help="member `read_overhead` of the objective")
    parser.add_argument("--read-seconds", type=float, help="member `read_seconds` of it")
    parser.add_argument("--of-reads", type=float, help="member `of_reads` of it")
    parser.add_argument("--least-worth", type=float, help="member `least_worth` of it")
    parser.add_argument("--storage-overhead", type=float, help="member `storage_overhead` of it")
    parser.add_argument("--lineage", action="store_true", help="reports each query; nobody declares reads")
    parser.add_argument("--budget", type=float, default=0.2, help="of OpenHouse's rule: share of the slot's time")
    parser.add_argument("--round-seconds", type=float, default=30.0, help="of OpenHouse's rule: between two rounds")
    parser.add_argument("--warm-up", type=int, default=12, help="events, and jobs of each kind on other tables")
    parser.add_argument("--results", type=Path, help="file for the result, written after each variant")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    if unknown := {*given.variants} - {*VARIANTS, NONE}:
        parser.error(f"unknown variants: {', '.join(sorted(unknown))}")
    if not any((given.overhead, given.read_seconds, given.of_reads, given.least_worth, given.storage_overhead)):
        given.read_seconds, given.of_reads, given.storage_overhead = OBJECTIVE_OF_READS
    return given


def main() -> None:
    given = _options()
    signal.signal(signal.SIGTERM, _end)
    with tempfile.TemporaryDirectory(prefix="outcome-", ignore_cleanup_errors=True) as folder:
        result = run(given, Path(folder).resolve())
    result.tell()
    if given.json:
        print(json.dumps(result.as_json()))
    if result.failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
