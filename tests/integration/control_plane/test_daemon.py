"""If a background task dies, the process ends with a message; if the database is unreachable, the process waits."""

from __future__ import annotations

import threading
import time
from email.utils import parsedate_to_datetime
from random import Random
from typing import TYPE_CHECKING

import httpx
import pytest

from service.delivery.dispatcher import Dispatcher, DispatcherConfig
from service.delivery.http import Sender
from service.delivery.kafka import KafkaSender
from service.delivery.smtp import SmtpSender
from service.delivery.transport import Transport
from service.events.notifier import Notifier
from service.model.clock import utc_now
from service.model.errors import DatabaseUnavailableError
from service.model.task_health import TaskHealth
from service.runtime.dispatch import DispatchThread
from service.runtime.local_worker import LocalWorkers
from service.runtime.process import Daemon, listen, url_of
from service.runtime.ticks import Tick
from tests.integration.serving import eventually
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi.testclient import TestClient

    from service.api.dependencies import AppContext


def _run(
    client: TestClient,
    tick: Callable[[], object],
    on_ready: Callable[[Daemon, str], None],
    *,
    seconds: float = 0.05,
    notified: threading.Event | None = None,
    idle_seconds: float = 0.0,
    notifier: Notifier | None = None,
) -> int:
    opened = listen("127.0.0.1", 0)
    notifier = notifier or Notifier()
    app_context: AppContext = client.app.state.context  # type: ignore[attr-defined]
    running: Daemon
    running = Daemon(
        client.app,  # type: ignore[arg-type]
        opened,
        notifier=notifier,
        ticks=[Tick("tick", seconds, tick, notified=notified, idle_seconds=idle_seconds)],
        workers=LocalWorkers([], count=0, environment={}, rng=Random(1)),
        dispatch=DispatchThread(
            notifier,
            lambda wake: Dispatcher(
                app_context.database.engine,
                utc_now,
                Random(1),
                notifier,
                app_context.database.cipher,
                transport=Transport(
                    Sender(app_context.guard), KafkaSender(app_context.guard), SmtpSender(app_context.guard)
                ),
                config=DispatcherConfig(),
                wake=wake,
            ),
            poll_seconds=1.0,
        ),
        on_ready=lambda: on_ready(running, url_of(opened)),
        tasks=app_context.monitoring.tasks,
    )
    before = threading.excepthook
    try:
        return running.run()
    finally:
        threading.excepthook = before


def test_a_tick_rests_while_it_finds_nothing_and_runs_soon_after_a_notification(client: TestClient) -> None:
    notifier = Notifier()
    has_work = threading.Event()
    runs: list[bool] = []

    def tick() -> bool:
        runs.append(has_work.is_set())
        return has_work.is_set()

    def start(daemon: Daemon, _url: str) -> None:
        def watch() -> None:
            try:
                assert eventually(lambda: len(runs) == 1, 60)
                time.sleep(0.5)
                assert len(runs) == 1
                has_work.set()
                notifier.notify()
                assert eventually(lambda: runs.count(True) >= 3, 60)
                has_work.clear()
                assert eventually(lambda: not runs[-1], 60)
                seen = len(runs)
                time.sleep(0.5)
                assert len(runs) == seen
            except AssertionError as error:
                failed.append(error)
            finally:
                daemon.stop()

        threading.Thread(target=watch).start()

    failed: list[AssertionError] = []
    assert _run(client, tick, start, idle_seconds=3600.0, notifier=notifier) == 0
    assert not failed


def test_answers_have_the_present_date_after_an_idle_pause(client: TestClient) -> None:
    ages: list[float] = []

    def start(daemon: Daemon, url: str) -> None:
        def watch() -> None:
            try:
                for pause in (0.0, 2.5):
                    time.sleep(pause)
                    date = parsedate_to_datetime(httpx.get(f"{url}/healthz").headers["Date"])
                    ages.append(time.time() - date.timestamp())
            finally:
                daemon.stop()

        threading.Thread(target=watch).start()

    assert _run(client, lambda: None, start) == 0
    assert len(ages) == 2
    assert max(ages) < 2.4


