"""Tests HDFS with Kerberos on a real cluster and a real KDC. The service has a keytab, the worker another login."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest
from pyarrow import fs

from jobs.storage import hdfs as hdfs_options
from jobs.storage.negotiate import Negotiate
from jobs.storage.store import LoginError
from tests.acceptance.daemon import Daemon
from tests.integration import tables
from tests.integration.cluster_worker import ClusterWorker
from tests.integration.run import run_job
from tests.support import hdfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.hdfs import Cluster
    from tests.support.kerberos import Realm

pytestmark = pytest.mark.exhaustive
USER = "etl"
ROWS = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("gssapi", reason="Groundskeeper's extra `kerberos` is not installed")
    with hdfs.running(with_kerberos=True) as running:
        running.set_permission("/", 0o777)
        yield running


@pytest.fixture(scope="module")
def realm(cluster: Cluster) -> Realm:
    assert cluster.realm is not None
    return cluster.realm


@pytest.fixture(scope="module")
def keytab(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return realm.keytab(tmp_path_factory.mktemp("keytabs") / "etl.keytab", USER)


@pytest.fixture
def ticket(realm: Realm, keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a process with a login by keytab, as of the services that it starts. The file will have the
    ticket that MIT's library gets."""
    realm.log_in(keytab, tmp_path / "ticket", monkeypatch)
    return tmp_path / "ticket"


def test_a_ticket_is_used_once_to_get_a_token_for_all_requests(cluster: Cluster, ticket: Path) -> None:
    files = cluster.arrow()
    client = files.handler._client
    requests: list[httpx.Request] = []
    client._client.event_hooks = {"request": [requests.append]}
    with files.open_output_stream("/owned/file", compression=None) as stream:
        stream.write(b"x" * 100_000)
    with files.open_input_file("/owned/file") as file:
        assert file.read() == b"x" * 100_000
    assert cluster.status("/owned/file").getOwner() == USER
    assert ticket.exists()
    shown = [request for request in requests if "Authorization" in request.headers]
    assert [request.url.params["op"] for request in shown] == ["GETDELEGATIONTOKEN"]
    assert all("delegation" in request.url.params for request in requests if request not in shown)
    assert not any("user.name" in request.url.params for request in requests)

    requests.clear()
    assert [info.base_name for info in files.get_file_info(fs.FileSelector("/owned"))] == ["file"]
    assert [request.url.params["op"] for request in requests] == ["LISTSTATUS_BATCH"]


def test_a_token_that_has_ended_is_replaced_unless_it_was_given(cluster: Cluster, ticket: Path) -> None:
    files = cluster.arrow()
    files.create_dir("/ended", recursive=True)
    client = files.handler._client
    token = client._token
    assert token is not None
    ends = {"op": "CANCELDELEGATIONTOKEN", "token": token}
    assert httpx.put(f"{client._name_nodes[0]}/webhdfs/v1/", params=ends, auth=Negotiate()).status_code == 200
    assert files.get_file_info("/ended").type == fs.FileType.Directory
    assert client._token != token

    # A task's: it has no ticket to get another one with.
    access = hdfs_options.Hdfs(client._name_nodes, None, token)
    assert token not in repr(access)
    with pytest.raises(LoginError, match="can't be found in cache"):
        access.with_short_timeouts().filesystem().get_file_info("/ended")


def test_a_token_is_good_for_a_standby_that_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gssapi", reason="Groundskeeper's extra `kerberos` is not installed")
    with hdfs.running(is_highly_available=True, with_kerberos=True) as cluster:
        assert cluster.realm is not None
        cluster.set_permission("/", 0o777)
        keytab = cluster.realm.keytab(tmp_path / "keytab", USER)
        cluster.realm.log_in(keytab, tmp_path / "ticket", monkeypatch)
        files = cluster.arrow()
        tokens = set()
        for active in (0, 1, 0):
            cluster.fail_over(to=active)
            with files.open_output_stream(f"/by-{active}", compression=None) as stream:
                stream.write(b"x" * 1000)
            with files.open_input_file(f"/by-{active}") as file:
                assert file.read() == b"x" * 1000
            tokens.add(files.handler._client._token)
        assert len(tokens) == 1

        # The token of a worker's JVM is for the nameservice, not for one of its name nodes.
        access = hdfs_options.of_hadoop(cluster.options, hdfs.NAMESERVICE)
        by_hadoop = replace(access, token=cluster.delegation_token()).with_short_timeouts().filesystem()
        for active in (0, 1):
            cluster.fail_over(to=active)
            assert by_hadoop.get_file_info(f"/by-{active}").size == 1000


def _login_refused(cluster: Cluster) -> str:
    with pytest.raises(LoginError) as refused:
        cluster.arrow().get_file_info("/")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_missing_login_is_reported_with_the_reason(
    cluster: Cluster, ticket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "none"))
    assert "No Kerberos credentials available" in _login_refused(cluster)
    with monkeypatch.context() as other:
        other.setitem(sys.modules, "gssapi", None)
        assert "pip install 'groundskeeper[kerberos]'" in _login_refused(cluster)
    # The cluster requires a login, but the options do not name one.
    plain = {name: value for name, value in cluster.options.items() if name != hdfs_options.AUTHENTICATION}
    with pytest.raises(LoginError, match="wants a login by Kerberos"):
        hdfs_options.of_hadoop(plain, "localhost").with_short_timeouts().filesystem().get_file_info("/")


