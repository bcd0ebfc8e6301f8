"""Makes the facts of an installation with at least one problem of each kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.contract import WAITS_FOR, JobKind, Problem, Progress, WorkerInfo, WorkerState
from service.access.errors import SecretUnreadableError
from service.catalog.watch import Watch
from service.delivery.webhook import Webhook
from service.health.problem_facts import Backlog, Facts, Failures, Lost, TableFacts, WebhookFacts
from service.incidents.incident import IncidentKind
from service.lake.backlog import Cycle
from service.lake.commit import COMPACTION
from service.lake.metadata_table import MetadataTableState
from service.lake.snapshot import NotWritable, OtherRun, PartitionState, Since, Totals
from service.lake.table import TableType
from service.lake.table_lock import PolledLock
from service.model.job_errors import FenceLosesFlinkError
from service.outcome.objective import ObjectiveState
from service.policies.bucket_settings import ExpansionSettings
from service.policies.objective import ObjectiveSettings
from service.policies.policy import Pause, Policy
from service.policies.settings import GIB, MIB, ClusteringSettings, Mode
from service.queue.breaker import Breaker
from service.queue.job import Job, JobState
from service.queue.worker import Worker
from service.registration.catalogs.store import CatalogState
from service.scheduling.decision import Decision, Verdict
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago, an_incident, plan

if TYPE_CHECKING:
    from collections.abc import Mapping

UNUSABLE = "20260101110000000"
TABLE_ID = "tbl_it's $(here)"
_LARGE = PartitionState(
    "p", buckets=4, num_buckets=4, largest_bucket=1, largest_bucket_bytes=8 * GIB, base_bytes=8 * GIB
)
_JOB: Mapping[str, Any] = {"table_id": TABLE_ID, "created_at": ago(hours=2), "not_before": ago(hours=2)}


def _failing_catalog() -> CatalogState:
    error = Problem(type="catalog-unavailable", title="It is gone", hint="Start it.")
    report = {"counts": {"new": 1}, "findings": [{"name": "shop.orders"}]}
    since = {"failing_since": ago(hours=1), "differs_since": ago(hours=2)}
    return CatalogState("lake", NOW, failures=1, error=error, report=report, **since)


def everything_wrong() -> Facts:
    lost = Worker("w_1", WorkerInfo(group="large"), ago(days=2), ago(minutes=10), ("job_1",))
    unready = Worker("w_2", WorkerInfo(group="small", state=WorkerState.STARTING), ago(days=2), NOW)
    given_up: dict[str, Any] = {"given_up": 2, "given_up_since": ago(hours=2)}
    return Facts(
        tables=[_unread(), _behind(), _with_buckets(), _without_buckets(), *_decided()],
        backlogs=[Backlog("large", 3, ago(hours=1)), Backlog("small", 3, ago(hours=1))],
        workers=[lost, unready],
        lost={"w_1": Lost(1, ago(minutes=9))},
        webhooks=[
            WebhookFacts(_webhook(failing_since=ago(hours=1)), **given_up, replay_since=ago(hours=3)),
            WebhookFacts(_webhook(disabled_because="It is gone."), **given_up),
        ],
        pause=Pause(ago(days=2), "ops"),
        catalogs=[_failing_catalog()],
    )


def _table(**more: Any) -> TableFacts:
    known = {"watch": Watch(TABLE_ID, "/lake/t", NOW), "snapshot": a_snapshot()}
    return TableFacts(TABLE_ID, "t", "/lake/t", **{**known, **more})


def _unread() -> TableFacts:
    """Returns a table that is neither read nor polled, with a job for each kind of problem."""
    error = Problem("path-not-found", "The path does not exist", "/lake/t", "Bring it back.")
    watch = Watch(TABLE_ID, "/lake/t", ago(hours=1), failures=2, error=error, gap_at=ago(hours=1))
    waiting = Progress(f"planning{WAITS_FOR}the table's lock, held for 3 h by writer-7")
    failed = Failures(JobKind.CLEANING, 3, ago(days=1), ago(hours=1), "job_'3'", Problem("x", "It failed"))
    return _table(
        watch=watch,
        overdue_since=watch.next_poll_at,
        incidents=[an_incident(kind) for kind in IncidentKind],
        failures=[failed],
        unsettled=[Job("job_1", kind=JobKind.COMPACTION, state=JobState.UNKNOWN, **_JOB)],
        breakers=[
            Breaker(TABLE_ID, JobKind.CLEANING, "default", 2, 9.0, ago(hours=1), ago(hours=1), NOW, failed.error)
        ],
        held=[Job("job_2", kind=JobKind.COMPACTION, state=JobState.RUNNING, progress=waiting, **_JOB)],
    )


def _behind() -> TableFacts:
    """Returns a merge-on-read table without buckets and without compactions, cleanings and archivals, whose lock a dead
    writer holds."""
    left = [100, 200, 300, 400]
    cycles = tuple(
        Cycle(ago(hours=9 - number), mib * MIB, 900 * MIB, 900 * MIB, ago(hours=1), is_whole=True)
        for number, mib in enumerate(left)
    )
    dead = replace(plan("deltacommit", "inflight", at="002"), is_plan=False, heartbeat_at=ago(hours=3))
    return _table(
        policy=Policy(objective=ObjectiveSettings(read_overhead=1.2)),
        objective=ObjectiveState(
            NOW, 3.0, "a read costs 3.00 times what it would after a compaction, 1.2 allowed", ago(hours=1)
        ),
        snapshot=a_snapshot(
            since_compaction=Since(100),
            since_cleaning=Since(100),
            timeline_commits=1000,
            totals=Totals(base_bytes=GIB, log_bytes=2 * GIB, freed_files=9, freed_bytes=9 * GIB),
            cycles=cycles,
            pending=(dead, plan(hours=200), plan("clustering", hours=200, at="003")),
            lock=PolledLock(ago(hours=1), "a writer"),
            not_writable=NotWritable("storage-read-only", "Read only", "/lake/t", "Let it.", ago(hours=1), "job_1"),
            vanished=("001",),
            vanished_since=ago(hours=1),
            other_runs=(OtherRun(COMPACTION, "004", ago(hours=1), ago(hours=2)),),
            metadata_table=MetadataTableState(NOW, 31, log_files=40, log_bytes=MIB, missing=("003",)),
            clock={"disagreement": {"one_seconds": 0.2, "other_seconds": -28_800.0, "since": ago(hours=1).isoformat()}},
        ),
    )


def _with_buckets() -> TableFacts:
    snapshot = a_snapshot(
        num_buckets=4, large=_LARGE, skewed=_LARGE, pending=(plan("clustering", hours=200, at="20260101000000000"),)
    )
    return _table(snapshot=snapshot, policy=Policy(clustering=ClusteringSettings(enabled=True)))


def _without_buckets() -> TableFacts:
    snapshot = a_snapshot(table_type=TableType.COPY_ON_WRITE, totals=Totals(base_files=200, mergeable_files=200))
    return _table(snapshot=snapshot, policy=Policy(clustering=ClusteringSettings(sort_by=("city", "null"))))


def _decided() -> list[TableFacts]:
    """Returns decisions whose jobs cannot run or wait for long, and decisions with warnings."""
    expansion, clustering = JobKind.BUCKET_EXPANSION, JobKind.CLUSTERING
    uneven = a_snapshot(num_buckets=4, large=_LARGE, pending=(plan("clustering", at=UNUSABLE),))
    automatic = Policy(bucket_expansion=ExpansionSettings(mode=Mode.AUTO))
    withheld = "1 clustering plan withheld, since it would harm the table."
    unusable = _decision(clustering, Verdict.SKIP, "plan-unusable", f"{UNUSABLE} would break it")
    params = {"factor": 2, "partitions": ["day=it's", "day=ü"]}
    return [
        _table(snapshot=uneven, decisions={expansion: _decision(expansion, Verdict.SKIP, "uneven-keys")}),
        _table(
            snapshot=uneven,
            policy=automatic,
            decisions={expansion: _decision(expansion, Verdict.SUGGEST, "due", params=params)},
        ),
        _table(snapshot=uneven, decisions={clustering: unusable}),
        *(
            _table(decisions={kind: _decision(kind, Verdict.WAIT, FenceLosesFlinkError.type)})
            for kind in (clustering, expansion, JobKind.BUCKET_CONTRACTION)
        ),
        _table(decisions={clustering: _decision(clustering, Verdict.WAIT, SecretUnreadableError.type)}),
        _table(decisions={clustering: _decision(clustering, Verdict.WAIT, "table-busy", wanted_since=ago(days=1))}),
        *(
            _table(decisions={kind: _decision(kind, Verdict.SKIP, code, warning=warning)})
            for kind, code, warning in (
                (clustering, "off", withheld),
                (JobKind.CLEANING, "off", "Cleaning is off, but 1 fenced write may have left late files."),
                (expansion, "off", "Spark SQL writes the table."),
            )
        ),
    ]


def _decision(kind: JobKind, verdict: Verdict, code: str, because: str = "it is so", **more: Any) -> Decision:
    return Decision(kind, verdict, code, because, ago(days=1), NOW, **more)


def _webhook(**more: Any) -> Webhook:
    return Webhook("wh_'1'", "https://example.com", ago(days=3), ago(days=2), "", "", **more)
