"""Tests both kinds of the typed client with a real service that requires tokens, and with a slow, busy or absent
one."""

from __future__ import annotations

import ast
import asyncio
import itertools
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest

from groundskeeper_client import (
    AsyncClient,
    Client,
    Event,
    JobEndedError,
    NoAnswerError,
    Retries,
    UnreachableError,
    WaitedTooLongError,
    calls,
    models,
    problems,
)
from groundskeeper_client.submission import submitted_once
from jobs.contract import Outcome, Problem, Result
from service.access import token_store
from service.access.token import Role, issued
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.receiver import Received, Receiver, Reply
from tests.integration.serving import Serving
from tests.support.guides import GUIDE_OF_TOOLS, ROOT, python_block
from tests.support.small_table import SmallTable
from tests.support.stand_in import Answer, Asked, StandIn
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK = Retries(times=3, first=0.05, most=0.1)
ALONE = """
import sys
from importlib.metadata import distributions, version
from groundskeeper_client import AsyncClient, Client, calls
with Client(*sys.argv[1:]) as client:
    print([table.name for table in client.items(calls.list_tables())])
print(version("groundskeeper-client") == sys.modules["groundskeeper_client"].__version__)
print([found.name for found in distributions()])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client")


@pytest.fixture(scope="module")
def serving(folder: Path) -> Iterator[Serving]:
    SmallTable(folder / "orders").commit("20260101120000000", completed="20260101120001000")
    with Serving(folder, AUTOMATIC="false", ALLOWED_ROOTS=str(folder)) as serving:
        yield serving


@pytest.fixture(scope="module")
def token(serving: Serving) -> str:
    return bearer_of(serving, Role.ADMIN)


@pytest.fixture(scope="module")
def client(serving: Serving, token: str) -> Iterator[Client]:
    with Client(serving.url, token, retries=QUICK) as client:
        yield client


@pytest.fixture(scope="module")
def table(client: Client, folder: Path) -> models.TableOut:
    return client.send(calls.register_table(models.TableIn(base_path=str(folder / "orders"))))


@pytest.fixture
def worker(serving: Serving) -> Iterator[Worker]:
    headers = {"Authorization": f"Bearer {bearer_of(serving, Role.WORKER)}"}
    with httpx.Client(base_url=serving.url, headers=headers) as connection:
        yield Worker(connection)  # type: ignore[arg-type]  # it calls `post` only


class ProxyWithoutService(StandIn):
    """Answers like nginx without a running service behind it."""

    def __init__(self) -> None:
        self.asked = 0
        super().__init__(self._answer)

    def _answer(self, _: Asked) -> Answer:
        self.asked += 1
        return Answer(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"})


def bearer_of(serving: Serving, role: Role) -> str:
    bearer, token = issued("Ada", role, utc_now(), groups=("default",) if role is Role.WORKER else None)
    with writing(serving.engine) as connection:
        token_store.add(connection, token)
    return str(bearer)


@contextmanager
def working(worker: Worker, result: Result) -> Iterator[None]:
    """Ends the next job in a thread."""

    def work() -> None:
        until = time.monotonic() + 60
        # On a busy machine the job comes later.
        while (plan := worker.lease()) is None and time.monotonic() < until:
            time.sleep(0.05)
        assert plan is not None
        worker.beat(plan)
        worker.report(plan, result)

    thread = threading.Timer(0.3, work)
    thread.start()
    yield
    thread.join()


def test_a_job_is_submitted_and_waited_for(client: Client, table: models.TableOut, worker: Worker) -> None:
    assert table.name == "orders"
    job = client.send(calls.submit_job(table.id, models.AuditIn(dry_run=True)))
    with pytest.raises(WaitedTooLongError, match=r"still queued after 0\.2 s"):
        client.wait_for(job, seconds=0.2, poll_seconds=0.1)
    with working(worker, Result(Outcome.SUCCEEDED, details={"misplaced": 0})):
        ended = client.wait_for(job, seconds=20, poll_seconds=0.1)
    assert ended.state is models.JobState.SUCCEEDED
    assert ended.result == {"misplaced": 0}
    assert ended.attempts[0].outcome is not None


def test_a_job_that_fails_raises_with_its_reason(client: Client, table: models.TableOut, worker: Worker) -> None:
    job = client.send(calls.submit_job(table.id, models.CleaningIn(params=models.CleaningParams(retain=3))))
    why = Problem("table-unreadable", "The table cannot be read", "no such file", "Look", retriable=False)
    with (
        working(worker, Result(Outcome.FAILED, error=why)),
        pytest.raises(JobEndedError, match="The table cannot be read: no such file Look"),
    ):
        client.wait_for(job, seconds=20, poll_seconds=0.1)
    again = client.wait_for(job.id, check=False)
    assert again.state is models.JobState.FAILED


def test_a_retry_takes_the_job_of_an_earlier_try_until_that_job_is_of_no_use(
    client: Client, table: models.TableOut, worker: Worker
) -> None:
    def submit_once(run: str, tries: int, dry_run: bool = False) -> models.JobOut:
        return submitted_once(client, table.id, {"kind": "audit", "dry_run": dry_run}, run=[run], tries=tries)

    first = submit_once("run", tries=1)
    assert client.send(calls.cancel_job(submit_once("run", tries=3).id)).id == first.id
    second = submit_once("run", tries=2)
    assert second.id != first.id
    with working(worker, Result(Outcome.SUCCEEDED)):
        assert client.wait_for(second, seconds=20).id == submit_once("run", tries=3).id
    other = client.send(calls.cancel_job(submit_once("other run", tries=3).id))
    plan = submit_once("run", tries=1, dry_run=True)
    with working(worker, Result(Outcome.SUCCEEDED)):
        client.wait_for(plan, seconds=20)
    again = client.send(calls.cancel_job(submit_once("run", tries=2, dry_run=True).id))
    assert len({each.id for each in (first, second, other, plan, again)}) == 5


def test_a_job_is_waited_for_in_an_event_loop_beside_the_stream_of_its_events(
    serving: Serving, token: str, table: models.TableOut, worker: Worker
) -> None:
    async def run() -> tuple[models.JobDetail, list[Event]]:
        async with AsyncClient(serving.url, token) as client:
            seen: list[Event] = []

            async def listen() -> None:
                async for event in client.events("job.*", table_id=table.id, after=0):
                    seen.append(event)
                    if event.type == "job.succeeded" and event.data["job"]["id"] == job.id:
                        return

            job = await client.send(calls.submit_job(table.id, models.AuditIn()))
            listening = asyncio.create_task(listen())
            ended = await client.wait_for(job, seconds=20, poll_seconds=0.1)
            await asyncio.wait_for(listening, 20)
            return ended, [event for event in seen if event.data["job"]["id"] == job.id]

    with working(worker, Result(Outcome.SUCCEEDED)):
        ended, events = asyncio.run(run())
    assert ended.state is models.JobState.SUCCEEDED
    assert [event.type for event in events] == ["job.queued", "job.started", "job.succeeded"]
    assert [event.sequence for event in events] == sorted(event.sequence for event in events)


def test_the_example_of_the_guide_runs(
    client: Client, serving: Serving, token: str, folder: Path, worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    SmallTable(folder / "more").commit("20260101120000000", completed="20260101120001000")
    example = python_block(GUIDE_OF_TOOLS, "import AsyncClient")
    with working(worker, Result(Outcome.SUCCEEDED)):
        exec(example, {"SERVICE": serving.url, "TOKEN": token, "PATH": str(folder / "more")})
    assert capsys.readouterr().out.startswith("audit succeeded\n")
    for each in client.items(calls.list_tables()):
        if each.name == "more":
            client.send(calls.unregister_table(each.id))


@pytest.mark.exhaustive
def test_the_distribution_of_the_client_needs_httpx_and_msgspec_only(
    serving: Serving, token: str, table: models.TableOut, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", ROOT / "service" / "client"], check=True)
    ran = subprocess.run([python, "-c", ALONE, serving.url, token], cwd=tmp_path, capture_output=True, check=True)
    tables, is_of_one_version, installed = ran.stdout.decode().splitlines()
    assert tables == f"['{table.name}']"
    assert is_of_one_version == "True"
    of_httpx = {"anyio", "certifi", "h11", "httpcore", "idna", "sniffio", "typing_extensions"}
    assert set(ast.literal_eval(installed)) - of_httpx - {"pip", "setuptools"} == {
        "groundskeeper-client",
        "httpx",
        "msgspec",
    }


def test_all_items_of_a_list_are_found_over_its_pages(client: Client, serving: Serving, token: str) -> None:
    names = [f"pattern-{number}-*" for number in range(3)]
    created = [
        client.send(calls.create_webhook(models.WebhookIn(url=f"http://127.0.0.1:1/{name}"))).id for name in names
    ]
    assert [hook.id for hook in client.items(calls.list_webhooks(limit=1))] == created

    async def run() -> list[str]:
        async with AsyncClient(serving.url, token) as other:
            return [hook.id async for hook in other.items(calls.list_webhooks(limit=2))]

    assert asyncio.run(run()) == created
    for webhook_id in created:
        client.send(calls.delete_webhook(webhook_id))
    assert list(client.items(calls.list_webhooks())) == []


def test_a_refusal_is_an_error_of_its_type(client: Client, serving: Serving) -> None:
    with pytest.raises(problems.JobNotFoundError) as refused:
        client.send(calls.get_job("job_nothing"))
    assert refused.value.status == 404
    with Client(serving.url, "gk_nothing") as stranger, pytest.raises(problems.UnauthenticatedError):
        stranger.send(calls.list_tables())
    with Client(serving.url, bearer_of(serving, Role.READER)) as reader, pytest.raises(problems.ForbiddenError):
        reader.send(calls.pause(models.PauseIn(reason="x")))
    with Client(serving.url, "gk_nothing") as stranger, pytest.raises(problems.UnauthenticatedError):
        next(stranger.events())


def test_calls_and_the_stream_survive_an_outage_without_missing_an_event(
    client: Client, serving: Serving, token: str
) -> None:
    gate = TcpGate(httpx.URL(serving.url).port or 0)
    patient = Retries(times=20, first=0.1, most=0.2)
    with ThreadPoolExecutor(1) as asking, Client(f"http://127.0.0.1:{gate.port}", token, retries=patient) as behind:
        stream = behind.events("webhook.*,table.*", after=0)
        assert next(stream).type == "table.registered"
        with gate.shut():
            created = client.send(calls.create_webhook(models.WebhookIn(url="http://127.0.0.1:1/")))
            client.send(calls.disable_webhook(created.id))
            # The client asks before the service listens, until it does.
            asked = asking.submit(behind.send, calls.get_webhook(created.id))
            time.sleep(0.3)
        assert asked.result(60).disabled_because is not None
        types = {event.type for event in itertools.takewhile(lambda event: event.type != "webhook.disabled", stream)}
        assert types <= {"table.registered"}
        stream.close()
    gate.end()
    with Client(f"http://127.0.0.1:{gate.port}", retries=QUICK) as away, pytest.raises(UnreachableError) as error:
        away.send(calls.list_tables())
    assert not error.value.was_sent


def test_a_job_is_sent_again_to_a_busy_service_with_the_same_key_after_the_time_it_asks_for(
    client: Client, table: models.TableOut
) -> None:
    job = client.send(calls.submit_job(table.id, models.AuditIn()))
    body = msgspec.json.encode(client.send(calls.cancel_job(job.id)))
    done = Reply(202, {"Content-Type": "application/json"}, body)
    busy = [Reply(503, {"Retry-After": "1"}, b"{}"), Reply(429, {}, b"{}"), Reply(cut=0)]

    def answer(_got: Received) -> Reply:
        return busy[len(receiver.received) - 1] if len(receiver.received) <= len(busy) else done

    with Receiver(answer) as receiver, Client(receiver.url.removesuffix("/hook"), retries=QUICK) as other:
        began = time.monotonic()
        assert other.send(calls.submit_job(table.id, models.AuditIn())) == other.send(calls.cancel_job(job.id))
        assert time.monotonic() - began > 1.0
    *submitted, cancelled = receiver.received
    assert len(submitted) == 4
    [key] = {got.headers["idempotency-key"] for got in submitted}
    assert len(key) == 32
    assert "idempotency-key" not in cancelled.headers


def test_a_stream_behind_a_proxy_waits_for_the_service_and_then_gives_up() -> None:
    with ProxyWithoutService() as proxy, Client(proxy.url, retries=QUICK) as client:
        with pytest.raises(NoAnswerError, match="502"):
            next(client.events())
        assert proxy.asked == QUICK.times + 1


def test_a_call_that_may_have_taken_effect_is_not_repeated() -> None:
    with Receiver(Reply(503, {}, b"{}")) as receiver, Client(receiver.url.removesuffix("/hook")) as client:
        with pytest.raises(NoAnswerError, match="503"):
            client.send(calls.cancel_job("job_1"))
        receiver.answer = Reply(cut=0)
        with pytest.raises(UnreachableError) as error:
            client.send(calls.cancel_job("job_1"))
        assert error.value.was_sent
        assert len(receiver.received) == 2


def test_authorities_are_read_for_tls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    Client("http://service.example").close()
    with pytest.raises(FileNotFoundError):
        Client("https://service.example")
