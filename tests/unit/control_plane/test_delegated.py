"""Tests plans that writers delegate: the content of requests, and the time at which each plan is executed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.contract import BucketIndex, JobKind, WriterEngine
from service.delegation.plan import (
    DelegatedPlan,
    DelegatedService,
    ExecutionHints,
    PlanState,
    data_table_of,
    instants_of,
    plan_id,
)
from service.lake.snapshot import Pending
from service.policies.policy import GROUP_PATTERN
from service.scheduling.decision import Run, Skip, Wait
from service.scheduling.delegated import Facts, decide, ended, waiting
from service.scheduling.trigger_context import TriggerContext
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

AT, LATER = "20260101115900000", "20260101115930000"
PLAIN = TriggerContext(NOW)
COMPACTION, CLUSTERING, CLEANING = JobKind.COMPACTION, JobKind.CLUSTERING, JobKind.CLEANING


def asked(service: str = "compact", instant: str = AT, **changes: Any) -> DelegatedPlan:
    plan = DelegatedPlan(
        id=plan_id("/lake/t", DelegatedService(service), instant, is_metadata=False),
        base_path="/lake/t",
        service=DelegatedService(service),
        instant=instant,
        is_metadata=False,
        table_name="t",
        requested_by="a writer",
        requested_at=ago(minutes=1),
        last_requested_at=ago(minutes=1),
        state=PlanState.WAITING,
        table_id="tbl_1",
    )
    return replace(plan, **changes)


def pending(action: str = "compaction", state: str = "requested", instant: str = AT) -> Pending:
    return Pending(instant, action, state, ago(minutes=1), is_plan=action != "clean")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        (f"{LATER},{AT}", (AT, LATER)),
        (f" {AT} ,,{AT},", (AT,)),
        ("20260101115900", ("20260101115900",)),
        ("20260101115900000001", ("20260101115900000001",)),
    ],
)
def test_a_request_names_each_plan_once(text: str, found: tuple[str, ...]) -> None:
    assert instants_of(text) == found


@pytest.mark.parametrize("text", ["x", "../../etc", f"{AT}.compaction", "٢٠٢٦٠١٠١١١٥٩٠٠٠٠٠", "2026", f"{AT};{LATER}"])
def test_an_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an instant"):
        instants_of(text)


def test_a_request_names_a_bounded_number_of_plans() -> None:
    assert len(instants_of(",".join(str(20260101000000000 + number) for number in range(1000)))) == 1000
    with pytest.raises(ValueError, match="more than 1000"):
        instants_of(",".join(str(20260101000000000 + number) for number in range(1001)))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("s3a://lake/t", ("s3a://lake/t", False)),
        ("s3a://lake/t/.hoodie/metadata", ("s3a://lake/t", True)),
        ("s3a://lake/t/.hoodie/metadata/", ("s3a://lake/t", True)),
        ("/.hoodie/metadata", ("/.hoodie/metadata", False)),
        ("s3a://lake/t/.hoodie/metadata2", ("s3a://lake/t/.hoodie/metadata2", False)),
    ],
)
def test_the_metadata_table_belongs_to_its_table(path: str, found: tuple[str, bool]) -> None:
    assert data_table_of(path) == found


def hints(**given: str) -> ExecutionHints:
    sent = {"queue": "default", "resource": "spark:4g,4g", "parallelism": "100", "engine": "SPARK", "username": "me"}
    return ExecutionHints.parse(**{**sent, **given}, group_pattern=GROUP_PATTERN)


def test_hints_are_bounded_and_never_fail() -> None:
    assert hints() == ExecutionHints(None, "spark:4g,4g", 100, "spark", "me")
    assert hints(queue="etl").queue == "etl"
    assert [hints(queue=text).queue for text in ("", "a b", "x" * 25, "../x", "ü")] == [None] * 5
    assert [hints(parallelism=text).parallelism for text in ("", "-1", "1e9", "0", "٣", "9" * 5000)] == [None] * 6
    assert hints(parallelism="99999999").parallelism == 10_000
    assert [hints(engine=text).engine for text in ("", "a b", "x" * 17)] == [None] * 3
    assert hints(resource="x\x00\n" * 1000).resource == "x" * 256
    assert ExecutionHints.from_json(hints(queue="etl").to_json()) == hints(queue="etl")
    assert ExecutionHints.from_json({"queue": 1, "parallelism": "x"}) == ExecutionHints()


def test_exactly_the_delegated_plans_are_executed() -> None:
    snapshot = a_snapshot(pending=(pending(), pending(instant=LATER), pending("clean", instant="20260101115931000")))
    found = decide(COMPACTION, [asked()], snapshot, PLAIN, Facts())
    assert found == Run(COMPACTION, {"plans": [AT]}, f"1 compaction plan delegated by a writer ({AT})")
    both = decide(COMPACTION, [asked(instant=LATER), asked()], snapshot, PLAIN, Facts())
    assert isinstance(both, Run)
    assert both.params == {"plans": [AT, LATER]}
    assert decide(CLUSTERING, [asked()], snapshot, PLAIN, Facts()) is None
    assert decide(COMPACTION, [asked()], a_snapshot(), PLAIN, Facts()) is None


def test_a_plan_that_another_process_has_begun_is_left_alone() -> None:
    begun = a_snapshot(pending=(pending(state="inflight"),))
    found = decide(COMPACTION, [asked()], begun, PLAIN, Facts())
    assert isinstance(found, Skip)
    assert found.code == "plan-running"
    ours = replace(PLAIN, own_instants=frozenset({AT}))
    again = decide(COMPACTION, [asked()], begun, ours, Facts())
    assert isinstance(again, Run)
    # The age of a plan is no proof that its runner is dead.
    assert again.params == {"plans": [AT]}
    # A plan that no runner has begun comes first.
    mixed = a_snapshot(pending=(pending(state="inflight"), pending(instant=LATER)))
    first = decide(COMPACTION, [asked(), asked(instant=LATER)], mixed, ours, Facts())
    assert isinstance(first, Run)
    assert first.params == {"plans": [LATER]}


def test_a_plan_that_the_last_job_withheld_is_not_executed_again() -> None:
    context = TriggerContext(NOW, withheld=frozenset({AT}))
    snapshot = a_snapshot(pending=(pending(), pending(instant=LATER)))
    both = decide(COMPACTION, [asked(), asked(instant=LATER)], snapshot, context, Facts())
    assert isinstance(both, Run)
    assert both.params == {"plans": [LATER]}
    alone = decide(COMPACTION, [asked()], snapshot, context, Facts())
    assert isinstance(alone, Skip)
    assert alone.code == "plan-withheld"
    assert AT in alone.because


def test_hudis_clustering_of_a_bucket_table_is_withheld_with_the_reason() -> None:
    snapshot = a_snapshot(pending=(pending("clustering"),), num_buckets=4)
    found = decide(CLUSTERING, [asked("cluster")], snapshot, PLAIN, Facts())
    assert isinstance(found, Skip)
    assert (found.code, "would break the bucket index" in found.because) == ("plan-unusable", True)
    [seen] = waiting([asked("cluster")], snapshot, {CLUSTERING: found}, ())
    assert (seen.state, seen.because) == (PlanState.WITHHELD, f"{found.because}.")
    plain = decide(CLUSTERING, [asked("cluster")], replace(snapshot, num_buckets=0), PLAIN, Facts())
    assert isinstance(plain, Run)


def test_a_clean_is_left_to_its_writer_while_that_commits() -> None:
    plan = asked("clean", requested_at=ago(hours=2))
    snapshot = a_snapshot(pending=(pending("clean"),), last_commit_at=ago(minutes=9))
    found = decide(CLEANING, [plan], snapshot, PLAIN, Facts())
    assert isinstance(found, Skip)
    assert (found.code, found.until) == ("plan-of-writer", ago(minutes=-1))
    silent = decide(CLEANING, [plan], replace(snapshot, last_commit_at=ago(minutes=10)), PLAIN, Facts())
    assert isinstance(silent, Run)
    assert silent.params == {"plans": [AT]}


def test_the_queue_of_a_request_is_the_worker_group_if_a_worker_of_it_is_alive() -> None:
    snapshot = a_snapshot(pending=(pending("clustering"),))
    plan = asked("cluster", hints=ExecutionHints(queue="etl", parallelism=7))
    found = decide(CLUSTERING, [plan], snapshot, PLAIN, Facts(groups={"etl"}))
    assert isinstance(found, Run)
    assert (found.worker_group, found.params["parallelism"]) == ("etl", 7)
    alone = decide(CLUSTERING, [plan], snapshot, PLAIN, Facts(groups={"default"}))
    assert isinstance(alone, Run)
    assert (alone.worker_group, "no worker of the group 'etl' is alive" in alone.because) == (None, True)


def test_a_plan_ends_when_a_later_poll_no_longer_shows_it() -> None:
    fresh, old = a_snapshot(taken_at=NOW), a_snapshot(taken_at=ago(minutes=2))
    [gone] = ended([asked()], fresh, PLAIN, Facts())
    assert gone.state is PlanState.GONE
    [done] = ended([asked()], fresh, PLAIN, Facts(completed={AT}))
    assert done.state is PlanState.DONE
    # A poll that is older than the request proves nothing, unless the request is long ago.
    assert ended([asked()], old, PLAIN, Facts()) == []
    long_ago = asked(requested_at=ago(hours=1), last_requested_at=ago(hours=1))
    assert len(ended([long_ago], replace(old, taken_at=ago(hours=2)), PLAIN, Facts())) == 1
    assert ended([asked()], a_snapshot(pending=(pending(),)), PLAIN, Facts(completed={AT})) == []


def test_a_plan_says_what_it_waits_for() -> None:
    snapshot = a_snapshot(pending=(pending(), pending(instant=LATER)))
    plans = [asked(), asked(instant=LATER), asked(is_metadata=True)]
    seen = waiting(plans, snapshot, {COMPACTION: Wait("table-busy", "a cleaning runs")}, {LATER})
    assert [(each.plan.instant, each.state) for each in seen] == [
        (AT, PlanState.WAITING),
        (AT, PlanState.WITHHELD),
    ]
    assert seen[0].because == "a cleaning runs."


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_a_delegating_writer_plans_compaction_and_nothing_else(engine: WriterEngine) -> None:
    target = Target("/lake/t", index=BucketIndex(4, ("id",)), num_buckets=4)
    url = "http://writer:key@gk:8080"
    found = writer_options(target, engine, callback=Callback("http://gk/x"), manager=url).options
    manager = "hoodie.table.service.manager"
    assert found[f"{manager}.enabled"] == "true"
    assert found[f"{manager}.uris"] == url
    # Hudi delegates nothing without compaction in this option; if clean is in it, both the writer and this service
    # clean.
    assert found[f"{manager}.actions"] == "compaction,clustering"
    assert found["hoodie.clean.automatic"] == found["hoodie.clustering.inline"] == "false"
    plans = "compaction.schedule.enabled" if engine is WriterEngine.FLINK else "hoodie.compact.inline"
    assert found[plans] == "true"
    assert found[f"hoodie.metadata.{manager.removeprefix('hoodie.')}.enabled"] == "false"
    without = writer_options(target, engine, callback=Callback("http://gk/x")).options
    assert not [name for name in without if "service.manager" in name]
