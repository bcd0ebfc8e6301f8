"""Tests the OpenLineage events of jobs from a real service to a real HTTP receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from groundskeeper_client import Client, calls, models, problems
from jobs.contract import Outcome, Problem, Result, WorkOrder
from service.access.secret_cipher import SecretCipher
from service.db.engine import reading
from service.delivery import lineage_webhook, webhook_store
from service.delivery.guard import Guard
from service.delivery.webhooks import disable
from service.events.database import Database
from service.model.errors import SettingsError
from tests.integration.control_plane.open_lineage import check
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import Serving, eventually
from tests.support.small_table import SmallTable, bucket_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from service.delivery.webhook import Webhook
    from tests.integration.control_plane.conftest import FakeClock

LINEAGE = "wh_openlineage"
JSON = {"content-type": "application/json"}
SECRET = "the-key-of-marquez"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Serving]:
    tmp_path = tmp_path_factory.mktemp("lineage")
    name = f"{bucket_id(0)}_0-1-0_20260101120000000.parquet"
    table = SmallTable(tmp_path / "orders")
    table.commit("20260101120000000", {"": {name: 100}}, completed="20260101120001000")
    # The service accepts a reported instant only if the timeline has it.
    table.commit("20260101130000000", action="replacecommit", operation="CLUSTER", completed="20260101130001000")
    columns = {"_hoodie_record_key": ["a"], "id": ["a"], "city": ["Ulm"]}
    pq.write_table(pa.table(columns), tmp_path / "orders" / name)
    settings = {
        "AUTOMATIC": "false",
        "ALLOWED_ROOTS": str(tmp_path),
        "RETRY_FIRST_SECONDS": "0.05",
        "WEBHOOK_SCHEDULE_SECONDS": "0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2",
        "WEBHOOK_POLL_SECONDS": "0.1",
        "OPENLINEAGE_URL": receiver.url,
        "OPENLINEAGE_API_KEY": SECRET,
        "OPENLINEAGE_NAMESPACE": "lake",
    }
    with Serving(tmp_path, **settings) as serving:
        yield serving


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Client]:
    with Client(serving.url) as client:
        yield client


@pytest.fixture(scope="module")
def table(client: Client, serving: Serving) -> models.TableOut:
    return client.send(calls.register_table(models.TableIn(base_path=str(serving.log.parent / "orders"))))


@pytest.fixture
def worker(serving: Serving) -> Iterator[Worker]:
    with httpx.Client(base_url=serving.url, headers=JSON) as connection:
        yield Worker(connection)  # type: ignore[arg-type]  # it calls `post` only


def end_job(client: Client, worker: Worker, job: models.JobOut, *results: Result) -> models.JobDetail:
    for result in results:
        leased: list[WorkOrder] = []

        def has_leased(leased: list[WorkOrder] = leased) -> bool:
            order = worker.lease()
            return order is not None and not leased.append(order)

        assert eventually(has_leased, 60)
        [order] = leased
        worker.beat(order)
        worker.report(order, result)
    return client.wait_for(job, seconds=10, poll_seconds=0.05, check=False)


def test_every_attempt_of_every_job_is_a_run_with_valid_events(
    serving: Serving, receiver: Receiver, client: Client, worker: Worker, table: models.TableOut
) -> None:
    problem = Problem("storage-error", "The storage failed", "no space", "Free some", retriable=True)
    failing = Result(Outcome.FAILED, error=problem)
    written = {"rows": 7, "bytes_read": 90, "bytes_written": 80, "files_read": 3, "files_written": -1}
    done = Result(Outcome.SUCCEEDED, ("20260101130000000",), written)
    clustering = models.ClusteringIn(params=models.ClusteringParams(sort_by=["id"]))
    job = client.send(calls.submit_job(table.id, clustering))
    assert end_job(client, worker, job, failing, done).state is models.JobState.SUCCEEDED
    client.send(calls.cancel_job(client.send(calls.submit_job(table.id, models.AuditIn())).id))
    assert eventually(lambda: len(receiver.received) >= 5, 60)
    client.send(calls.test_webhook(LINEAGE))
    assert eventually(lambda: len(receiver.received) >= 6, 60)

    events = [got.event for got in receiver.received]
    for event in events:
        check(event)
    assert [event["eventType"] for event in events] == ["START", "FAIL", "START", "COMPLETE", "ABORT", "OTHER"]
    start, fail, again, complete, _, _ = events
    assert start["run"]["runId"] == fail["run"]["runId"] != again["run"]["runId"] == complete["run"]["runId"]
    assert fail["run"]["facets"]["errorMessage"]["message"] == "The storage failed: no space: Free some"
    assert complete["run"]["facets"]["groundskeeper_job"]["instant"] == "20260101130000000"
    assert complete["job"]["namespace"] == "lake"
    [output] = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("file", table.base_path)
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["id", "city"]
    statistics = output["outputFacets"]["outputStatistics"]
    # A worker said that it wrote -1 files.
    assert (statistics["rowCount"], statistics["size"], "fileCount" in statistics) == (7, 80, False)

    headers = receiver.received[0].headers
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["content-type"] == "application/json"
    shown = client.send(calls.get_webhook(LINEAGE))
    assert list(shown.headers) == ["Authorization"]
    assert SECRET not in str(shown) + serving.log.read_text()


def test_an_endpoint_that_fails_stops_no_job_and_gets_everything_later(
    receiver: Receiver, client: Client, worker: Worker, table: models.TableOut
) -> None:
    receiver.received.clear()
    receiver.answer = Reply(500)
    job = client.send(calls.submit_job(table.id, models.AuditIn()))
    assert end_job(client, worker, job, Result(Outcome.SUCCEEDED)).state is models.JobState.SUCCEEDED
    assert eventually(lambda: bool(receiver.received), 60)
    receiver.answer = Reply(201)
    assert eventually(lambda: receiver.received[-1].event["eventType"] == "COMPLETE", 60)
    assert eventually(lambda: client.send(calls.get_webhook(LINEAGE)).failing_since is None, 60)


def test_only_public_http_endpoints_or_allowed_ones_may_be_given(client: Client) -> None:
    for url in ("openlineage+https://169.254.169.254/", "openlineage+http://example.com/", "openlineage+kafka://x/y"):
        with pytest.raises(problems.UrlNotAllowedError):
            client.send(calls.create_webhook(models.WebhookIn(url=url)))


def test_the_webhook_of_the_settings_follows_them(engine: sa.Engine, clock: FakeClock) -> None:
    cipher = SecretCipher.fresh()

    def ensure_webhook(url: str | None, api_key: str | None = None) -> Webhook | None:
        lineage_webhook.ensure(engine, clock, cipher, Guard(), url=url, api_key=api_key)
        with reading(engine) as connection:
            return next(iter(webhook_store.enabled(connection)), None)

    first = ensure_webhook("https://example.com/lineage")
    assert first is not None
    clock.advance(60)
    assert ensure_webhook("https://example.com/lineage") == first
    disable(Database(engine, clock), LINEAGE, because="410")
    assert ensure_webhook("https://example.com/lineage") is None
    changed = ensure_webhook("https://example.com/lineage", "a key")
    assert changed is not None
    assert changed.sealed_secret == first.sealed_secret
    assert ensure_webhook(None) is None
    assert ensure_webhook(None) is None
    for url, api_key in (("https://10.0.0.1/lineage", None), ("https://example.com/", "a\nb"), ("nonsense", None)):
        with pytest.raises(SettingsError, match="GROUNDSKEEPER_OPENLINEAGE_URL"):
            ensure_webhook(url, api_key)
