"""Tests what notifications tell: how many messages, about what, and when; with a real receiver."""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from jobs.contract import JobKind
from service.api.event_catalogue import CATALOGUE
from service.catalog import table_store
from service.db.engine import reading, writing
from service.delivery import outbox
from service.delivery.message import Message, MessageState
from service.delivery.targets.registry import Target
from service.events.event import Event, EventType
from service.events.notifier import Notifier
from service.health import acknowledgement_store, problem_history, problem_store
from service.health.acknowledgement_store import Acknowledgement
from service.health.problem import About, HealthProblem, ObjectType, ProblemKind, Severity
from service.health.problem_events import problem_event
from service.health.problem_store import OpenProblem
from service.notifications import notifications as flows
from service.notifications import rounds, store
from service.notifications.notification import Weekly
from service.policies.policy import Window
from service.queue import attempt_figures
from service.queue.attempt_figures import Figures
from tests.integration.control_plane.posting import LOCAL, Post, a_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.notifications.notification import Notification
    from tests.integration.control_plane.conftest import FakeClock
    from tests.integration.receiver import Receiver

pytestmark = pytest.mark.mostly_sqlite

OPEN, RESOLVED, FAILED = MessageState.OPEN, MessageState.RESOLVED, MessageState.FAILED


class OnCall:
    """A notification and the problems that a test opens and ends."""

    def __init__(self, post: Post, clock: FakeClock, url: str) -> None:
        self.post, self.clock, self.url = post, clock, url
        self._seq = 0

    def put(self, target: Target = Target.WEBHOOK, **settings: Any) -> Notification:
        options = {"routing_key": "R" * 32, "url": self.url} if target is Target.PAGERDUTY else {"url": self.url}
        settings = {"link": "https://keeper.example.com", **settings}
        return flows.put(
            self.post.database, LOCAL, "on-call", target=target, options=options, settings=settings
        ).notification

    def open(self, problems: Iterable[HealthProblem]) -> None:
        with writing(self.post.engine) as connection:
            problem_store.add(connection, [OpenProblem(each, self.clock()) for each in problems])

    def announce(self, problems: Iterable[HealthProblem]) -> None:
        """Publishes the events of problems that have opened."""
        now = self.clock()
        with writing(self.post.engine) as connection:
            events = [
                problem_event(EventType.PROBLEM_OPENED, OpenProblem(each, now, base_path="/lake"), {}, now)
                for each in problems
            ]
            outbox.publish(connection, events, now=now)

    def end(self, problems: Iterable[HealthProblem]) -> None:
        with writing(self.post.engine) as connection:
            problem_store.delete(connection, [each.id for each in problems])

    def rise(self, problem: HealthProblem) -> None:
        with writing(self.post.engine) as connection:
            risen = dataclasses.replace(problem, severity=Severity.CRITICAL)
            problem_store.rewrite(connection, [OpenProblem(risen, self.clock())], self.clock())

    def fail(self, *tables: str) -> None:
        with writing(self.post.engine) as connection:
            outbox.publish(connection, [_failed(each, self.clock) for each in tables], now=self.clock())

    def run_round(self, after: float = 5) -> list[Message]:
        """Runs a round, and returns its messages."""
        self.clock.advance(after)
        rounds.run_once(self.post.database)
        with reading(self.post.engine) as connection:
            events = outbox.of_type(connection, EventType.NOTIFICATION_SENT, after_seq=self._seq, limit=10_000)
        self._seq = max([self._seq, *(each.seq for each in events)])
        for each in events:
            Draft202012Validator(CATALOGUE[EventType.NOTIFICATION_SENT].schema).validate(each.event.data)
        return [Message.from_json(each.event.data["message"]) for each in events]

    def known(self) -> int:
        with reading(self.post.engine) as connection:
            return len(store.reported(connection, "on-call"))

    def waiting(self) -> int:
        with reading(self.post.engine) as connection:
            return rounds.waiting(connection, self.post.database, store.get(connection, "on-call"))


@pytest.fixture
def on_call(post: Post, clock: FakeClock, receiver: Receiver) -> OnCall:
    return OnCall(post, clock, receiver.url)


