"""Tests the secrets of tables: where they may be visible, and the loss of their key."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from starlette.testclient import TestClient

from jobs.contract import Outcome, Problem, Result, TableLock
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher, key_from
from service.api.app import create_app
from service.catalog import table_store
from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from service.db.page import PageRequest
from service.registration import registry
from service.runtime import settings
from service.runtime.local_worker import LocalWorkers
from tests.integration.control_plane.protocol_worker import Worker
from tests.support.contexts import changed
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.api.dependencies import AppContext

HUSH = "pl4nted"
SEALED = "groundskeeper-sealed:"
# The options of this class are not known, so they may be anything. No name of the table's own options marks a secret.
PROVIDER = "com.example.Lock"
ORDERING, FIELDS = "hoodie.payload.ordering.field", "hoodie.table.ordering.fields"
LOCK = {
    "hoodie.write.lock.example.password": f"{HUSH}-lock",
    "hoodie.write.lock.zookeeper.url": "zk:2181",
    "hoodie.write.lock.example.url": f"jdbc:mysql://hudi:{HUSH}-jdbc@db/hive",
    "hoodie.write.lock.example.sealed": f"{SEALED}{HUSH}-forged",
}
OPTIONS = {
    ORDERING: f"mysql://hudi:{HUSH}-key@db",
    "hoodie.clustering.plan.strategy.partition.selected": f"https://lake.blob.core.windows.net/c?sv=1&sig={HUSH}-sas",
    "hoodie.payload.event.time.field": f"Authorization:Bearer {HUSH}-bearer",
    "hoodie.keygen.timebased.timezone": "UTC",
}
MASK = "******"
ERROR = f"Cannot connect to jdbc:mysql://hudi:{HUSH}-jdbc@db/hive: password={HUSH}-lock"


def _client(context: AppContext, cipher: SecretCipher) -> TestClient:
    return TestClient(
        create_app(changed(context, cipher=cipher, permissions=Permissions(classes=(PROVIDER,)))),
        base_url="http://127.0.0.1",
        headers={"Content-Type": "application/json"},
    )


def _body(base_path: str = "/lake/orders") -> dict[str, Any]:
    return {"base_path": base_path, "lock": {"provider": PROVIDER, "options": LOCK}, "hudi_options": OPTIONS}


class Daemon:
    """The service as a process, with the log level DEBUG and a umask that lets everybody read new files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GROUNDSKEEPER_")}
        environment |= {
            "GROUNDSKEEPER_LOG_LEVEL": "DEBUG",
            "GROUNDSKEEPER_ALLOWED_CLASSES": PROVIDER,
            "GROUNDSKEEPER_PLAN_SECONDS": "0.2",
            "GROUNDSKEEPER_STORAGE_OPTIONS": json.dumps({"fs.s3a.secret.key": f"{HUSH}-setting"}),
            "GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
        }
        with (folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service.cli", "serve", "--workers", "0", "--port", "0"],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                umask=0,
            )
        while not (ready := re.search(r"ready at (http://\S+)", self.output())):
            assert self._process.poll() is None, (self._process.returncode, self.output())
            time.sleep(0.1)
        self.http = httpx.Client(base_url=ready[1], timeout=30)

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def end(self) -> None:
        self.http.close()
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """The service of two tests; the second test ends it, to read all files that it has written."""
    daemon = Daemon(tmp_path_factory.mktemp("service"))
    yield daemon
    daemon.end()


def test_the_files_of_the_service_belong_to_its_owner_alone(daemon: Daemon) -> None:
    daemon.http.get("/v1/tables")
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in daemon.folder.iterdir() if path.name != "output"}
    names = {"groundskeeper.db", "groundskeeper.db-wal", "groundskeeper.db-shm", "groundskeeper.key"}
    assert files == dict.fromkeys(names, 0o600)


