"""Each job beside writers and readers of Hudi 0.15, 1.0 and 1.1 either keeps the table usable for them or is
refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import WriterEngine
from jobs.dataplane import compaction_job
from jobs.dataplane.compacted_file import Compaction
from jobs.errors import RefusedError
from service.lake.table import TableType
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target
from tests.integration import tables
from tests.integration.both_engines import newest_files
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.support import paged_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS, CHANGED = 120, 50
MANY_ROWS = 48_000  # With so many rows ISA-L compresses the pages of all buckets.
COLUMNS = ["id", "ts", "fare", "note"]
OF_INDEX = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "record": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
}


@pytest.fixture(scope="module")
def writers() -> Iterator[dict[str, OldWriter]]:
    started: dict[str, OldWriter] = {}
    yield started
    for each in started.values():
        each.close()


@dataclass
class Story:
    """A table with an old writer, and its expected rows; `outcomes` are the results of the services."""

    spark: SparkSession
    base: Path
    old: OldWriter
    options: dict[str, str]
    index: str
    rows: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        spark: SparkSession,
        base: Path,
        old: OldWriter,
        table_type: TableType,
        table_version: int,
        index: str,
        *,
        rows: int = ROWS,
    ) -> Story:
        """Starts a writer with the options that the service prints for this version, except for the index and the
        callback."""
        story = cls(spark, base, old, cls.printed(base, old.version, table_type, table_version, index), index)
        story.write(0, rows, ts=0, create=True)
        story.write(0, CHANGED, ts=1)
        return story

    @staticmethod
    def printed(base: Path, version: str, table_type: TableType, table_version: int, index: str) -> dict[str, str]:
        target = Target(
            str(base),
            "trips",
            table_type,
            table_version,
            record_key_fields=("id",),
            ordering_fields=("ts",),
            partition_fields=("dt",),
            index=INDEX if index == "bucket" else None,
            num_buckets=4,
            hudi_version=version,
            exists=False,
        )
        printed = writer_options(target, WriterEngine.SPARK, callback=Callback("http://127.0.0.1:1"))
        return {**printed.options, **OF_INDEX.get(index, {}), "hoodie.write.commit.callback.on": "false"}

    def write(self, first: int, last: int, *, ts: int, create: bool = False) -> None:
        self.old.upsert(self.base, self.options, first, last, ts=ts, create=create)
        self.rows |= {f"k{number}": ts for number in range(first, last)}

    def serve(self, kind: str, params: dict[str, Any] | None = None, **declared: Any) -> str:
        """Runs a service, then reads and changes the table by the old version; returns `done`, or the reason of a
        refusal."""
        declared = {"writers_hudi_version": self.old.version, **declared}
        index = INDEX if self.index == "bucket" else None
        try:
            done = run_job(self.spark, self.base, kind, params, index=index, declared=declared)
            outcome = "nothing" if done.details.get("nothing_to_do") else "done"
        except RefusedError as error:
            outcome = ", ".join(each.type for each in error.reasons)
        self.outcomes[kind] = outcome
        self.check()
        return outcome

    def go_on(self) -> None:
        ts, count = max(self.rows.values()) + 1, len(self.rows)
        self.write(count - CHANGED, count + 10, ts=ts)
        self.check()

    def check(self) -> None:
        self.check_by_old()
        ours = self.spark.read.format("hudi").load(str(self.base)).select(*COLUMNS).collect()
        assert sorted(list(row) for row in ours) == self.expected()

    def check_by_old(self) -> None:
        assert sorted(self.old.read(self.base, COLUMNS)) == self.expected()

    def expected(self) -> list[list[Any]]:
        return sorted(
            [key, ts, int(key[1:]) * 2.5 + ts, f"näme 😀 {key[1:]}" if int(key[1:]) % 5 else None]
            for key, ts in self.rows.items()
        )


@pytest.mark.exhaustive
def test_a_bucketed_table_of_0_15_goes_through_all_services(
    spark: SparkSession, tmp_path: Path, writers: dict[str, OldWriter]
) -> None:
    story = Story.begin(spark, tmp_path / "trips", writer_of(writers, "0.15.0"), TableType.MERGE_ON_READ, 6, "bucket")
    assert story.serve("compaction") == "done"
    assert story.serve("bucket_expansion", {"num_buckets": 8}) == "writers-too-old"
    # The commits show the version, even if the table's owner declares another one.
    assert story.serve("bucket_expansion", {"num_buckets": 8}, writers_hudi_version="1.2.0") == "writers-too-old"
    assert story.serve("bucket_expansion", {"num_buckets": 8}, writers_stopped=True) == "done"
    story.options["hoodie.bucket.index.num.buckets"] = "8"
    story.go_on()
    assert tables.misplaced(spark, story.base, 8) == 0
    for number, way in (("6", "one_rehash"), ("7", "through_multiple"), ("8", "auto")):
        counting = {"num_buckets": int(number), "way": way}
        assert story.serve("bucket_count", counting, writers_stopped=True) == "done"
        story.options["hoodie.bucket.index.num.buckets"] = number
        story.go_on()
        assert tables.misplaced(spark, story.base, int(number)) == 0
    assert story.serve("clustering", {"sort_by": ["city"]}) == "done"
    assert story.serve("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}) == "done"
    story.go_on()
    assert tables.misplaced(spark, story.base, 8) == 0


@pytest.mark.exhaustive
def test_a_bloom_table_of_0_15_goes_through_all_services(
    spark: SparkSession, tmp_path: Path, writers: dict[str, OldWriter]
) -> None:
    story = Story.begin(spark, tmp_path / "trips", writer_of(writers, "0.15.0"), TableType.COPY_ON_WRITE, 6, "bloom")
    assert story.serve("clustering", {"sort_by": ["city"]}) == "done"
    story.go_on()
    assert story.serve("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}) == "done"
    story.go_on()


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", ["bucket", "bloom", "simple", "record"])
@pytest.mark.parametrize("table_type", list(TableType))
@pytest.mark.parametrize(
    ("version", "table_version"),
    [("0.15.0", 6), ("1.0.2", 8), ("1.1.1", 9), ("1.0.2", 6), ("1.1.1", 8), ("1.1.1", 6)],
)
def test_every_service_leaves_the_table_to_its_writer(
    spark: SparkSession,
    tmp_path: Path,
    writers: dict[str, OldWriter],
    version: str,
    table_version: int,
    table_type: TableType,
    index: str,
) -> None:
    story = Story.begin(spark, tmp_path / "trips", writer_of(writers, version), table_type, table_version, index)
    if table_type is TableType.MERGE_ON_READ:
        # Arrow, which checks the order in the logs, does not merge tables with a record index.
        is_refused = version == "0.15.0" and index == "record"
        refusal = "log-order-not-proved, index-maps-keys-to-files"
        assert story.serve("compaction") == (refusal if is_refused else "done")
        story.go_on()
    if index == "bucket":
        follows = version == "1.1.1"
        story.serve("bucket_expansion", {"num_buckets": 8}, **({} if follows else {"writers_stopped": True}))
        if not follows:
            story.options["hoodie.bucket.index.num.buckets"] = "8"
        story.go_on()
        assert tables.misplaced(spark, story.base, 8) == 0
    story.serve("clustering", {"sort_by": ["city"]})
    story.go_on()
    story.serve("cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1})
    story.go_on()
    print(version, table_version, table_type.value, index, story.outcomes)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "table_version"), [("0.15.0", 6), ("1.0.2", 8), ("1.1.1", 9)])
def test_housekeeping_leaves_the_table_to_its_writer(
    spark: SparkSession, tmp_path: Path, writers: dict[str, OldWriter], version: str, table_version: int
) -> None:
    story = Story.begin(
        spark, tmp_path / "trips", writer_of(writers, version), TableType.MERGE_ON_READ, table_version, "bucket"
    )
    story.serve("savepoint")
    for _ in range(4):
        story.go_on()
    story.serve("compaction")
    for kind, params in (
        ("archival", {"retain": 2}),
        ("metadata_table", {"action": "validate"}),
        ("metadata_table", {"action": "rebuild"}),
        ("audit", {}),
    ):
        story.serve(kind, params, writers_stopped=True)
        story.go_on()
    print(version, table_version, story.outcomes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", ["bucket", "record"])
@pytest.mark.parametrize(("version", "table_version"), [("0.15.0", 6), ("1.0.2", 6), ("1.0.2", 8), ("1.1.1", 9)])
def test_a_compacted_metadata_table_is_read_and_written_by_an_older_hudi(
    spark: SparkSession, base: Path, writers: dict[str, OldWriter], version: str, table_version: int, index: str
) -> None:
    story = Story.begin(spark, base, writer_of(writers, version), TableType.MERGE_ON_READ, table_version, index)
    for _ in range(2):
        for _ in range(3):
            story.go_on()
        assert story.serve("metadata_table", {"action": "compact"}) == "done"
    story.go_on()
    findings = run_job(spark, base, "metadata_table", {"action": "validate"}, index=None).details["findings"]
    assert findings == []
    audit = run_job(spark, base, "audit", index=INDEX if index == "bucket" else None).details
    assert (audit["clean"], audit["rows"]) == (True, len(story.rows)), audit


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", ["bucket", "simple", "record"])
@pytest.mark.parametrize("table_type", list(TableType))
@pytest.mark.parametrize(("version", "path"), [("0.15.0", (9, 6)), ("1.0.2", (6, 8)), ("1.0.2", (9, 8))])
def test_a_table_of_hudi_1_2_gets_the_version_of_an_older_writer(
    spark: SparkSession,
    tmp_path: Path,
    writers: dict[str, OldWriter],
    version: str,
    path: tuple[int, int],
    table_type: TableType,
    index: str,
) -> None:
    base, (before, after) = tmp_path / "trips", path
    options = Story.printed(base, "1.2.0", table_type, before, index)
    old = writer_of(writers, version)
    story = Story(spark, base, old, Story.printed(base, version, table_type, after, index), index)
    for ts, (first, last) in enumerate([(0, ROWS), (0, CHANGED), (ROWS - CHANGED, ROWS + 10)]):
        rows = tables.rows(spark, first, last, ts=ts)
        rows.write.format("hudi").options(**options).mode("append" if ts else "overwrite").save(str(base))
        story.rows |= {f"k{number}": ts for number in range(first, last)}
    declared = {"readers_hudi_version": version, "writers_stopped": True}
    assert story.serve("upgrade", {"to_version": after}, **declared) == "done"
    for _ in range(2):
        story.go_on()
    audit = run_job(spark, base, "audit", index=INDEX if index == "bucket" else None).details
    assert (audit["clean"], audit["rows"]) == (True, len(story.rows)), audit
    assert hudi_table(spark, base, None).version == after
    # The table comes back from the older writer.
    if version != "0.15.0":
        declared = {"readers_hudi_version": "1.2.0", "writers_hudi_version": "1.2.0", "writers_stopped": True}
        index_of = INDEX if index == "bucket" else None
        run_job(spark, base, "upgrade", {"to_version": 9}, index=index_of, declared=declared)
        ours = spark.read.format("hudi").load(str(base)).select(*COLUMNS).collect()
        assert sorted(list(row) for row in ours) == story.expected()


def test_readers_that_prune_by_their_own_number_are_a_reason_against_another(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=60, version=8, partitioned=False)
    for version, pruning_off, refused in (("0.15.0", False, 0), ("1.0.2", False, 1), ("1.0.2", True, 0)):
        declared = {"readers_hudi_version": version, "writers_query_pruning_off": pruning_off}
        done = run_job(spark, base, "bucket_expansion", {"num_buckets": 8}, dry_run=True, declared=declared)
        assert [each["type"] for each in done.details["refusals"]] == ["readers-too-old"] * refused


@pytest.mark.exhaustive
def test_logs_that_0_15_merges_differently_are_not_compacted(
    spark: SparkSession, tmp_path: Path, writers: dict[str, OldWriter]
) -> None:
    story = Story.begin(spark, tmp_path / "trips", writer_of(writers, "0.15.0"), TableType.MERGE_ON_READ, 6, "bucket")
    # A late row: in the logs 0.15 keeps the greater ordering value.
    story.old.upsert(story.base, story.options, 7, 8, ts=0)
    story.check_by_old()
    for engine in ("auto", "hudi", "arrow"):
        with pytest.raises(RefusedError) as error:
            run_job(spark, story.base, "compaction", {"engine": engine}, declared={"writers_hudi_version": "0.15.0"})
        assert error.value.reasons[0].type == "log-order-not-proved"
    story.check_by_old()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "table_version"), [("0.15.0", 6), ("1.0.2", 8)])
def test_copied_chunks_and_pages_of_isa_l_are_read_and_changed_by_an_older_hudi(
    spark: SparkSession,
    base: Path,
    writers: dict[str, OldWriter],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    table_version: int,
) -> None:
    # Chunks of small row groups are not copied otherwise, and pages of small files are Arrow's.
    monkeypatch.setattr(compaction_job, "Compaction", partial(Compaction, copies_from=0))
    old = writer_of(writers, version)
    story = Story.begin(spark, base, old, TableType.MERGE_ON_READ, table_version, "bucket", rows=MANY_ROWS)
    assert story.serve("compaction", {"engine": "arrow"}) == "done"
    # A copied file says still who has encoded it.
    assert all("parquet-mr" in paged_rows.writer(path) for path in newest_files(base).values())
    assert story.serve("bucket_expansion", {"num_buckets": 8}, writers_stopped=True) == "done"
    assert all(paged_rows.has_pages_of_isa_l(path) for path in newest_files(base).values())
    story.options["hoodie.bucket.index.num.buckets"] = "8"
    story.go_on()
    assert story.serve("compaction", {"engine": "arrow"}) == "done"
    story.go_on()
    assert tables.misplaced(spark, base, 8) == 0


def writer_of(writers: dict[str, OldWriter], version: str) -> OldWriter:
    if version not in writers:
        writers[version] = OldWriter(version)
    return writers[version]