def a_problem(number: int = 1, kind: ProblemKind = ProblemKind.LOCK_AWAITED, **more: Any) -> HealthProblem:
    given: dict[str, Any] = {"severity": Severity.WARNING, "evidence": {}, **more}
    return HealthProblem(
        kind=kind,
        about=About(ObjectType.TABLE, f"tbl_{number}", f"orders_{number}"),
        since=datetime(2026, 1, 1, tzinfo=UTC),
        title="Jobs wait for the table's lock",
        detail=f"The lock server of orders_{number} does not answer.",
        consequence="Nothing is done.",
        remedy="Start the server.",
        command=f"groundskeeper lock show tbl_{number}",
        **given,
    )


def _failed(name: str, clock: FakeClock) -> Event:
    error = {"type": "rows-differ", "title": "Rows differ", "detail": "7 of 9", "hint": "Look.", "retriable": False}
    job = {"id": f"job_{name}", "kind": "compaction", "dry_run": False, "error": error}
    table = {"id": f"tbl_{name}", "name": name, "base_path": f"/lake/{name}"}
    return Event(f"evt_{name}", EventType.JOB_FAILED, clock(), table["id"], {"table": table, "job": job})


def test_the_weekly_report_is_sent_once_whichever_replica_is_first(
    on_call: OnCall, receiver: Receiver, clock: FakeClock
) -> None:
    on_call.put(report=Weekly("mon", 8), time_zone="Europe/Berlin", events=())
    assert on_call.run_round() == []
    clock.now = datetime(2026, 1, 5, 6, 59, tzinfo=UTC)
    assert on_call.run_round() == []
    clock.now = datetime(2026, 1, 5, 7, 0, tzinfo=UTC)
    with writing(on_call.post.engine) as connection:
        figures = Figures(succeeded=3, seconds=7200, gb_seconds=7200, freed_bytes=5 << 30, files_deleted=9)
        attempt_figures.add(connection, "tbl_1", JobKind.CLEANING, figures, clock.now - timedelta(days=1))
    # Two replicas run at once, and each of them runs again, as after a restart.
    with ThreadPoolExecutor(4) as pool:
        replicas = [dataclasses.replace(on_call.post.database, notifier=Notifier()) for _ in range(2)]
        assert sum(each.messages for each in pool.map(rounds.run_once, replicas * 2, [0.5] * 4)) == 1
    [message] = on_call.run_round()
    assert (message.state, message.title) == (MessageState.REPORT, "Groundskeeper from 29 December to 05 January 2026")
    facts = {each.name: each.value for each in message.facts}
    assert (facts["Freed"], facts["Workers"], facts["Cost"]) == ("5.0 GiB in 9 files", "2.0 h, 2.0 GB-hours", "1.00")
    assert [(each.name, each.link) for each in message.entries] == [("tbl_1", None)]
    assert message.link is not None
    assert message.link.startswith("https://keeper.example.com/#/report?since=2025-12-29T07%3A00%3A00")
    on_call.post.deliver()
    assert [got.event["data"]["message"]["state"] for got in receiver.received] == ["report"]
    assert on_call.run_round() == []
    # A later hour is due in the next week only, since this week has its report.
    on_call.put(report=Weekly("mon", 9), time_zone="Europe/Berlin", events=())
    assert on_call.run_round() == []
    assert len(on_call.run_round(7 * 86_400 + 3600)) == 1
    # Reports that were due while no replica ran are sent once.
    assert len(on_call.run_round(21 * 86_400)) == 1
    assert on_call.run_round() == []


def test_the_report_counts_each_of_a_thousand_problems_that_the_limit_has_put_together(
    on_call: OnCall, clock: FakeClock
) -> None:
    clock.now = datetime(2026, 1, 4, tzinfo=UTC)
    on_call.put(most_per_hour=3, least_severity=Severity.NOTICE, report=Weekly("mon", 8), tables=())
    kinds = list(ProblemKind)
    problems = [a_problem(number, kinds[number % len(kinds)]) for number in range(1000)]
    on_call.open(problems)
    on_call.announce(problems)
    # A rise of the severity is announced, but does not count as another problem.
    on_call.announce([replace(problems[0], severity=Severity.CRITICAL)])
    assert len(on_call.run_round()) == 3
    clock.now = datetime(2026, 1, 5, 8, tzinfo=UTC)
    with reading(on_call.post.engine) as connection:
        counts = problem_history.counts(connection, clock.now - timedelta(days=7), clock.now)
    assert (counts.opened, counts.resolved, counts.open) == (1000, 0, 1000)
    assert sum(each.opened for each in counts.kinds) == 1000
    [message] = on_call.run_round()
    [words] = [each.value for each in message.facts if each.name == "Problems"]
    assert words.startswith("1000 opened, 0 resolved, 1000 open now; most often: ")
    # A report about some tables counts only the problems of these tables.
    with reading(on_call.post.engine) as connection:
        few = problem_history.counts(connection, clock.now - timedelta(days=7), clock.now, {"tbl_1", "tbl_2"})
    assert (few.opened, few.open) == (2, 2)