def test_a_secret_is_found_nowhere_but_in_the_work_order_of_a_leased_job(daemon: Daemon, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "lake" / "orders")
    table.commit("001")
    http, texts = daemon.http, []

    def call(method: str, path: str, **more: Any) -> httpx.Response:
        answer = http.request(method, path, **more)
        texts.append(answer.text)
        assert answer.status_code < 500, (path, answer.text)
        return answer

    hook = {"url": "http://127.0.0.1:9/", "types": ["*"], "headers": {"X-Key": f"{HUSH}-header"}}
    webhook = call("POST", "/v1/webhooks", json=hook).json()["id"]
    made = call("POST", "/v1/tables", json=_body(str(table.base)))
    assert made.status_code == 201, made.text
    path = f"/v1/tables/{made.json()['id']}"
    # The messages have no values of refused registrations, either.
    call("POST", "/v1/tables", json={**_body(), "hudi_options": {"password": [f"{HUSH}-wrong"]}})
    call("POST", "/v1/tables", json={"base_path": f"s3a://AKIA:{HUSH}-path@lake/orders"})
    call("POST", "/v1/tables", json={"base_path": f"/none?sig={HUSH}-query"})
    call("PATCH", path, json={"name": "renamed", "hudi_options": made.json()["hudi_options"]})
    job = call("POST", f"{path}/jobs", json={"kind": "audit"}).json()["id"]
    leased = http.post("/v1/worker/leases", json={"worker_id": "w"}).json()["plan"]
    assert (leased["table"]["lock"]["options"], leased["table"]["hudi_options"]) == (LOCK, OPTIONS)
    beat = {"attempt": 1, "progress": {"step": "reading"}, "instants": ["001"]}
    call("POST", f"/v1/worker/leases/{job}/heartbeat", json=beat)
    call("GET", f"/v1/jobs/{job}")
    result = Result(Outcome.FAILED, error=Problem("hudi-error", "A Hudi operation failed", ERROR))
    call("POST", f"/v1/worker/leases/{job}/result", json={"attempt": 1, "result": result.to_json()})
    assert call("GET", f"/v1/jobs/{job}").json()["error"]["detail"].count(MASK) == 2
    time.sleep(2)  # The time is enough for polls, decisions and deliveries.
    ids = {"table_id": made.json()["id"], "job_id": job, "webhook_id": webhook}
    for address, operations in call("GET", "/openapi.json").json()["paths"].items():
        if "get" in operations and address != "/v1/events":
            call("GET", re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], "none"), address))
    with http.stream("GET", "/v1/events", headers={"Last-Event-ID": "0"}) as stream:
        lines = stream.iter_lines()
        texts += [next(lines) for _ in range(12)]
    assert any("job.failed" in text for text in texts)
    daemon.end()
    texts.append(daemon.output())
    assert " DEBUG " in daemon.output()
    assert not [text[:1000] for text in texts if HUSH in text]
    assert not [file.name for file in daemon.folder.iterdir() if HUSH.encode() in file.read_bytes()]


def test_files_that_others_could_read_are_tightened_and_their_folder_is_left_alone(tmp_path: Path) -> None:
    url, folder_mode = f"sqlite:///{tmp_path}/gk.db", stat.S_IMODE(tmp_path.stat().st_mode)
    engine = open_engine(url)
    migrate.upgrade(engine)
    key = tmp_path / "gk.key"
    key_from(key)
    for path in tmp_path.iterdir():
        path.chmod(0o666)
    key_from(key)
    other = open_engine(url)
    with reading(other) as connection:
        table_store.page(connection, PageRequest(1))
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == dict.fromkeys(
            ("gk.db", "gk.db-wal", "gk.db-shm", "gk.key"), 0o600
        )
    assert stat.S_IMODE(tmp_path.stat().st_mode) == folder_mode


def test_a_new_connection_does_not_drop_the_locks_of_the_others(tmp_path: Path) -> None:
    """A process loses its locks on a file when it closes any of its descriptors of that file."""
    url = f"sqlite:///{tmp_path}/gk.db"
    engine = open_engine(url)
    migrate.upgrade(engine)

    def locks() -> set[str]:
        """Returns the locks without their numbers, which change with the locks of other processes."""
        inodes = {path.stat().st_ino for path in tmp_path.iterdir()}
        lines = Path("/proc/locks").read_text().splitlines()
        return {line.partition(":")[2] for line in lines if int(line.split()[-3].rpartition(":")[2]) in inodes}

    with reading(engine) as connection:
        table_store.page(connection, PageRequest(1))
        before = locks()
        with reading(engine) as other:
            table_store.page(other, PageRequest(1))
        assert before
        assert before <= locks()