@pytest.fixture
def settings(cluster: Cluster) -> dict[str, str]:
    return {"storage_options": json.dumps(cluster.options), "allowed_roots": cluster.uri, "workers": "0"}


def _worker_of(
    daemon: Daemon, cluster: Cluster, folder: Path, realm: Realm, conf: dict[str, str], **environment: str
) -> ClusterWorker:
    """Starts a worker without the service's login; the login of its JVM is in `conf` or in the environment."""
    options = {"GROUNDSKEEPER_STORAGE_OPTIONS": json.dumps(cluster.options)}
    own = {**realm.without_login(), **options, **environment}
    return ClusterWorker(daemon, folder, "local[2,4]", conf=conf, environment=own)


def _wait_for_commits(daemon: Daemon, table: str, actions: list[str]) -> None:
    deadline = time.monotonic() + 30
    while True:
        found = daemon.call("GET", f"/v1/commits?table_id={table}").json()["items"]
        if sorted(each["action"] for each in found) == actions:
            return
        assert time.monotonic() < deadline, f"{found}\n{daemon.log.read_text()[-4000:]}"
        time.sleep(0.1)


def test_a_table_is_watched_by_the_service_and_served_by_a_worker_with_logins_of_their_own(
    spark: SparkSession,
    cluster: Cluster,
    realm: Realm,
    keytab: Path,
    ticket: Path,
    settings: dict[str, str],
    tmp_path: Path,
) -> None:
    local, folder = tmp_path / "orders", "/lake/orders"
    options = tables.write_table(spark, local, count=ROWS, partitioned=False, copied=False)
    files = cluster.arrow()
    hdfs.copy(local, files, folder)
    with Daemon(tmp_path / "service", poll_seconds="1", **settings) as daemon:
        table = daemon.register(f"{cluster.uri}{folder}")

        # The writer has never heard of us.
        tables.upsert(tables.rows(spark, 0, ROWS // 2, ts=1), local, options)
        before = tables.snapshot(spark, local)
        hdfs.copy(local, files, folder)
        _wait_for_commits(daemon, table, ["deltacommit", "deltacommit"])

        without = {name: value for name, value in cluster.options.items() if "authentication" not in name}
        with _worker_of(
            daemon, cluster, tmp_path / "by-nothing", realm, {}, GROUNDSKEEPER_STORAGE_OPTIONS=json.dumps(without)
        ) as worker:
            failed = daemon.run(table, "compaction")
            assert failed["error"]["type"].endswith("/storage-login-failed"), failed
            assert worker.end() == 0

        keytab_of_spark = {"spark.kerberos.keytab": str(keytab), "spark.kerberos.principal": f"{USER}@{realm.name}"}
        with _worker_of(daemon, cluster, tmp_path / "by-keytab", realm, keytab_of_spark) as worker:
            worker.wait_until("ready")
            daemon.succeed(table, "compaction")
            # Arrow rewrites the files in tasks without a ticket.
            daemon.succeed(table, "bucket_expansion", num_buckets=8, settle_seconds=1)
            assert worker.end() == 0
        assert ticket.exists()
        with _worker_of(daemon, cluster, tmp_path / "by-ticket", realm, {}, KRB5CCNAME=str(ticket)) as worker:
            worker.wait_until("ready")
            audit = daemon.succeed(table, "audit")
            assert (audit["clean"], audit["rows"]) == (True, ROWS), audit
            assert worker.end() == 0
        _wait_for_commits(daemon, table, ["commit", "deltacommit", "deltacommit", "replacecommit"])
        assert "delegation=" not in daemon.log.read_text() + worker.log.read_text()

    back = tmp_path / "back" / "orders"
    back.mkdir(parents=True)
    hdfs.copy(back, files, folder, back=True)
    assert tables.in_order(spark, back, 8) == before
    assert run_job(spark, back, "audit").details["clean"]


def test_a_service_and_a_worker_without_a_login_say_so(
    cluster: Cluster,
    ticket: Path,
    realm: Realm,
    keytab: Path,
    settings: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(tmp_path / "none"))
    with Daemon(tmp_path / "service", **settings) as daemon:
        body = {"base_path": f"{cluster.uri}/lake/none", "writers": {"hudi_version": "1.2.0"}}
        answer = daemon.call("POST", "/v1/tables", body)
        problem = answer.json()
        assert (answer.status_code, problem["type"].rpartition("/")[2]) == (502, "storage-login-failed"), problem
        assert "No Kerberos credentials available" in problem["detail"]
        assert "KRB5_CLIENT_KTNAME" in problem["hint"]
        for name, conf in {
            "there is no ticket": {},
            "Unable to obtain password from user": {
                "spark.kerberos.keytab": str(keytab),
                "spark.kerberos.principal": "stranger",
            },
        }.items():
            with _worker_of(daemon, cluster, tmp_path / name, realm, conf) as worker:
                assert worker.process.wait(60) == 1
            said = worker.log.read_text()
            assert re.search(f"ends: Kerberos: .*{name}", said), said[-2000:]
            assert "Traceback" not in said