def test_an_hour_that_the_clocks_skip_is_due_once() -> None:
    weekly = Weekly("sun", 2)
    due = weekly.latest("Europe/Berlin", datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert due == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert weekly.before("Europe/Berlin", due) == datetime(2026, 3, 22, 1, tzinfo=UTC)
    assert weekly.latest("Europe/Berlin", due - timedelta(seconds=1)) == datetime(2026, 3, 22, 1, tzinfo=UTC)


def test_forty_tables_behind_one_dead_lock_server_are_one_message(on_call: OnCall) -> None:
    on_call.put()
    problems = [a_problem(number) for number in range(40)]
    on_call.open(problems)
    [message] = on_call.run_round()
    assert (message.state, message.count, message.more) == (OPEN, 40, 30)
    assert message.title == "Jobs wait for the table's lock: 40 tables"
    assert (message.consequence, message.remedy) == ("Nothing is done.", "Start the server.")
    assert message.entries[0].command.startswith("groundskeeper lock show tbl_")
    assert str(message.entries[0].link).startswith("https://keeper.example.com/#/tables/tbl_")
    assert on_call.run_round() == []
    on_call.end(problems[1:])
    assert on_call.run_round() == []
    on_call.end(problems[:1])
    [end] = on_call.run_round()
    assert (end.state, end.key, end.count) == (RESOLVED, message.key, 40)
    assert on_call.known() == 0


def test_a_thousand_problems_of_many_causes_stay_within_the_limit_and_none_is_lost(on_call: OnCall) -> None:
    on_call.put(most_per_hour=5, least_severity=Severity.NOTICE)
    kinds = list(ProblemKind)
    problems = [
        a_problem(number, kinds[number % len(kinds)], evidence={"error": f"e{number % 7}"}) for number in range(1000)
    ]
    on_call.open(problems)
    messages = on_call.run_round()
    assert len(messages) == 5
    last = messages[-1]
    assert "in one message" in last.title
    shown = sum(each.count for each in messages[:-1])
    assert int(last.title.split()[0]) == 1000 - shown
    assert on_call.known() == 1000
    assert on_call.waiting() == 0
    assert on_call.run_round() == []
    on_call.end(problems)
    # The limit of this hour is used up, so the ends of the problems are reported in the next hour.
    assert on_call.run_round() == []
    ended = on_call.run_round(3600)
    assert len(ended) == 5
    assert {each.state for each in ended} == {RESOLVED}
    assert on_call.known() == 0


def test_problems_wait_for_the_next_hour_if_its_messages_are_used_up(on_call: OnCall) -> None:
    on_call.put(most_per_hour=1)
    on_call.open([a_problem(1)])
    assert len(on_call.run_round()) == 1
    on_call.open([a_problem(2, ProblemKind.PLAN_STUCK)])
    on_call.fail("late")
    assert on_call.run_round() == []
    assert on_call.waiting() == 1
    [message] = on_call.run_round(3600)
    assert message.kind == "problems"
    assert {each.name for each in message.entries} == {
        "Warning: Jobs wait for the table's lock: orders_2",
        "Warning: Compaction has failed: late",
    }
    assert on_call.waiting() == 0


def test_further_tables_join_an_alert_which_is_sent_again_once_it_has_doubled(on_call: OnCall) -> None:
    on_call.put()
    on_call.open([a_problem(1), a_problem(2)])
    [first] = on_call.run_round()
    on_call.open([a_problem(3)])
    assert on_call.run_round() == []
    on_call.open([a_problem(4)])
    [second] = on_call.run_round()
    assert (second.key, second.count) == (first.key, 4)
    # Problems that open later get another alert, because they may have another cause.
    on_call.open([a_problem(5)])
    [third] = on_call.run_round(601)
    assert third.key != first.key


def test_a_problem_that_becomes_more_serious_is_reported_again(on_call: OnCall) -> None:
    on_call.put(Target.PAGERDUTY)
    on_call.open([a_problem(1)])
    [first] = on_call.run_round()
    on_call.rise(a_problem(1))
    end, again = on_call.run_round()
    assert (end.state, end.key, end.severity) == (RESOLVED, first.key, "warning")
    assert (again.state, again.severity) == (OPEN, "critical")
    assert again.key != first.key
    assert on_call.run_round() == []


def test_filters_are_by_severity_kind_and_table(on_call: OnCall) -> None:
    on_call.put(kinds=(ProblemKind.LOCK_AWAITED,), tables=("orders_1*",))
    on_call.open(
        [
            a_problem(1),
            a_problem(2),
            a_problem(11, severity=Severity.NOTICE),
            a_problem(12, ProblemKind.PLAN_STUCK),
        ]
    )
    on_call.fail("orders_13", "clicks")
    messages = on_call.run_round()
    assert [(each.state, each.entries[0].name) for each in messages] == [(OPEN, "orders_1"), (FAILED, "orders_13")]


@pytest.mark.parametrize("pattern", ["owner:sh*", "tag:team=shop"])
def test_tables_are_selected_by_owner_and_tag(on_call: OnCall, pattern: str) -> None:
    with writing(on_call.post.engine) as connection:
        for number, owner in ((1, "shop"), (2, "ads")):
            table = dataclasses.replace(a_table(number), owner=owner, tags={"team": owner})
            table_store.register(connection, table)
    on_call.put(tables=(pattern,))
    on_call.open([a_problem(1), a_problem(2)])
    [message] = on_call.run_round()
    assert [each.name for each in message.entries] == ["orders_1"]


def test_jobs_that_failed_for_one_reason_are_one_message_once(on_call: OnCall) -> None:
    on_call.fail("before")
    on_call.put()
    on_call.fail("a", "b")
    [message] = on_call.run_round()
    assert (message.title, message.count, message.remedy) == ("Compaction: 2 jobs have failed", 2, "Look.")
    assert [each.name for each in message.entries] == ["a", "b"]
    assert message.entries[0].detail == "Rows differ: 7 of 9"
    assert on_call.run_round() == []


def test_events_that_a_notification_does_not_report_cause_no_database_writes(on_call: OnCall) -> None:
    on_call.put()
    on_call.open([a_problem()])
    assert len(on_call.run_round()) == 1
    on_call.run_round()  # The message of the notification is an event, too.
    with reading(on_call.post.engine) as connection:
        before = store.get(connection, "on-call")
        assert outbox.newest(connection) > before.read_to
    on_call.fail("a")
    assert len(on_call.run_round()) == 1
    with reading(on_call.post.engine) as connection:
        assert store.get(connection, "on-call").read_to > before.read_to


def test_a_snooze_holds_all_messages_and_then_tells_the_problems_that_remain(on_call: OnCall) -> None:
    on_call.put()
    flows.snooze(on_call.post.database, "on-call", until=on_call.clock() + timedelta(hours=1), because="ada")
    on_call.open([a_problem(1, severity=Severity.CRITICAL), a_problem(2)])
    on_call.fail("a")
    assert on_call.run_round() == []
    assert on_call.waiting() == 2
    on_call.end([a_problem(2)])
    messages = on_call.run_round(3600)
    assert [each.state for each in messages] == [OPEN, FAILED]
    assert messages[0].entries[0].name == "orders_1"


def test_in_quiet_hours_only_critical_problems_are_reported(on_call: OnCall) -> None:
    window = Window(time(23), time(1))
    on_call.put(quiet_hours=(window,), time_zone="UTC")
    with reading(on_call.post.engine) as connection:
        assert store.get(connection, "on-call").is_quiet(on_call.clock())
    on_call.open([a_problem(1), a_problem(2, ProblemKind.PLAN_STUCK, severity=Severity.CRITICAL)])
    on_call.fail("a")
    [message] = on_call.run_round()
    assert message.kind == "plan-stuck"
    assert on_call.waiting() == 1
    messages = on_call.run_round(3600)
    assert sorted(each.state for each in messages) == [FAILED, OPEN]


def test_an_acknowledged_problem_is_not_reported(on_call: OnCall) -> None:
    on_call.put()
    on_call.open([a_problem(1), a_problem(2)])
    with writing(on_call.post.engine) as connection:
        acknowledgement_store.add(connection, [a_problem(1).id], Acknowledgement("ada", on_call.clock()))
    [message] = on_call.run_round()
    assert [each.name for each in message.entries] == ["orders_2"]
    with writing(on_call.post.engine) as connection:
        acknowledgement_store.remove(connection, [a_problem(1).id])
    assert [each.count for each in on_call.run_round()] == [2]


def test_a_problem_that_was_acknowledged_for_a_time_is_reported_again_afterwards(on_call: OnCall) -> None:
    on_call.put()
    on_call.open([a_problem(1)])
    [first] = on_call.run_round()
    known = Acknowledgement("ada", on_call.clock(), on_call.clock() + timedelta(hours=1), "the move")
    with writing(on_call.post.engine) as connection:
        acknowledgement_store.put(connection, a_problem(1).id, known)
    assert on_call.run_round() == []
    [again] = on_call.run_round(3600)
    assert (again.state, again.entries) == (OPEN, first.entries)
    assert again.key != first.key
    assert on_call.run_round() == []


def test_pagerduty_learns_once_that_all_problems_of_an_alert_are_acknowledged(on_call: OnCall) -> None:
    on_call.put(Target.PAGERDUTY, quiet_hours=())
    on_call.open([a_problem(1), a_problem(2)])
    [first] = on_call.run_round()

    def acknowledge(number: int) -> None:
        with writing(on_call.post.engine) as connection:
            known = Acknowledgement("ada", on_call.clock())
            acknowledgement_store.put(connection, a_problem(number).id, known)

    acknowledge(1)
    assert on_call.run_round() == []
    acknowledge(2)
    [known] = on_call.run_round()
    assert (known.state, known.key, known.ended_at) == (MessageState.ACKNOWLEDGED, first.key, None)
    assert on_call.run_round() == []
    # Somebody is on it already, so a further problem would not be noticed in that alert.
    on_call.open([a_problem(3)])
    [other] = on_call.run_round()
    assert (other.state, other.count) == (OPEN, 1)
    assert other.key != first.key
    with writing(on_call.post.engine) as connection:
        acknowledgement_store.remove(connection, [a_problem(1).id, a_problem(2).id])
    end, again = sorted(on_call.run_round(601), key=lambda each: each.state, reverse=True)
    assert (end.state, end.key) == (RESOLVED, first.key)
    assert (again.state, again.count) == (OPEN, 2)


def test_alertmanager_gets_open_alerts_again_before_they_end(on_call: OnCall) -> None:
    on_call.put(Target.ALERTMANAGER, most_per_hour=1)
    on_call.open([a_problem(1)])
    [first] = on_call.run_round()
    assert on_call.run_round(1700) == []
    [again] = on_call.run_round(200)
    assert (again.key, again.kind, again.severity) == (first.key, first.kind, first.severity)
    on_call.end([a_problem(1)])
    assert [each.state for each in on_call.run_round()] == [RESOLVED]


def test_a_message_is_sent_to_its_own_target_only(on_call: OnCall, receiver: Receiver) -> None:
    hook = on_call.post.webhook(on_call.url.replace("/hook", "/plain")).webhook
    on_call.put()
    on_call.open([a_problem(1)])
    on_call.run_round()
    on_call.post.deliver()
    assert [got.path for got in receiver.received] == ["/hook"]
    assert on_call.post.deliveries(hook.id) == []


def test_two_replicas_tell_a_problem_once(on_call: OnCall) -> None:
    on_call.put()
    on_call.open([a_problem(number) for number in range(5)])

    async def run_two_replicas() -> list[rounds.Round]:
        return await asyncio.gather(*(asyncio.to_thread(rounds.run_once, on_call.post.database) for _ in range(2)))

    assert sum(each.messages for each in asyncio.run(run_two_replicas())) == 1