def test_masks_that_are_sent_back_keep_the_secrets_also_those_with_a_new_shape(app_context: AppContext) -> None:
    client = _client(app_context, SecretCipher.fresh())
    table = client.post("/v1/tables", json=_body()).json()
    assert table["lock"]["options"] == {**dict.fromkeys(LOCK, MASK), "hoodie.write.lock.zookeeper.url": "zk:2181"}
    assert table["hudi_options"] == {**dict.fromkeys(OPTIONS, MASK), "hoodie.keygen.timebased.timezone": "UTC"}
    path = f"/v1/tables/{table['id']}"
    assert client.get(f"{path}/writer-options").text.count(MASK) >= 3
    client.patch(path, json={"lock": table["lock"], "hudi_options": {**table["hudi_options"], FIELDS: "ts"}})
    client.post(f"{path}/jobs", json={"kind": "audit"})
    plan = Worker(client).must_lease()
    assert plan.table.lock.options == LOCK
    assert plan.table.hudi_options == {**OPTIONS, FIELDS: "ts"}


def test_a_lost_key_stops_the_jobs_of_its_tables_and_nothing_else(app_context: AppContext) -> None:
    before = _client(app_context, SecretCipher.fresh())
    hidden, plain = (
        before.post("/v1/tables", json=body).json()["id"] for body in (_body("/lake/a"), {"base_path": "/lake/b"})
    )
    jobs = {
        table: before.post(f"/v1/tables/{table}/jobs", json={"kind": "audit"}).json()["id"] for table in (hidden, plain)
    }
    client = _client(app_context, SecretCipher.fresh())
    shown = {each["id"]: each for each in client.get("/v1/tables").json()["items"]}[hidden]
    assert shown["hudi_options"][ORDERING] == MASK
    # The queued job does not block the job of the other table.
    assert Worker(client).must_lease().job_id == jobs[plain]
    assert Worker(client).lease() is None
    ended = client.get(f"/v1/jobs/{jobs[hidden]}").json()
    assert (ended["state"], ended["error"]["type"]) == ("failed", "/problems/secret-unreadable")
    refused = client.post(f"/v1/tables/{hidden}/jobs", json={"kind": "audit"})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/secret-unreadable")
    # Masks keep unreadable values; new values replace them.
    kept = client.patch(f"/v1/tables/{hidden}", json={"lock": shown["lock"], "hudi_options": shown["hudi_options"]})
    assert kept.status_code == 200
    assert client.post(f"/v1/tables/{hidden}/jobs", json={"kind": "audit"}).status_code == 409
    mended = {key: value for key, value in _body().items() if key != "base_path"}
    assert client.patch(f"/v1/tables/{hidden}", json=mended).status_code == 200
    assert client.post(f"/v1/tables/{hidden}/jobs", json={"kind": "audit"}).status_code == 202
    assert Worker(client).must_lease().table.hudi_options == OPTIONS


def test_without_a_key_only_tables_with_secrets_are_refused(app_context: AppContext) -> None:
    client = _client(app_context, SecretCipher([]))
    for body in (
        _body(),
        {"base_path": "/lake/a", "hudi_options": {FIELDS: f"https://u:{HUSH}@host"}},
        {"base_path": "/lake/a", "hudi_options": {FIELDS: f"{SEALED}gAAAA"}},
    ):
        refused = client.post("/v1/tables", json=body)
        assert (refused.status_code, refused.json()["type"]) == (409, "/problems/secret-key-missing")
    made = client.post("/v1/tables", json={"base_path": "/lake/a", "hudi_options": {FIELDS: "ts"}})
    path = f"/v1/tables/{made.json()['id']}"
    refused = client.patch(path, json={"hudi_options": {FIELDS: f"https://u:{HUSH}@host"}})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/secret-key-missing")
    client.post(f"{path}/jobs", json={"kind": "audit"})
    assert Worker(client).must_lease().table.hudi_options == {FIELDS: "ts"}


def test_after_a_rotation_of_keys_old_and_new_secrets_are_readable(app_context: AppContext) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    table = _client(app_context, SecretCipher([old])).post("/v1/tables", json=_body()).json()
    rotating = _client(app_context, SecretCipher([new, old]))
    path, added = f"/v1/tables/{table['id']}", f"https://u:{HUSH}-new@host"
    rotating.patch(path, json={"hudi_options": {**table["hudi_options"], FIELDS: added}})
    rotating.post(f"{path}/jobs", json={"kind": "audit"})
    assert Worker(rotating).must_lease().table.hudi_options == {**OPTIONS, FIELDS: added}
    with reading(app_context.database.engine) as connection:
        stored = table_store.get(connection, table["id"])
    assert SecretCipher([new]).open(stored.hudi_options[FIELDS].removeprefix(SEALED)) == added


