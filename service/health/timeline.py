"""Problems that a table's timeline shows: incidents, dead writers, plans that nobody executes, and too many
instants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from jobs.contract import JobKind, WriterEngine
from jobs.kinds.words import ABANDONED_AFTER_SECONDS
from service.health.next_step import Step, clean, compact, diagnose, roll_back, start
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.incidents.incident import MISPLACING_ROWS, IncidentKind, IncidentState
from service.model.formatting import count, duration, first_of
from service.scheduling.pending_plans import ACTIONS

INCIDENT = Definition(
    ProblemKind.INCIDENT_STANDING,
    Severity.CRITICAL,
    "Rows are misplaced, or may be",
    "Readers miss rows or find them twice. Nothing is cleaned or archived meanwhile.",
    "Start a repair: it moves the rows to where they belong.",
)

DEAD_WRITER = Definition(
    ProblemKind.DEAD_WRITER,
    Severity.WARNING,
    "A writer died, and its write was not rolled back",
    "The instant keeps the timeline from being archived, and its files take up space.",
    "Run a cleaning: it rolls back writes whose heartbeat has expired, and those that were requested and never begun.",
)

DEAD_AFTER = timedelta(hours=1)
"""The problem exists after this time without a heartbeat. Writers send a heartbeat every minute, and the table's next
writer usually rolls back the write of a dead writer."""

ABANDONED_AFTER = timedelta(seconds=ABANDONED_AFTER_SECONDS)

PLAN_STUCK = Definition(
    ProblemKind.PLAN_STUCK,
    Severity.WARNING,
    "A plan on the timeline is not executed",
    "Its file groups are not compacted or clustered again, log files grow, and the timeline is not archived beyond "
    "the plan.",
    "Execute the plan by a job.",
)

TIMELINE_LONG = Definition(
    ProblemKind.TIMELINE_LONG,
    Severity.WARNING,
    "The active timeline is too long",
    "Readers and writers list all of its instants each time, so they become slower.",
    "Archive the timeline, and switch archival on in the table's policy or in one of its writers.",
)

LONG = 300
"""Number of completed commits from which this is a problem. Hudi's writers archive when there are more than 30
(`hoodie.keep.max.commits`)."""

ARCHIVAL_BEHIND = 2
"""If the policy archives, this is a problem from this many times the policy's threshold on."""

_NAMED = 5


