"""Merges the file slices of a table by Arrow and by Hudi's own compaction, and compares the results."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane.slice_merge import MergeRules, SliceFiles, merge_slice
from jobs.errors import NotProvedError
from jobs.format.properties import parse_properties
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.storage.paths import Storage
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex

_ANY_LOG = {"hoodie.compact.inline.max.delta.commits": "1"}
# The write stats that the merge determines.
STATS = {
    "totalLogFilesCompacted": "log_files",
    "totalLogSizeCompacted": "log_bytes",
    "totalLogBlocks": "log_blocks",
    "totalCorruptLogBlock": "corrupt_blocks",
    "totalRollbackBlocks": "rollback_blocks",
    "totalLogRecords": "log_records",
    "totalUpdatedRecordsCompacted": "log_keys",
    "numUpdateWrites": "updates",
    "numInserts": "inserts",
    "numDeletes": "deletes",
    "numWrites": "rows",
}


@dataclass
class Merged:
    """The rows (without `_hoodie_file_name`) and the counts of one slice by Hudi and by our merge; or the reason of our
    refusal."""

    files: SliceFiles
    ours: list[str]
    hudis: list[str]
    our_counts: dict[str, int]
    hudis_counts: dict[str, int]
    refused: str = ""

    @property
    def equal(self) -> bool:
        return not self.refused and self.ours == self.hudis and self.our_counts == self.hudis_counts


def compacted(
    spark: SparkSession,
    base: Path,
    index: BucketIndex | None = INDEX,
    mode: str = "EVENT_TIME_ORDERING",
    **rules: Any,
) -> list[Merged]:
    """Compacts the table by Hudi, and merges the files of each compacted slice by Arrow."""
    rule = rules_of(base, mode, **rules)
    table = hudi_table(spark, base, index)
    with WriteClient(table, UNDER_OUR_LOCK, _ANY_LOG) as client:
        instant = client.schedule_compaction()
        assert instant, "there is nothing to compact"
        begun = client.begin_compaction(instant)
        client.execute_compaction(begun)
        client.commit_compaction(instant, begun)
    written = {stat["fileId"]: stat for stat in _stats(base, instant)}
    return [_merged(base, files, rule, written.get(files.file_id)) for files in _slices(base, instant)]


def rules_of(base: Path, mode: str, **more: Any) -> MergeRules:
    """Returns the merge rules of a table by its current properties and timeline."""
    properties = parse_properties((base / ".hoodie" / "hoodie.properties").read_bytes())
    fields = properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field") or ""
    done = set(_completed(base, ("commit", "deltacommit", "rollback", "replacecommit")))
    latest = max(_completed(base, ("commit", "deltacommit", "rollback")))
    return MergeRules(
        **{
            "mode": properties.get("hoodie.record.merge.mode", mode),
            "ordering_fields": tuple(filter(None, fields.split(","))),
            "table_version": int(properties["hoodie.table.version"]),
            "completed": frozenset(done),
            "latest": latest,
            **more,
        }
    )


def _timeline(base: Path) -> Path:
    folder = base / ".hoodie" / "timeline"
    return folder if folder.exists() else base / ".hoodie"


def _completed(base: Path, actions: tuple[str, ...]) -> Iterator[str]:
    for path in _timeline(base).iterdir():
        match = re.fullmatch(r"(\d+)(_\d+)?\.(\w+)", path.name)
        if match and match[3] in actions:
            yield match[1]


def _slices(base: Path, instant: str) -> list[SliceFiles]:
    with (_timeline(base) / f"{instant}.compaction.requested").open("rb") as file:
        (plan,) = fastavro.reader(file)
    found = []
    for each in plan["operations"]:
        where = f"{each['partitionPath']}/" if each["partitionPath"] else ""
        names = [name.rpartition("/")[2] for name in each["deltaFilePaths"]]
        data = each["dataFilePath"]
        file = f"{where}{data.rpartition('/')[2]}" if data else None
        logs = tuple(f"{where}{name}" for name in names)
        found.append(SliceFiles(each["partitionPath"], each["fileId"], file, logs))
    return found


def _stats(base: Path, instant: str) -> Iterator[dict[str, Any]]:
    (path,) = _timeline(base).glob(f"{instant}*.commit")
    content = path.read_bytes()
    if content.startswith(b"Obj"):
        with path.open("rb") as file:
            (metadata,) = fastavro.reader(file)
    else:
        metadata = json.loads(content)
    for stats in metadata["partitionToWriteStats"].values():
        yield from stats


def _merged(base: Path, files: SliceFiles, rules: MergeRules, stat: dict[str, Any] | None) -> Merged:
    assert stat is not None, "Hudi did not compact a slice of its plan"
    table = pq.read_table(base / stat["path"], use_threads=False)
    hudis = rows_of(table)
    counts = {ours: int(stat[theirs]) for theirs, ours in STATS.items()}
    schema = table.schema.remove_metadata()
    try:
        merged = merge_slice(Storage(str(base)), files, rules, schema, batch_rows=7)
        batches = list(merged.batches())
    except NotProvedError as error:
        return Merged(files, [], hudis, {}, counts, error.reason)
    ours = rows_of(pa.Table.from_batches(batches, batches[0].schema if batches else schema))
    return Merged(files, ours, hudis, vars(merged.counts), counts)


def rows_of(table: pa.Table) -> list[str]:
    """Returns each row as text, without its file name and without the order of map entries."""
    names = [name for name in table.schema.names if name != "_hoodie_file_name"]
    columns = [
        [_comparable(value, table.schema.field(name).type) for value in table[name].to_pylist()] for name in names
    ]
    return [repr(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _comparable(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        entries = [(_comparable(key, kind.key_type), _comparable(each, kind.item_type)) for key, each in value]
        return sorted(entries, key=repr)
    if pa.types.is_list(kind):
        return [_comparable(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: _comparable(value[field.name], field.type) for field in kind}
    return value