_PLAIN_LOCK = {key: value for key, value in LOCK.items() if not value.startswith(SEALED)}


@pytest.fixture
def with_plain_secrets(app_context: AppContext, tmp_path: Path) -> str:
    """A table as an earlier version stored it, changed several times, so that the file has old copies of the row."""
    engine = app_context.database.engine
    lock = TableLock(PROVIDER, _PLAIN_LOCK)
    made = _client(app_context, SecretCipher.fresh()).post("/v1/tables", json={"base_path": "/lake/a"})
    table_id = str(made.json()["id"])
    for size in (10, 900, 20, 990, 1):
        values = {"lock": lock.to_json(), "hudi_options": {**OPTIONS, FIELDS: "x" * size}}
        with writing(engine) as connection:
            connection.execute(schema.tables.update().values(**values))
    with engine.connect() as connection:
        connection.execute(sa.text("PRAGMA wal_checkpoint(FULL)"))
    assert HUSH.encode() in _bytes(tmp_path)
    return table_id


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_secrets_that_an_earlier_version_stored_are_encrypted_and_leave_no_copy(
    app_context: AppContext, with_plain_secrets: str, tmp_path: Path
) -> None:
    cipher = SecretCipher.fresh()
    # The secrets are readable without decryption.
    client = _client(app_context, cipher)
    client.post(f"/v1/tables/{with_plain_secrets}/jobs", json={"kind": "audit"})
    assert Worker(client).must_lease().table.lock.options == _PLAIN_LOCK
    registry.seal_stored(app_context.database.engine, cipher)
    assert HUSH.encode() not in _bytes(tmp_path)
    client.post(f"/v1/tables/{with_plain_secrets}/jobs", json={"kind": "compaction"})
    assert Worker(client).must_lease().table.lock.options == _PLAIN_LOCK
    with reading(app_context.database.engine) as connection:
        stored = table_store.get(connection, with_plain_secrets)
    registry.seal_stored(app_context.database.engine, cipher)
    with reading(app_context.database.engine) as connection:
        assert table_store.get(connection, with_plain_secrets) == stored


def test_without_a_key_old_secrets_stay_unencrypted_and_the_log_names_their_tables(
    app_context: AppContext, with_plain_secrets: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        registry.seal_stored(app_context.database.engine, SecretCipher([]))
    assert with_plain_secrets in caplog.text
    assert "GROUNDSKEEPER_SECRET_KEYS" in caplog.text
    assert HUSH not in caplog.text
    assert _client(app_context, SecretCipher([])).get("/v1/tables").json()["items"][0]["hudi_options"][ORDERING] == MASK


def test_a_local_worker_does_not_inherit_the_secrets_of_the_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DATABASE", "SECRET_KEYS", "CALLBACK_KEY", "READER_TOKEN", "MASTER"):
        monkeypatch.setenv(f"GROUNDSKEEPER_{name}", HUSH)
    seen = tmp_path / "seen"
    program = f"import os, pathlib, time; pathlib.Path({str(seen)!r}).write_text(str(dict(os.environ))); time.sleep(60)"
    workers = LocalWorkers([sys.executable, "-c", program], count=1, environment={}, rng=Random(1), drain_seconds=0)
    workers.start(on_death=pytest.fail)
    try:
        while not (seen.exists() and seen.read_text()):
            time.sleep(0.1)
    finally:
        workers.stop()
    assert re.findall(r"'GROUNDSKEEPER_(\w+)': '" + HUSH, seen.read_text()) == ["MASTER"]


def test_settings_that_are_printed_show_no_secret() -> None:
    chosen = settings.load(
        database=f"postgresql://gk:{HUSH}@db/gk", storage_options={"fs.s3a.secret.key": HUSH}, secret_keys=(HUSH,)
    )
    assert HUSH not in f"{chosen!r} {chosen}"


def test_a_statement_that_fails_names_no_value(app_context: AppContext) -> None:
    with pytest.raises(sa.exc.IntegrityError) as failed, writing(app_context.database.engine) as connection:
        connection.execute(schema.tables.insert().values(id="t", base_path=HUSH, lock={"password": HUSH}))
    assert HUSH not in str(failed.value)
