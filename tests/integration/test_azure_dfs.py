"""Jobs work on a table on Azure (our stand-in for its storage, with Hadoop's `abfss`) as on a local table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome, TableLock
from jobs.errors import CancelledError
from jobs.hudi.azure_instants import complete_at_once
from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm
from jobs.storage.paths import of_hadoop
from service.lake.active_timeline import read_active_timeline
from service.lake.storage import open_storage
from service.model.storage_errors import StorageError
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.doomed import Spares, Surroundings
from tests.integration.dying_job import DyingJob
from tests.integration.run import run_job, work_order
from tests.integration.stored_names import left_behind, names_of_files
from tests.integration.test_s3 import PARTITIONS, rows
from tests.integration.writers import At
from tests.support import azure_dfs
from tests.support.azurite import ROOT
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.azure_dfs import Server

INDEX = BucketIndex(2, ("id",))
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
    spark, base = on_azure, f"{ROOT}/trips{is_whole}"
    options = tables.writer_options(base, num_buckets=2, metadata=is_whole, **lock.options)
    tables.upsert(rows(spark, 0, 200), base, options)
    if is_whole:
        tables.upsert(rows(spark, 0, 100, ts=1), base, options)
    before = tables.snapshot(spark, base)
    assert len(before) == 200

    # The service reads the table by the same options.
    found = examine(f"{base}/", allowed_roots=(ROOT,), claimed=None, storage_options=server.options)
    assert (found.base_path, found.index) == (base, INDEX)

    server.requests()
    expanded = run_job(spark, base, "bucket_expansion", {"num_buckets": 4}, index=INDEX, lock=lock)
    assert expanded.outcome is Outcome.SUCCEEDED, expanded
    assert expanded.details["rows"] == 200
    _require_whole_instants(server)
    assert tables.in_order(spark, base, 4) == before
    if is_whole:
        before = _housekeeping(spark, server, base, options, lock)
        audit = run_job(spark, base, "audit", index=INDEX, lock=lock).details
        assert audit["clean"], audit
        assert tables.in_order(spark, base, 12) == before
    assert left_behind(base, server.options) == []
    assert {name.partition("/")[0] for name in names_of_files(base, server.options)} == {".hoodie", *PARTITIONS}
    assert read_active_timeline(base, server.options).pending == ()


def _require_whole_instants(server: Server) -> None:
    """Asserts that no completed instant existed before its content: `resource=file` would have created an empty
    file."""
    made = [line for line in server.requests() if line.startswith("PUT ") and _COMPLETED.search(line)]
    assert made
    assert not [line for line in made if "resource=" in line]


def _housekeeping(
    spark: SparkSession, server: Server, base: str, options: dict[str, str], lock: TableLock
) -> list[str]:
    """Runs the other services after a writer that still has 2 buckets in its options and leaves logs. Returns the
    rows."""
    tables.upsert(rows(spark, 100, 300, ts=7), base, options)
    before = tables.in_order(spark, base, 4)
    assert len(before) == 300

    compacted = run_job(spark, base, "compaction", index=INDEX, lock=lock)
    assert compacted.outcome is Outcome.SUCCEEDED
    assert compacted.details["file_groups"] > 0
    assert tables.in_order(spark, base, 4) == before

    server.requests()
    clustered = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=INDEX, lock=lock)
    assert clustered.details["inside_buckets"] is True
    _require_whole_instants(server)
    assert tables.in_order(spark, base, 4) == before

    names = names_of_files(base, server.options)
    assert run_job(spark, base, "cleaning", {"retain": 2}, index=INDEX, lock=lock).outcome is Outcome.SUCCEEDED
    gone = {name for name in names - names_of_files(base, server.options) if name.endswith(".parquet")}
    assert {name.partition("/")[0] for name in gone} == set(PARTITIONS)
    assert tables.in_order(spark, base, 4) == before
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)

    # In a table whose last commit is a replacement, an empty instant would duplicate the rows.
    again = run_job(spark, base, "bucket_expansion", {"factor": 3}, index=INDEX, lock=lock)
    [instant] = [
        name
        for name in names_of_files(base, server.options)
        if name.startswith(f".hoodie/timeline/{again.instants[0]}_")
    ]
    path = f"lake/{base.removeprefix(ROOT)[1:]}/{instant}"
    content = server.files.open_input_file(path).read()
    server.files.open_output_stream(path, compression=None).close()
    assert len(tables.snapshot(spark, base, metadata=False)) > 300
    with server.files.open_output_stream(path, compression=None) as stream:
        stream.write(content)
    assert tables.in_order(spark, base, 12) == before
    return before


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
    base = f"{ROOT}/aborted"
    tables.upsert(rows(on_azure, 0, 200), base, tables.writer_options(base, num_buckets=2, **lock.options))
    before, names = tables.snapshot(on_azure, base), names_of_files(base, server.options)
    written: set[str] = set()

    def cancel() -> None:
        written.update(
            name for name in names_of_files(base, server.options) - names if name.endswith((".parquet", ".CREATE"))
        )
        raise CancelledError

    context = At("waiting", cancel)
    with pytest.raises(CancelledError):
        run_job(on_azure, base, "bucket_expansion", {"factor": 2}, index=INDEX, lock=lock, context=context)
    assert len(written) == 2 * 8  # each of the four slices became two files, each with its marker
    assert left_behind(base, server.options) == []
    assert tables.snapshot(on_azure, base) == before


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