@pytest.mark.parametrize("notified", [None, threading.Event()])
def test_a_tick_with_a_bug_is_tried_again_and_the_service_is_not_ready_meanwhile(
    client: TestClient, caplog: pytest.LogCaptureFixture, notified: threading.Event | None
) -> None:
    is_mended = threading.Event()
    answers: list[httpx.Response] = []

    def fail_until_mended() -> None:
        if not is_mended.is_set():
            raise ZeroDivisionError("a bug")

    def start(daemon: Daemon, url: str) -> None:
        def has_status(status: int) -> bool:
            answers.append(httpx.get(f"{url}/readyz"))
            return answers[-1].status_code == status

        def watch() -> None:
            try:
                assert eventually(lambda: has_status(503), 60)
                assert "tick" in answers[-1].json()["detail"]
                assert httpx.get(f"{url}/healthz").status_code == 200
                is_mended.set()
                assert eventually(lambda: has_status(200), 60)
            finally:
                daemon.stop()

        threading.Thread(target=watch).start()

    assert _run(client, fail_until_mended, start, notified=notified) == 0
    assert "tick failed" in caplog.text


@pytest.mark.parametrize("notified", [None, threading.Event()])
def test_a_tick_that_hangs_is_named_until_it_runs_again(client: TestClient, notified: threading.Event | None) -> None:
    released = threading.Event()
    later = [0.0]
    state = client.app.state  # type: ignore[attr-defined]
    state.context = changed(state.context, tasks=TaskHealth(lambda: time.monotonic() + later[0]))

    def start(daemon: Daemon, url: str) -> None:
        def watch() -> None:
            try:
                time.sleep(0.2)
                assert httpx.get(f"{url}/readyz").status_code == 200
                later[0] = 61
                answer = httpx.get(f"{url}/readyz")
                assert (answer.status_code, answer.json()["type"]) == (503, "/problems/not-ready")
                assert "tick (for 6" in answer.json()["detail"]
                released.set()
                assert eventually(lambda: httpx.get(f"{url}/readyz").status_code == 200, 60)
            finally:
                released.set()
                daemon.stop()

        threading.Thread(target=watch).start()

    assert _run(client, lambda: released.wait(30), start, notified=notified) == 0


def test_a_tick_that_is_woken_runs_at_once(client: TestClient) -> None:
    notified = threading.Event()
    ticked = threading.Semaphore(0)

    def tick() -> None:
        notified.clear()
        ticked.release()

    def start(daemon: Daemon, _url: str) -> None:
        def watch() -> None:
            for _ in range(3):
                assert ticked.acquire(timeout=60)
                notified.set()
            daemon.stop()

        threading.Thread(target=watch).start()

    assert _run(client, tick, start, seconds=3600, notified=notified) == 0


def test_a_thread_that_dies_ends_the_process(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    def start(_daemon: Daemon, _url: str) -> None:
        def die() -> None:
            raise ZeroDivisionError("a bug")

        threading.Thread(target=die, name="poller").start()

    assert _run(client, lambda: None, start) == 1
    assert "poller died: a bug" in capsys.readouterr().err


@pytest.mark.parametrize("notified", [None, threading.Event()])
def test_a_tick_that_finds_the_database_away_tries_again(client: TestClient, notified: threading.Event | None) -> None:
    ticked = 0
    done = threading.Event()

    def raise_unavailable() -> None:
        nonlocal ticked
        ticked += 1
        if ticked > 3:
            done.set()
            return
        raise DatabaseUnavailableError("away")

    def start(daemon: Daemon, url: str) -> None:
        def watch() -> None:
            assert done.wait(60)
            assert httpx.get(f"{url}/healthz").status_code == 200
            daemon.stop()

        threading.Thread(target=watch).start()

    assert _run(client, raise_unavailable, start, notified=notified) == 0
    assert ticked > 3


def test_calls_over_one_connection_do_not_wait_for_each_other(client: TestClient) -> None:
    """Nagle's algorithm would add the 40 ms of a delayed acknowledgement to each call."""
    took: list[float] = []

    def start(daemon: Daemon, url: str) -> None:
        def call() -> None:
            with httpx.Client(base_url=url) as http:
                for _ in range(21):
                    began = time.perf_counter()
                    http.get("/healthz").raise_for_status()
                    took.append(time.perf_counter() - began)
            daemon.stop()

        threading.Thread(target=call).start()

    assert _run(client, lambda: None, start, seconds=60) == 0
    assert sorted(took)[5] < 0.03
