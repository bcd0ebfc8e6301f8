"""Writes tables that have only what the service reads without a JVM: a timeline with real metadata, and files with
sizes.

The names and formats are those that Hudi 1.2 writes; `tests/integration/test_observed_tables.py` uses real tables.
"""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from service.lake.avro_file import MAGIC, first_record
from tests.support.log_file import avro_block

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STAT = {
    "type": "record",
    "name": "HoodieWriteStat",
    "fields": [
        {"name": "fileId", "type": ["null", "string"]},
        {"name": "path", "type": ["null", "string"]},
        *(
            {"name": name, "type": ["null", "long"]}
            for name in ("numWrites", "numInserts", "numUpdateWrites", "numDeletes", "totalWriteBytes")
        ),
    ],
}
_IDS = {"type": "map", "values": {"type": "array", "items": "string"}}
_COMMIT = {
    "type": "record",
    "name": "HoodieReplaceCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": _STAT}}},
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        {"name": "operationType", "type": ["null", "string"]},
        {"name": "partitionToReplaceFileIds", "type": _IDS},
    ],
}
_PARTITION = {"type": "record", "name": "Partition", "fields": [{"name": "partitionPath", "type": "string"}]}
_BY_PARTITION = {"name": "partitionMetadata", "type": {"type": "map", "values": _PARTITION}}
_CLEAN = {"type": "record", "name": "HoodieCleanMetadata", "fields": [_BY_PARTITION]}
_ROLLBACK = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "fields": [{"name": "commitsRollback", "type": {"type": "array", "items": "string"}}, _BY_PARTITION],
}
_RESTORE = {
    "type": "record",
    "name": "HoodieRestoreMetadata",
    "fields": [
        {
            "name": "hoodieRestoreMetadata",
            "type": {"type": "map", "values": {"type": "array", "items": _ROLLBACK}},
        }
    ],
}


def _nullable(schema: Any) -> list[Any]:
    return ["null", schema]


_ARCHIVED = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "fields": [
        {"name": "hoodieReplaceCommitMetadata", "type": _nullable(_COMMIT)},
        {"name": "hoodieCommitMetadata", "type": _nullable("HoodieReplaceCommitMetadata")},
        {"name": "hoodieCleanMetadata", "type": _nullable(_CLEAN)},
        {
            "name": "hoodieRollbackMetadata",
            "type": _nullable({**_ROLLBACK, "fields": [_ROLLBACK["fields"][0]]}),
        },
        *({"name": name, "type": _nullable("string")} for name in ("commitTime", "actionType", "actionState")),
    ],
}

PROPERTIES = {
    6: "hoodie.table.version=6\nhoodie.timeline.layout.version=1\n",
    9: "hoodie.table.version=9\nhoodie.timeline.layout.version=2\nhoodie.timeline.path=timeline\n",
}
SCHEMA = json.dumps({"type": "record", "name": "trips", "fields": [{"name": "id", "type": "string"}]})


def avro(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, dict(schema), [record])
    return out.getvalue()


def bucket_id(bucket: int, tail: int = 1) -> str:
    return f"{bucket:08d}-aaaa-bbbb-cccc-{tail:012x}-0"