def incidents(table: TableFacts, _now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each kind of incident."""
    by_kind = defaultdict(list)
    for each in table.incidents:
        by_kind[each.kind].append(each)
    for kind, found in by_kind.items():
        first = min(found, key=lambda each: each.opened_at)
        text = first.problem()
        is_open = any(each.state is IncidentState.OPEN for each in found)
        more = f" And {count(len(found) - 1, 'more incident')} of this kind." if len(found) > 1 else ""
        instants = [each.instant for each in found]
        yield INCIDENT.of(
            table.about,
            first.opened_at,
            f"{text.title}: {text.detail}{more}",
            {
                "incident_kind": kind.value,
                "incidents": len(found),
                "open": sum(each.state is IncidentState.OPEN for each in found),
                "instants": instants[:_NAMED],
            },
            step=_resolving(table, kind, instants),
            part=kind.value,
            severity=Severity.CRITICAL if is_open and kind is not IncidentKind.LATE_FILES else Severity.WARNING,
            remedy=text.hint,
        )


def _resolving(table: TableFacts, kind: IncidentKind, instants: list[str]) -> Step:
    if kind in MISPLACING_ROWS:
        return start(table.id, "Repair", JobKind.REPAIR, {"instants": instants[:1000]})
    if kind is IncidentKind.LATE_FILES:
        return clean(table.id, table.policy.cleaning)
    # The incident's text says how to repair the damage. After the repair, the next diagnosis closes the incident.
    return diagnose(table.id)


def dead_writer(table: TableFacts, now: datetime) -> HealthProblem | None:
    if table.snapshot is None or not table.is_readable:
        return None
    beats = {
        each.requested_time: each.heartbeat_at
        for each in table.snapshot.pending
        if each.heartbeat_at and not each.is_plan and now - each.heartbeat_at >= DEAD_AFTER
    }
    # Jobs never consider an instant that Flink has requested as abandoned.
    requests = {
        each.requested_time: each.requested_at
        for each in table.snapshot.pending
        if each.requested_at
        and each.awaits_writer()
        and WriterEngine.FLINK not in table.watch.engines
        and now - each.requested_at >= ABANDONED_AFTER
    }
    dead = beats | requests
    if not dead:
        return None
    decision = table.decisions.get(JobKind.ROLLBACK)
    said = []
    if beats:
        said.append(
            f"The last heartbeat of {first_of(list(beats), _NAMED)} was {duration(now - min(beats.values()))} ago."
        )
    if requests:
        age = duration(now - min(requests.values()))
        said.append(
            f"{first_of(list(requests), _NAMED)} {'was' if len(requests) == 1 else 'were'} requested {age} ago and"
            f" never begun."
        )
    why = [f"The policy: {decision.because}."] if decision else []
    beat = {"last_heartbeat_at": min(beats.values()).isoformat()} if beats else {}
    return DEAD_WRITER.of(
        table.about,
        min(dead.values()),
        " ".join([*said, *why]),
        {"instants": list(dead)[:_NAMED], "writes": len(dead), **beat},
        step=roll_back(table.id, min(dead)) if table.is_cleaning_refused else clean(table.id, table.policy.cleaning),
    )


def stuck_plans(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each table service. The policy sets the age from which a plan counts as stuck."""
    if table.snapshot is None or not table.is_readable:
        return
    policy = table.policy
    for kind, seconds in (
        (JobKind.COMPACTION, policy.compaction.stale_plan_seconds),
        (JobKind.CLUSTERING, policy.clustering.stale_plan_seconds),
    ):
        old = [
            (each.requested_at, each)
            for each in table.snapshot.pending
            if each.is_plan and each.action in ACTIONS[kind] and each.requested_at
        ]
        stuck = sorted((at, each.requested_time) for at, each in old if now - at >= timedelta(seconds=seconds))
        if not stuck:
            continue
        since = stuck[0][0]
        instants = [instant for _, instant in stuck]
        is_flink = WriterEngine.FLINK in table.watch.engines
        maker = f" A Flink job has probably made {'it' if len(stuck) == 1 else 'them'}." if is_flink else ""
        yield PLAN_STUCK.of(
            table.about,
            since + timedelta(seconds=seconds),
            f"{count(len(stuck), f'{kind.value} plan')} pending for up to {duration(now - since)} ({duration(seconds)}"
            f" allowed): {first_of(instants, _NAMED)}.{maker}",
            {"service": kind.value, "plans": len(stuck), "instants": instants[:_NAMED], "allowed_seconds": seconds},
            step=_executing(table, kind, instants),
            part=kind.value,
            remedy=_remedy(table, kind, is_flink=is_flink),
        )


def _remedy(table: TableFacts, kind: JobKind, *, is_flink: bool) -> str | None:
    if kind is JobKind.CLUSTERING and table.snapshot is not None and table.snapshot.num_buckets:
        return "Roll the plan back: it is a clustering plan by Hudi that would break the bucket index."
    if not is_flink:
        return None
    return (
        f"Execute the plan by a job while no Flink job executes {kind.value}s of the table, and give the Flink job the"
        " options that `writer-options` prints, so that it makes no further plans."
    )


def _executing(table: TableFacts, kind: JobKind, instants: list[str]) -> Step:
    if kind is JobKind.COMPACTION:
        return compact(table.id)
    if table.snapshot is not None and table.snapshot.num_buckets:
        return roll_back(table.id, instants[0])
    return start(table.id, "Cluster", kind, {})


def timeline_long(table: TableFacts, _now: datetime) -> HealthProblem | None:
    if table.snapshot is None or not table.is_readable:
        return None
    archival = table.policy.archival
    allowed = min(LONG, ARCHIVAL_BEHIND * archival.commits) if archival.enabled else LONG
    commits = table.snapshot.timeline_commits
    if commits <= allowed:
        return None
    decision = table.decisions.get(JobKind.ARCHIVAL)
    why = f" The policy: {decision.because}." if decision else ""
    remedy = "Archive the timeline, and see what the policy's archival waits for." if archival.enabled else None
    return TIMELINE_LONG.of(
        table.about,
        table.snapshot.taken_at,
        f"{count(commits, 'completed commit')} on the active timeline, more than {allowed}.{why}",
        {"timeline_commits": commits, "allowed": allowed, "archival_enabled": archival.enabled},
        step=start(table.id, "Archive", JobKind.ARCHIVAL, {"retain": archival.retain}),
        remedy=remedy,
    )
