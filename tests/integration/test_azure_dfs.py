"""Jobs work on a table on Azure (our stand-in for its storage, with Hadoop's `abfss`) as on a local table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome, TableLock
from jobs.hudi.azure_instants import complete_at_once
from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm
from jobs.storage.paths import of_hadoop
from service.lake.storage import open_storage
from service.model.storage_errors import StorageError
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.doomed import Spares, Surroundings
from tests.integration.dying_job import DyingJob
from tests.integration.run import run_job, work_order
from tests.integration.stored_table import INDEX, StoredTable, left_behind, rows
from tests.support import azure_dfs
from tests.support.azurite import ROOT
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.azure_dfs import Server

ODD = "a b/ü+y 50%25&x=1;'"
_COMPLETED = re.compile(r"/timeline/\d{17}_\d{17}\.\w+\?")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with azure_dfs.running() as running:
        yield running


@pytest.fixture(scope="module")
def on_azure(spark: SparkSession, server: Server) -> Iterator[SparkSession]:
    """The session with the storage's options in Hadoop's configuration, as in a worker."""
    with azure_dfs.trusted(spark, server):
        yield spark


@pytest.fixture
def lock(tmp_path: Path) -> TableLock:
    """Hudi does not rely on Azure's atomic creation of files for its filesystem lock, but it does on a disk's."""
    return TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_table_on_azure_is_served(on_azure: SparkSession, server: Server, lock: TableLock, *, is_whole: bool) -> None:
    table = StoredTable(on_azure, f"{ROOT}/trips{is_whole}", server.options, lock)
    options = table.options(metadata=is_whole)
    table.write(0, 200, options)
    if is_whole:
        table.write(0, 100, options, ts=1)
    server.requests()
    table.expand(ROOT)
    _require_whole_instants(server)
    if is_whole:
        before = table.keep_house(options)
        _require_an_empty_instant_to_show(table, server)
        table.require_audited()
        assert table.in_order(12) == before
    table.require_nothing_left()


def _require_whole_instants(server: Server) -> None:
    """Asserts that no completed instant existed before its content: `resource=file` would have created an empty
    file."""
    made = [line for line in server.requests() if line.startswith("PUT ") and _COMPLETED.search(line)]
    assert made
    assert not [line for line in made if "resource=" in line]


def _require_an_empty_instant_to_show(table: StoredTable, server: Server) -> None:
    """In a table whose last commit is a replacement, an empty instant duplicates the rows."""
    again = table.run("bucket_expansion", {"factor": 3})
    [instant] = [name for name in table.names() if name.startswith(f".hoodie/timeline/{again.instants[0]}_")]
    path = f"lake/{table.base.removeprefix(ROOT)[1:]}/{instant}"
    content = server.files.open_input_file(path).read()
    # The requests of Arrow are not those of a job.
    _require_whole_instants(server)
    server.files.open_output_stream(path, compression=None).close()
    assert len(tables.snapshot(table.spark, table.base, metadata=False)) > 300
    with server.files.open_output_stream(path, compression=None) as stream:
        stream.write(content)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "point",
    [
        {"at": "step", "name": "rewriting", "delay": 0.4},
        {"at": "after", "name": "the hashing config"},
        {"at": "before", "name": "the commit"},
        {"at": "after", "name": "the commit"},
    ],
    ids=lambda point: f"{point['at']} {point['name']}",
)
def test_a_driver_that_is_killed_on_azure_leaves_a_table_that_the_next_attempt_gets_right(
    on_azure: SparkSession,
    server: Server,
    lock: TableLock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: dict[str, Any],
) -> None:
    base = f"{ROOT}/killed {point['at']} {point['name']}"
    options = tables.writer_options(base, num_buckets=2, **lock.options)
    tables.upsert(rows(on_azure, 0, 200), base, options)
    tables.upsert(rows(on_azure, 0, 100, ts=1), base, options)
    before = tables.snapshot(on_azure, base)
    monkeypatch.setenv("GROUNDSKEEPER_LOCK_ROOTS", str(tmp_path))
    java = " ".join(f"-D{name}={value}" for name, value in azure_dfs.trust_options().items())
    spares = Spares(jars_of(on_azure), tmp_path, Surroundings(java, server.options))
    job = DyingJob(on_azure, work_order(base, "bucket_expansion", {"factor": 2}, index=INDEX, lock=lock), spares)
    assert job.die_at(point).result is None
    assert tables.snapshot(on_azure, base) == before

    done = job.finish()
    assert done.outcome is Outcome.SUCCEEDED, done
    assert tables.in_order(on_azure, base, 4) == before
    # The writer still says 2 buckets.
    tables.upsert(rows(on_azure, 100, 300, ts=7), base, options)
    assert len(tables.in_order(on_azure, base, 4)) == 300
    assert run_job(on_azure, base, "audit", index=INDEX, lock=lock).details["clean"] is True
    assert left_behind(base, server.options) == []


@pytest.mark.exhaustive
def test_an_abort_in_the_middle_leaves_nothing_on_azure(
    on_azure: SparkSession, server: Server, lock: TableLock
) -> None:
    StoredTable(on_azure, f"{ROOT}/aborted", server.options, lock).require_nothing_of_an_abort()


@pytest.mark.exhaustive
def test_a_dry_run_on_azure_reports_all_obstacles(on_azure: SparkSession, server: Server, lock: TableLock) -> None:
    base = f"{ROOT}/refused"
    tables.upsert(rows(on_azure, 0, 20), base, tables.writer_options(base, num_buckets=2, **lock.options))
    conf: Any = on_azure._jsc.hadoopConfiguration()  # type: ignore[attr-defined]

    def refusals(chosen: TableLock, **options: str) -> list[tuple[str, str]]:
        for name, value in options.items():
            conf.set(f"fs.azure.{name.replace('_', '.')}", value)
        close_file_system(Jvm(on_azure), base)
        try:
            params = {"factor": 2}
            answer = run_job(on_azure, base, "bucket_expansion", params, index=INDEX, lock=chosen, dry_run=True)
        finally:
            for name in options:
                conf.unset(f"fs.azure.{name.replace('_', '.')}")
            close_file_system(Jvm(on_azure), base)
        return [(item["type"], item["detail"]) for item in answer.details["refusals"]]

    assert refusals(lock) == []
    assert [kind for kind, _ in refusals(TableLock())] == ["lock-not-atomic"]
    assert refusals(lock, account_keyprovider="org.apache.hadoop.fs.azurebfs.services.SimpleKeyProvider") == []
    # Hadoop detects the same with one more request.
    assert refusals(lock, account_hns_enabled="false") == [
        ("storage-not-supported", f"the storage account of {base} has no hierarchical namespace")
    ]


@pytest.mark.exhaustive
def test_hudi_learns_nothing_about_azure_but_to_use_temporary_files(on_azure: SparkSession) -> None:
    jvm = Jvm(on_azure)
    schemes = jvm.hudi.storage.StorageSchemes
    complete_at_once(jvm)
    # Hudi takes each property of a scheme from the first one of this name.
    assert [str(each) for each in schemes.values() if each.getScheme() == "abfss"] == ["ABFSS", "VIEWFS"]
    lock = schemes.getStorageLockImplementationIfExists("abfss").get()
    assert lock.getStorageLockClass() == "org.apache.hudi.azure.transaction.lock.AzureStorageLockClient"


@pytest.mark.exhaustive
def test_an_idle_poll_is_one_request_and_a_listing_comes_in_pages(server: Server) -> None:
    storage = of_hadoop(f"{ROOT}/listed", server.options)
    for number in range(120):
        storage.create_empty(ODD, f"{number:03}")
    server.requests()
    seen = open_storage(f"{ROOT}/listed", server.options)
    assert len(seen.names(ODD)) == 120
    assert len(server.requests()) == 3
    assert {entry.path for entry in seen.list() if entry.is_folder} == {"a b"}
    assert len(server.requests()) == 1
    assert seen.list("none") == []


@pytest.mark.exhaustive
def test_a_wrong_key_is_reported_as_such(server: Server) -> None:
    options = {**server.options, "fs.azure.account.key": "d3Jvbmc="}
    with pytest.raises(StorageError, match="AuthenticationFailed"):
        examine(f"{ROOT}/trips", allowed_roots=(ROOT,), claimed=None, storage_options=options)