class SmallTable:
    """A table below `base`. Instants may be short, but they must have the right order."""

    def __init__(self, base: Path, *, version: int = 9, table_type: str = "MERGE_ON_READ", utc: bool = True) -> None:
        self.base = base
        self.version = version
        self.timeline = base / ".hoodie" if version < 8 else base / ".hoodie" / "timeline"
        self.timeline.mkdir(parents=True)
        zone = "UTC" if utc else "LOCAL"
        (base / ".hoodie" / "hoodie.properties").write_text(
            f"hoodie.table.name={base.name}\nhoodie.table.type={table_type}\n{PROPERTIES[version]}"
            f"hoodie.table.timeline.timezone={zone}\n"
        )

    @classmethod
    def standing(cls, base: Path) -> SmallTable:
        """Returns an existing table of version 9."""
        table = cls.__new__(cls)
        table.base, table.version, table.timeline = base, 9, base / ".hoodie" / "timeline"
        return table

    def begin(
        self, instant: str, action: str = "deltacommit", *, heartbeat: float | None = None, flink: bool = False
    ) -> None:
        """`heartbeat` is the time of the writer's last heartbeat, in seconds since the epoch. Spark writes a workload
        profile into the inflight file, Flink nothing."""
        (self.timeline / f"{instant}.{action}.requested").touch()
        is_of_version_6 = action == "commit" and self.version < 8
        inflight = f"{instant}.inflight" if is_of_version_6 else f"{instant}.{action}.inflight"
        (self.timeline / inflight).write_bytes(b"" if flink else b"{}")
        if heartbeat is not None:
            folder = self.base / ".hoodie" / ".heartbeat"
            folder.mkdir(exist_ok=True)
            (folder / instant).touch()
            os.utime(folder / instant, (heartbeat, heartbeat))

    def schedule(self, instant: str, action: str) -> None:
        (self.timeline / f"{instant}.{action}.requested").touch()

    def commit(
        self,
        instant: str,
        files: Mapping[str, Mapping[str, int]] | None = None,
        *,
        action: str = "deltacommit",
        operation: str = "UPSERT",
        rows: int = 10,
        completed: str | None = None,
        replaced: Mapping[str, list[str]] | None = None,
        schema: str = SCHEMA,
        modified: float | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """`files` are names with their bytes, by partition; they are written too. `completed` is the completion time in
        table version 8 or later (by default the instant plus one); `modified` when the timeline file was written, for
        version 6."""
        stats: dict[str, list[dict[str, Any]]] = {}
        for partition, of_partition in (files or {}).items():
            for name, size in of_partition.items():
                self.file(partition, name, size)
                stats.setdefault(partition, []).append(
                    {
                        "fileId": name.lstrip(".").split("_")[0],
                        "path": f"{partition}/{name}".lstrip("/"),
                        "numWrites": rows,
                        "numInserts": 0,
                        "numUpdateWrites": rows,
                        "numDeletes": 0,
                        "totalWriteBytes": size,
                    }
                )
        record = {
            "partitionToWriteStats": stats,
            "extraMetadata": {"schema": schema, **(extra or {})},
            "operationType": operation,
            "partitionToReplaceFileIds": dict(replaced or {}),
        }
        content = avro(_COMMIT, record) if self.version >= 8 else json.dumps(record).encode()
        self.complete(instant, action, content, completed=completed, modified=modified)

    def clean(self, instant: str, partitions: tuple[str, ...], *, modified: float | None = None) -> None:
        content = avro(_CLEAN, {"partitionMetadata": {path: {"partitionPath": path} for path in partitions}})
        self.complete(instant, "clean", content, modified=modified)

    def rollback(self, instant: str, undone: str, partitions: tuple[str, ...] = ()) -> None:
        """Removes the remaining files of `undone` from the timeline, as Hudi does."""
        for path in self.timeline.glob(f"{undone}*"):
            path.unlink()
        record = {
            "commitsRollback": [undone],
            "partitionMetadata": {path: {"partitionPath": path} for path in partitions},
        }
        self.complete(instant, "rollback", avro(_ROLLBACK, record))

    def restore(self, instant: str, *undone: str, partitions: tuple[str, ...] = ()) -> None:
        """Restores the table: removes these instants from the timeline, as Hudi does. Only table version 8 and later
        have restores in this form."""
        for each in undone:
            for path in self.timeline.glob(f"{each}*"):
                path.unlink()
        touched = {path: {"partitionPath": path} for path in partitions}
        rollbacks = {each: [{"commitsRollback": [each], "partitionMetadata": touched}] for each in undone}
        self.complete(instant, "restore", avro(_RESTORE, {"hoodieRestoreMetadata": rollbacks}))

    def hashing_config(self, instant: str, num_buckets: int, rules: str = "") -> None:
        """`rules` are the rules of single partitions. The config counts if the timeline has a replacecommit of the same
        instant."""
        folder = self.base / ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
        folder.mkdir(parents=True, exist_ok=True)
        content = {"rule": "regex", "expressions": rules or f".*,{num_buckets}", "defaultBucketNumber": num_buckets}
        (folder / f"{instant}.hashing_config").write_text(json.dumps(content))

    def complete(
        self, instant: str, action: str, content: bytes, *, completed: str | None = None, modified: float | None = None
    ) -> None:
        name = f"{instant}.{action}" if self.version < 8 else f"{instant}_{completed or later(instant)}.{action}"
        path = self.timeline / name
        path.with_suffix(".tmp").write_bytes(content)
        path.with_suffix(".tmp").rename(path)
        if modified is not None:
            os.utime(path, (modified, modified))

    def file(self, partition: str, name: str, size: int) -> None:
        folder = self.base / partition
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("wb") as file:
            file.truncate(size)

    def add_metadata_table(self) -> SmallTable:
        """Adds a metadata table without any instant, which has only the list of files, and returns it."""
        with (self.base / ".hoodie" / "hoodie.properties").open("a") as file:
            file.write("hoodie.table.metadata.partitions=files\n")
        return SmallTable(self.base / ".hoodie" / "metadata", version=self.version)

    def archive(self, *instants: str) -> None:
        """Moves completed instants to the history: in version 9 the LSM timeline, in version 6 a log."""
        files = [path for instant in instants for path in sorted(self.timeline.glob(f"{instant}*"))]
        if self.version < 8:
            self._archive_in_log([path for path in files if path.name.count(".") == 1])
        else:
            self._archive_in_lsm([path for path in files if path.name.count(".") == 1 and "_" in path.name])
        for path in files:
            path.unlink()

    def _archive_in_log(self, files: list[Path]) -> None:
        folder = self.base / ".hoodie" / "archived"
        folder.mkdir(exist_ok=True)
        records = []
        for path in files:
            instant, _, action = path.name.partition(".")
            names = {"replacecommit": "hoodieReplaceCommitMetadata", "clean": "hoodieCleanMetadata"}
            content = path.read_bytes()
            record = first_record(content) if content.startswith(MAGIC) else json.loads(content or b"{}")
            for state in ("REQUESTED", "COMPLETED"):
                entry = {"commitTime": instant, "actionType": action, "actionState": state}
                if state == "COMPLETED":
                    entry[names.get(action, "hoodieCommitMetadata")] = record
                out = io.BytesIO()
                fastavro.schemaless_writer(out, _ARCHIVED, entry)
                records.append(avro_block(json.dumps(_ARCHIVED), [out.getvalue()]))
        number = len(list(folder.iterdir())) + 1
        (folder / f".commits_.archive.{number}_1-0-1").write_bytes(b"".join(records))

    def _archive_in_lsm(self, files: list[Path]) -> None:
        rows = []
        for path in files:
            times, _, action = path.name.partition(".")
            instant, _, completed = times.partition("_")
            row = {
                "instantTime": instant,
                "completionTime": completed,
                "action": action,
                "metadata": path.read_bytes(),
                "plan": b"",
                "version": 1,
            }
            rows.append(row)
        if rows:
            instants = [row["instantTime"] for row in rows]
            self.add_to_history(pa.Table.from_pylist(rows), f"{min(instants)}_{max(instants)}_0.parquet")

    def add_to_history(self, rows: pa.Table, name: str, *, replaces_all: bool = False) -> None:
        """Adds a file to the LSM timeline, and a manifest that lists it after the files of the last one; a compaction
        of the history replaces them all."""
        history = self.timeline / "history"
        history.mkdir(exist_ok=True)
        pq.write_table(rows, history / name)
        versions = [int(path.name.partition("_")[2]) for path in history.glob("manifest_*")]
        last = (
            json.loads((history / f"manifest_{max(versions)}").read_text())
            if versions and not replaces_all
            else {"files": []}
        )
        last["files"].append({"fileName": name, "fileLen": (history / name).stat().st_size})
        version = max(versions, default=0) + 1
        (history / f"manifest_{version}").write_text(json.dumps(last))
        (history / "_version_").write_text(str(version))


def later(instant: str, by: int = 1) -> str:
    return str(int(instant) + by).zfill(len(instant))


def instant_at(moment: datetime) -> str:
    """Returns the instant as Hudi names it in a timeline whose zone is UTC."""
    return moment.astimezone(UTC).strftime("%Y%m%d%H%M%S%f")[:-3]


def base_file(file_id: str, instant: str, token: str = "0-1-1") -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def log_file(file_id: str, instant: str, number: int = 1, token: str = "0-1-1") -> str:
    return f".{file_id}_{instant}.log.{number}_{token}"
