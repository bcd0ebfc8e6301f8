"""The metrics that come from the database. All replicas report the same values, so a query must not add the values of
several replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from jobs.contract import JobKind
from service.delivery.delivery_statistics import MOST_COUNTED
from service.events import tally
from service.events.event import EventType
from service.events.tally import Tallies
from service.health.problem import ProblemKind, Severity
from service.incidents.incident import UNRESOLVED, IncidentKind
from service.metrics import table_series
from service.metrics.database_state import Reading
from service.queue import job_tally
from service.queue.job import AttemptOutcome, JobState
from service.queue.job_tally import BUCKETS

_PREFIX = "groundskeeper_"
_MOST_GROUPS = 50
_OTHER_GROUPS = "_other"  # The name of a group begins with a letter or a digit, so no group has this name.
_STANDING_JOBS = (JobState.QUEUED, JobState.LEASED, JobState.RUNNING, JobState.UNKNOWN)
_KINDS = [(kind.value,) for kind in JobKind]


def families(reading: Reading) -> Iterator[Metric]:
    yield from _jobs(reading)
    yield from _workers(reading)
    yield from _tables(reading)
    yield from _deliveries(reading)
    yield _problems(reading)
    yield _counter(reading.tallies, tally.EVENTS, "Published events", ["type"], [(each.value,) for each in EventType])
    if reading.series.registered:
        yield from table_series.families(reading.series)
    yield _gauge("paused", "1 while the automatic start of jobs is paused", float(reading.is_paused))


def _jobs(reading: Reading) -> Iterator[Metric]:
    tallies, queue = reading.tallies, reading.queue
    jobs = GaugeMetricFamily(
        f"{_PREFIX}jobs",
        "Jobs that have not ended, or whose outcome is unknown, dry runs included",
        labels=["kind", "state"],
    )
    for (kind,) in _KINDS:
        for state in _STANDING_JOBS:
            jobs.add_metric([kind, state.value], queue.active.get((kind, state.value), 0))
    yield jobs
    ages = {group: _seconds(due, reading.at) for group, due in queue.oldest.items()}
    for worker in reading.workers:
        if worker.is_alive(reading.at):
            ages.setdefault(worker.info.group, 0.0)
    age = "Age of the oldest queued job of a worker group that is due"
    yield _by_group("queue_oldest_job_age_seconds", age, ages, max)
    groups = reading.outlook.groups
    waits = {name: each.wait_seconds for name, each in groups.items() if each.wait_seconds is not None}
    for name, what, values in (
        ("queue_expected_wait_seconds", "Expected time until the last due job of a worker group starts", waits),
        (
            "queue_expected_work_seconds",
            "Expected total duration of the due jobs of a worker group",
            {group: each.work_seconds for group, each in groups.items()},
        ),
        (
            "worker_slots_wanted",
            "Number of slots with which no due job would wait longer than the goal",
            {group: float(each.wanted_slots) for group, each in groups.items()},
        ),
    ):
        yield _by_group(name, what, values, max if name == "queue_expected_wait_seconds" else sum)
    ends = [(kind, end) for (kind,) in _KINDS for end in ("succeeded", "failed", "cancelled")]
    yield _counter(tallies, tally.JOBS_FINISHED, "Jobs that have ended, without dry runs", ["kind", "outcome"], ends)
    yield _durations(tallies)
    for name, what in (
        (job_tally.LEASES_LOST, "Attempts whose worker disappeared, dry runs included"),
        (job_tally.LOCK_WAIT_SECONDS, "Time for which ended attempts have waited for the locks of tables"),
        (job_tally.READ_BYTES, "Bytes of input that jobs have read, for kinds that measure it"),
        (job_tally.FREED_BYTES, "Size of the files that cleanings have deleted"),
        (job_tally.WRITTEN_BYTES, "Bytes written by commits of table services, of this service and of writers"),
    ):
        kinds = _KINDS if name != job_tally.FREED_BYTES else [(JobKind.CLEANING.value,)]
        yield _counter(tallies, name, what, ["kind"], kinds)


def _durations(tallies: Tallies) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        f"{_PREFIX}job_attempt_duration_seconds",
        "Time from the lease of an attempt to its end, without dry runs",
        labels=["kind", "outcome"],
    )
    counts: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (kind, outcome, bucket), number in tallies.get(job_tally.ATTEMPTS, {}).items():
        counts[kind, outcome][bucket] = number
    seconds = tallies.get(job_tally.ATTEMPT_SECONDS, {})
    for (kind,) in _KINDS:
        for outcome in (each.value for each in AttemptOutcome):
            of_bounds = [counts[kind, outcome].get(f"{bound:g}", 0.0) for bound in BUCKETS]
            if not any(of_bounds):
                # Combinations without attempts are left out, because most never occur, and each would take eleven
                # lines.
                continue
            names = ["+Inf" if bound == float("inf") else str(bound) for bound in BUCKETS]
            buckets = list(zip(names, accumulate(of_bounds), strict=True))
            family.add_metric([kind, outcome], buckets, seconds.get((kind, outcome), 0.0))
    return family


def _workers(reading: Reading) -> Iterator[Metric]:
    numbers: defaultdict[str, float] = defaultdict(float)
    ready: defaultdict[str, float] = defaultdict(float)
    slots: defaultdict[str, float] = defaultdict(float)
    ages: dict[str, float] = {}
    for worker in reading.workers:
        group, age = worker.info.group, _seconds(worker.last_seen, reading.at)
        ages[group] = min(age, ages.get(group, age))
        numbers[group] += worker.is_alive(reading.at)
        is_ready = worker.is_alive(reading.at) and worker.is_ready
        ready[group] += is_ready
        slots[group] += is_ready * (worker.info.slots or 1)
    for group in reading.queue.oldest:
        for found in (numbers, ready, slots):
            found[group] += 0
    yield _by_group("workers", "Workers that called within the last minute", numbers, sum)
    yield _by_group("workers_ready", "Workers that take jobs", ready, sum)
    yield _by_group("worker_slots", "Jobs that the ready workers run at once", slots, sum)
    last = "Time since the last call of any worker of the group; missing after a day"
    yield _by_group("worker_last_heartbeat_age_seconds", last, ages, min)


def _tables(reading: Reading) -> Iterator[Metric]:
    tables = reading.tables
    lag = _seconds(tables.next_poll_at, reading.at) if tables.next_poll_at else 0.0
    for name, what, value in (
        ("tables", "Registered tables", tables.tables),
        ("tables_unreadable", "Tables whose last polls have failed", tables.unreadable),
        ("tables_with_missed_commits", "Tables some of whose commits were archived before a poll", tables.with_gap),
        ("poll_lag_seconds", "Delay of the poll that is overdue for the longest time", lag),
        ("table_base_bytes", "Size of the current base files of all tables", tables.base_bytes),
        ("backlog_log_bytes", "Size of the log files of all tables that wait for a compaction", tables.log_bytes),
        (
            "backlog_log_bytes_max",
            "Largest size of log files of one table that wait for a compaction",
            tables.largest_log_bytes,
        ),
        (
            "delta_commits_since_compaction_max",
            "Commits since the last compaction of the merge-on-read table with the most of these commits",
            tables.delta_commits,
        ),
        (
            "timeline_commits_max",
            "Completed commits on the active timeline of the table with the most of these commits",
            tables.timeline_commits,
        ),
    ):
        yield _gauge(name, what, value)
    incidents = GaugeMetricFamily(
        f"{_PREFIX}incidents", "Incidents of tables that are not closed", labels=["kind", "state"]
    )
    for kind in IncidentKind:
        for state in UNRESOLVED:
            incidents.add_metric([kind.value, state.value], reading.incidents.get((kind, state), 0))
    yield incidents


def _problems(reading: Reading) -> GaugeMetricFamily:
    problems = GaugeMetricFamily(
        f"{_PREFIX}problems", "Open problems that the last check found", labels=["kind", "severity"]
    )
    for kind in ProblemKind:
        for severity in Severity:
            problems.add_metric([kind.value, severity.value], reading.problems.get((kind, severity), 0))
    return problems


def _deliveries(reading: Reading) -> Iterator[Metric]:
    found = reading.deliveries
    webhooks = GaugeMetricFamily(
        f"{_PREFIX}webhooks", "Webhooks by state: working, failing or disabled", labels=["state"]
    )
    working = found.webhooks - found.failing - found.disabled
    for state, number in (("working", working), ("failing", found.failing), ("disabled", found.disabled)):
        webhooks.add_metric([state], number)
    yield webhooks
    deliveries = GaugeMetricFamily(
        f"{_PREFIX}webhook_deliveries",
        f"Deliveries that wait (pending) or were given up (dead), each counted up to {MOST_COUNTED}",
        labels=["state"],
    )
    for each, number in found.open.items():
        deliveries.add_metric([each.value], number)
    yield deliveries
    lag = _seconds(found.due_at, reading.at) if found.due_at else 0.0
    yield _gauge("webhook_lag_seconds", "How long the longest waiting delivery has been due", lag)


def _counter(
    tallies: Tallies, name: str, what: str, labels: Sequence[str], zeros: Sequence[tuple[str, ...]]
) -> CounterMetricFamily:
    """`zeros` are the known labels. Their counters begin at 0, because Prometheus sees no increase in a series that
    appears with its first value."""
    family = CounterMetricFamily(f"{_PREFIX}{name}", what, labels=labels)
    for values, amount in {**dict.fromkeys(zeros, 0.0), **tallies.get(name, {})}.items():
        family.add_metric(list(values), amount)
    return family


def _by_group(
    name: str, what: str, values: Mapping[str, float], merged: Callable[[Sequence[float]], float]
) -> GaugeMetricFamily:
    """Shows the first groups by name, and all others as one group, because policies may name any number of groups."""
    family = GaugeMetricFamily(f"{_PREFIX}{name}", what, labels=["group"])
    groups = sorted(values)
    for group in groups[:_MOST_GROUPS]:
        family.add_metric([group], values[group])
    if rest := [values[group] for group in groups[_MOST_GROUPS:]]:
        family.add_metric([_OTHER_GROUPS], merged(rest))
    return family


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}{name}", what, value=value)


def _seconds(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())
