"""Tests the events of problems that open and are resolved: their receivers, their number, and the behaviour during
faults."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa
from jsonschema import Draft202012Validator

from jobs.contract import JobKind
from service.api.event_catalogue import CATALOGUE
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.event import EventType
from service.events.notifier import Notifier
from service.health import late_services, problem_rounds, problem_store, problems
from service.health.cached_problems import ProblemCache
from service.health.problem import ProblemKind, Severity
from service.health.problem_changes import MOST_EVENTS
from service.policies import pause_store
from service.policies.policy import Pause
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.integration.receiver import Receiver
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.events.event import Event
    from service.health.problem_rounds import Round
    from tests.integration.control_plane.conftest import FakeClock
    from tests.support.postgresql import Server

EVERY = timedelta(seconds=30)
OPENED, RESOLVED = EventType.PROBLEM_OPENED, EventType.PROBLEM_RESOLVED


class Watchman:
    """Runs rounds of the problem watch, and returns the events since the last call."""

    def __init__(self, engine: sa.Engine, clock: FakeClock) -> None:
        self.engine, self.clock = engine, clock
        self._seq = 0

    def round(self) -> Round:
        self.clock.advance(EVERY.total_seconds())
        return problem_rounds.run_once(self.engine, Notifier(), self.clock, every=EVERY, cache=ProblemCache())

    def events(self) -> list[Event]:
        with reading(self.engine) as connection:
            found = outbox.after(connection, self._seq, 100_000)
        self._seq = max([self._seq, *(each.seq for each in found)])
        events = [each.event for each in found if each.event.type.startswith("problem.")]
        for event in events:
            Draft202012Validator(CATALOGUE[EventType(event.type)].schema).validate(event.data)
        return events

    def kinds(self) -> list[tuple[str, str]]:
        return [(event.type, event.data["problem"]["kind"]) for event in self.events()]

    def standing(self) -> Counter[str]:
        with reading(self.engine) as connection:
            return Counter(each.kind.value for each in problem_store.every(connection))


@pytest.fixture
def watchman(engine: sa.Engine, clock: FakeClock) -> Watchman:
    return Watchman(engine, clock)


def tables(engine: sa.Engine, clock: FakeClock, numbers: range) -> None:
    """Stores tables that have a decision with a warning each."""
    for number in numbers:
        table_id, now = f"tbl_{number}", clock()
        with writing(engine) as connection:
            table_store.register(connection, Registration(table_id, f"/lake/{number}", f"t{number}", now, now))
            warn(connection, table_id, clock)


def warn(connection: sa.Connection, table_id: str, clock: FakeClock, warning: str | None = "A plan harms.") -> None:
    now = clock()
    decision = Decision(JobKind.CLEANING, Verdict.SKIP, "off", "it is off", now, now, warning=warning)
    decision_store.record(connection, table_id, [decision], {})


def pause(engine: sa.Engine, clock: FakeClock, days: float = 2) -> None:
    with writing(engine) as connection:
        pause_store.pause(connection, Pause(clock() - timedelta(days=days), "ada", "holidays"))


def resume(engine: sa.Engine) -> None:
    with writing(engine) as connection:
        pause_store.resume(connection)


def test_a_problem_is_announced_when_it_opens_and_when_it_is_resolved(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    tables(engine, clock, range(1))
    assert watchman.round().opened == 1
    assert watchman.round().opened == 0
    [event] = watchman.events()
    assert (event.type, event.table_id, event.table_name) == (OPENED, "tbl_0", "t0")
    assert event.data["table"]["base_path"] == "/lake/0"
    assert event.data["open"] == {"critical": 0, "warning": 0, "notice": 1}
    problem = event.data["problem"]
    assert (problem["kind"], problem["opened_at"]) == ("policy-warning", event.at.isoformat())
    assert "A plan harms." in problem["detail"]
    with reading(engine) as connection:
        [listed] = problem_store.every(connection)
        assert problem_store.counts(connection) == {(ProblemKind.POLICY_WARNING, Severity.NOTICE): 1}
    assert (listed.id, listed.detail) == (problem["id"], problem["detail"])
    with writing(engine) as connection:
        warn(connection, "tbl_0", clock, None)
    watchman.round()
    assert watchman.events() == []
    watchman.round()
    [event] = watchman.events()
    assert (event.type, event.data["problem"]["id"]) == (RESOLVED, problem["id"])
    assert event.data["problem"]["resolved_at"] == event.at.isoformat()
    assert not watchman.standing()


def test_a_problem_that_is_absent_for_one_round_only_is_not_resolved(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    for _ in range(3):
        pause(engine, clock)
        watchman.round()
        resume(engine)
        watchman.round()
    assert watchman.kinds() == [(OPENED, "jobs-paused")]
    watchman.round()
    assert watchman.kinds() == [(RESOLVED, "jobs-paused")]
    pause(engine, clock)
    watchman.round()
    assert watchman.kinds() == [(OPENED, "jobs-paused")]


def test_the_problems_of_a_table_that_is_gone_are_resolved(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    tables(engine, clock, range(1))
    watchman.round()
    with writing(engine) as connection:
        connection.execute(schema.tables.delete())
    watchman.round()
    watchman.round()
    assert [(event.type, event.table_name) for event in watchman.events()] == [(OPENED, "t0"), (RESOLVED, "t0")]


def test_thousands_of_problems_that_open_at_once_are_announced_in_several_rounds(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    """The most serious problems come first; a problem that is resolved before its turn is never announced."""
    tables(engine, clock, range(MOST_EVENTS + 20))
    with writing(engine) as connection:
        connection.execute(
            schema.watches.update()
            .where(schema.watches.c.table_id == f"tbl_{MOST_EVENTS + 5}")
            .values(failures=5, error={"type": "path-not-found", "title": "It is gone", "retriable": False})
        )
    watchman.round()
    first = watchman.events()
    assert len(first) == MOST_EVENTS
    assert first[0].data["problem"]["kind"] == "table-unreadable"
    assert first[0].data["open"] == {"critical": 1, "warning": 0, "notice": MOST_EVENTS + 20}
    told = {event.data["problem"]["id"] for event in first}
    with reading(engine) as connection:
        silent = [each for each in problem_store.every(connection) if each.id not in told]
    assert len(silent) == 21
    with writing(engine) as connection:
        warn(connection, str(silent[0].table_id), clock, None)
    watchman.round()
    later = {event.data["problem"]["id"] for event in watchman.events()}
    assert later == {each.id for each in silent[1:]}
    watchman.round()
    with writing(engine) as connection:
        connection.execute(schema.tables.delete())
    ends = []
    for _ in range(4):
        watchman.round()
        ends.append(watchman.events())
    assert [len(each) for each in ends] == [0, MOST_EVENTS, 20, 0]
    assert {event.data["problem"]["id"] for each in ends for event in each} == told | later
    assert not watchman.standing()


def test_a_failing_computation_neither_stops_the_others_nor_resolves_its_problems(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables(engine, clock, range(2))
    watchman.round()
    assert len(watchman.events()) == 2

    def fail_for_first_table(table: problems.TableFacts, now: object) -> Iterator[problems.HealthProblem]:
        if table.id == "tbl_1":
            raise ZeroDivisionError
        yield from late_services.warned(table, clock())

    monkeypatch.setattr(
        problems,
        "OF_TABLES",
        {
            fail_for_first_table if find is late_services.warned else find: kinds
            for find, kinds in problems.OF_TABLES.items()
        },
    )
    with writing(engine) as connection:
        warn(connection, "tbl_0", clock, None)
        warn(connection, "tbl_1", clock, None)
    pause(engine, clock)
    for _ in range(3):
        watchman.round()
    assert [(event.type, event.table_id) for event in watchman.events()] == [(OPENED, None), (RESOLVED, "tbl_0")]
    monkeypatch.undo()
    watchman.round()
    watchman.round()
    assert [(event.type, event.table_id) for event in watchman.events()] == [(RESOLVED, "tbl_1")]


@pytest.mark.parametrize(
    "broken",
    [
        "UPDATE snapshots SET summary = '{\"table_type\": 7}' WHERE table_id = 'tbl_1'",
        "UPDATE decisions SET verdict = 'perhaps' WHERE table_id = 'tbl_1'",
    ],
)
def test_a_table_whose_rows_are_nonsense_does_not_hide_the_others(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman, broken: str
) -> None:
    tables(engine, clock, range(3))
    with writing(engine) as connection:
        connection.execute(
            schema.snapshots.insert().values(table_id="tbl_1", taken_at=clock(), summary={"table_type": 7})
        )
        if not broken.startswith("UPDATE snapshots"):
            connection.execute(schema.snapshots.delete())
    watchman.round() if "decisions" in broken else None
    with writing(engine) as connection:
        connection.exec_driver_sql(broken)
        warn(connection, "tbl_0", clock, None)
    for _ in range(3):
        watchman.round()
    opened = {event.table_id for event in watchman.events() if event.type == OPENED}
    assert {"tbl_2"} < opened | {"tbl_0"}
    assert watchman.standing()["policy-warning"] == (2 if "decisions" in broken else 1)


def test_two_replicas_announce_each_change_once(engine: sa.Engine, clock: FakeClock, watchman: Watchman) -> None:
    tables(engine, clock, range(30))
    for change in ("open", "over", "over"):
        if change == "over":
            with writing(engine) as connection:
                connection.execute(schema.tables.delete())
        clock.advance(30)
        with ThreadPoolExecutor(4) as pool:
            rounds = list(
                pool.map(
                    lambda _: problem_rounds.run_once(engine, Notifier(), clock, every=EVERY, cache=ProblemCache()),
                    range(4),
                )
            )
        assert sum(bool(each.opened or each.found or each.resolved) for each in rounds) <= 1
    told = Counter(event.type for event in watchman.events())
    assert told == {OPENED: 30, RESOLVED: 30}


def test_problems_of_a_kind_of_a_newer_version_are_left_to_newer_replicas(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    pause(engine, clock)
    watchman.round()
    with writing(engine) as connection:
        connection.execute(schema.standing_problems.update().values(kind="of-tomorrow", id="prb_x", is_announced=False))
    resume(engine)
    for _ in range(3):
        watchman.round()
    assert not watchman.standing()
    assert number_of_stored(engine) == 1
    clock.advance(3600)
    watchman.round()
    watchman.round()
    assert number_of_stored(engine) == 0


def number_of_stored(engine: sa.Engine) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(schema.standing_problems)) or 0)


def test_a_problem_that_becomes_worse_is_announced_again(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables(engine, clock, range(1))
    watchman.round()
    watchman.events()
    worse = dataclasses.replace(late_services.WARNED, severity=Severity.CRITICAL)
    monkeypatch.setattr(late_services, "WARNED", worse)
    watchman.round()
    [event] = watchman.events()
    assert (event.type, event.data["problem"]["severity"]) == (OPENED, "critical")
    monkeypatch.undo()
    watchman.round()
    assert watchman.events() == []


def test_the_stored_problems_are_in_the_order_of_their_weight(
    engine: sa.Engine, clock: FakeClock, watchman: Watchman
) -> None:
    tables(engine, clock, range(7))
    pause(engine, clock)
    watchman.round()
    with reading(engine) as connection:
        every = problem_store.every(connection)
        first = problem_store.every(connection, 3)
    assert len(every) == 8
    assert every == sorted(every, key=lambda each: each.place)
    assert first == every[:3]


def disabled_webhook(url: str) -> str:
    with httpx.Client(base_url=url, headers={"Content-Type": "application/json"}) as http:
        created = http.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/", "types": ["webhook.test"]})
        assert created.status_code == 201, created.text
        webhook: str = created.json()["id"]
        assert http.post(f"/v1/webhooks/{webhook}/disable").status_code == 200
    return webhook


def test_a_service_sends_what_opens_and_is_resolved(tmp_path: Path) -> None:
    with Receiver() as receiver, Serving(tmp_path, PROBLEM_SECONDS="0.3", AUTOMATIC="false") as service:
        on_call = {"url": receiver.url, "types": ["problem.*"]}
        with httpx.Client(base_url=service.url, headers={"Content-Type": "application/json"}) as http:
            assert http.post("/v1/webhooks", json=on_call).status_code == 201
            webhook = disabled_webhook(service.url)
            assert eventually(lambda: len(receiver.received) == 1, 60)
            assert 'kind="webhook-disabled",severity="warning"} 1.0' in http.get("/metrics").text
            assert http.delete(f"/v1/webhooks/{webhook}").status_code == 204
            assert eventually(lambda: len(receiver.received) == 2, 60)
    opened, resolved = (each.event for each in receiver.received)
    assert [opened["type"].rpartition(".")[2], resolved["type"].rpartition(".")[2]] == ["opened", "resolved"]
    assert opened["data"]["problem"]["about"]["id"] == resolved["data"]["problem"]["about"]["id"] == webhook
    assert opened["data"]["open"] == {"critical": 0, "warning": 1, "notice": 0}


@pytest.mark.exhaustive
def test_three_services_on_one_database_send_each_change_once(postgresql: Server, tmp_path: Path) -> None:
    database, number = postgresql.new_database(), 20
    with Receiver() as receiver, ExitStack() as stack:
        services = [
            stack.enter_context(Serving(folder, database=database, PROBLEM_SECONDS="0.5", AUTOMATIC="false"))
            for folder in (tmp_path / str(each) for each in range(3))
            if folder.mkdir() is None
        ]
        with httpx.Client(base_url=services[0].url, headers={"Content-Type": "application/json"}) as http:
            on_call = {"url": receiver.url, "types": ["problem.*"]}
            assert http.post("/v1/webhooks", json=on_call).status_code == 201
            hooks = [disabled_webhook(services[each % 3].url) for each in range(number)]
            assert eventually(lambda: len(receiver.received) >= number, 60)
            services[1].kill()
            for webhook in hooks:
                assert http.delete(f"/v1/webhooks/{webhook}").status_code == 204
            assert eventually(lambda: len(receiver.received) >= 2 * number, 60)
            time.sleep(3)
    told = Counter((each.event["type"], each.event["data"]["problem"]["about"]["id"]) for each in receiver.received)
    assert len(told) == 2 * number
    assert set(told.values()) == {1}
