"""Tests artificial slices: which blocks count, which slices are refused, and that large and small merges have the same
rows."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import held_batches, log_records
from jobs.dataplane.slice_merge import MergeCounts, MergeRules, NotProvedError, SliceFiles, merge_slice
from jobs.storage.paths import Storage
from tests.unit.test_log_blocks import block, deletes, wrapper

if TYPE_CHECKING:
    from pathlib import Path

T0, T1, T2, T3 = (f"2026010100000000{number}" for number in range(4))
META = [f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")]
TEXT = ["null", "string"]
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        *({"name": name, "type": TEXT} for name in META),
        {"name": "ts", "type": "long"},
        {"name": "city", "type": TEXT},
        {"name": "tags", "type": ["null", {"type": "array", "items": TEXT}]},
    ],
}
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in META),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("tags", pa.list_(pa.field("array", pa.string()))),
    ]
)
RULES = MergeRules("EVENT_TIME_ORDERING", ("ts",), 9, frozenset(), T3)
Row = dict[str, Any]


def row(key: int, ts: int, instant: str = T0, **more: Any) -> Row:
    meta = [instant, f"{instant}_{key}", f"k{key}", "p", "old"]
    return dict(zip(META, meta, strict=True)) | {"ts": ts, "city": f"c{key % 3}", "tags": ["a"] * (key % 3)} | more


def data(
    instant: str, rows: list[Row], *, avro: Any = AVRO, header: dict[int, str] | None = None, kind: int = 3
) -> bytes:
    content = io.BytesIO()
    for each in rows:
        record = io.BytesIO()
        fastavro.schemaless_writer(record, avro, each)
        content.write(struct.pack(">i", len(record.getvalue())) + record.getvalue())
    written = struct.pack(">ii", 3, len(rows)) + content.getvalue()
    return block(kind, {0: instant, 2: json.dumps(avro), **(header or {})}, written)


def rollback(of: str) -> bytes:
    return block(0, {0: T3, 1: of, 3: "0"}, b"")


def deleted(instant: str, *keys: int, ts: int | None = None) -> bytes:
    value = wrapper("Int", 0) if ts is None else wrapper("Long", ts)
    return block(1, {0: instant}, deletes(*((f"k{key}", value) for key in keys)))


def merged(
    folder: Path,
    base: list[Row],
    *logs: bytes,
    rules: MergeRules = RULES,
    batch_rows: int = 3,
    schema: pa.Schema = SCHEMA,
) -> tuple[dict[str, tuple[str, int, str]], MergeCounts]:
    """Returns commit time, ordering value and city by key, after it has asserted the rows' order and other columns."""
    (folder / "p").mkdir(exist_ok=True)
    path = None
    if base:
        path = f"p/f_0-0-0_{T0}.parquet"
        pq.write_table(pa.Table.from_pylist(base, SCHEMA), folder / path, row_group_size=4)
    names = []
    for number, content in enumerate(logs, 1):
        names.append(f"p/.f_{T1}.log.{number}_0-0-0")
        (folder / names[-1]).write_bytes(content)
    # The order of the logs decides, not that of the plan.
    files = SliceFiles("p", "f", path, tuple(reversed(names)))
    found = merge_slice(Storage(str(folder)), files, rules, schema, batch_rows=batch_rows)
    batches = list(found.batches())
    assert len({batch.schema for batch in batches}) <= 1
    rows = [each for batch in batches for each in batch.to_pylist()]
    assert found.counts.rows == len(rows)
    kept = [each["_hoodie_record_key"] for each in base if each["_hoodie_record_key"] in {r[META[2]] for r in rows}]
    assert [each["_hoodie_record_key"] for each in rows][: len(kept)] == kept
    for each in rows:
        assert each["_hoodie_file_name"] is None
        assert len(each["tags"]) == int(each["_hoodie_record_key"][1:]) % 3
    return {each[META[2]]: (each[META[0]], each["ts"], each["city"]) for each in rows}, found.counts


def test_the_newer_row_stays_and_log_rows_come_last(tmp_path: Path) -> None:
    base = [row(key, 5) for key in range(10)]
    log = data(T1, [row(1, 5, T1, city="new"), row(2, 4, T1), row(20, 1, T1)])
    found, counts = merged(tmp_path, base, log, deleted(T2, 3) + deleted(T2, 4, ts=4) + deleted(T2, 5, 20, ts=6))
    assert found == {
        **{f"k{key}": (T0, 5, f"c{key % 3}") for key in (0, 2, 4, 6, 7, 8, 9)},
        "k1": (T1, 5, "new"),
    }
    # The versions of k2 and k4 in the logs are older than the base file's, but replace them nevertheless.
    assert counts == MergeCounts(2, counts.log_bytes, 4, 0, 0, 7, 6, 1, 0, 3, 8)


def test_blocks_count_by_their_instants(tmp_path: Path) -> None:
    base = [row(key, 1) for key in range(5)]
    logs = [data(T1, [row(1, 2, T1)]) + data(T2, [row(2, 2, T2)]), rollback(T1) + data(T3, [row(3, 2, T3)])]
    found, counts = merged(tmp_path, base, *logs)
    assert {key for key, (instant, _, _) in found.items() if instant != T0} == {"k2", "k3"}
    assert (counts.log_blocks, counts.rollback_blocks, counts.log_records) == (4, 1, 2)

    def keys_from_logs(rules: MergeRules) -> set[str]:
        return {key for key, (instant, _, _) in merged(tmp_path, base, *logs, rules=rules)[0].items() if instant != T0}

    some = MergeRules("EVENT_TIME_ORDERING", ("ts",), 6, frozenset({T3}), T3)
    assert keys_from_logs(some) == {"k3"}
    archived = MergeRules("EVENT_TIME_ORDERING", ("ts",), 6, frozenset({T3}), T3, frozenset({T1}), T3)
    assert keys_from_logs(archived) == {"k2", "k3"}
    pending = MergeRules("EVENT_TIME_ORDERING", ("ts",), 6, frozenset({T2}), T2)
    assert keys_from_logs(pending) == {"k2"}


@pytest.mark.parametrize(
    "rules",
    [
        MergeRules("EVENT_TIME_ORDERING", ("ts",), 9, frozenset(), T2),
        MergeRules("EVENT_TIME_ORDERING", ("ts",), 9, frozenset(), ""),
        MergeRules("EVENT_TIME_ORDERING", ("ts",), 6, frozenset({T2, T3}), T2),
    ],
)
def test_rows_of_a_completed_instant_are_not_left_out(tmp_path: Path, rules: MergeRules) -> None:
    logs = data(T2, [row(2, 2, T2)]) + data(T3, [row(3, 2, T3)])
    with pytest.raises(NotProvedError, match="newer than the latest"):
        merged(tmp_path, [row(1, 1)], logs, rules=rules)


def test_by_commit_time_the_last_row_stays(tmp_path: Path) -> None:
    rules = MergeRules("COMMIT_TIME_ORDERING", (), 9, frozenset(), T3)
    logs = [data(T1, [row(1, 0, T1), row(2, 9, T1)]), deleted(T2, 1, 2), data(T3, [row(2, 1, T3)])]
    found, _ = merged(tmp_path, [row(key, 5) for key in range(3)], *logs, rules=rules)
    assert found == {"k0": (T0, 5, "c0"), "k2": (T3, 1, "c2")}


def test_deletes_by_position_are_not_counted_with_commit_time(tmp_path: Path) -> None:
    rules = MergeRules("COMMIT_TIME_ORDERING", (), 9, frozenset(), T3)
    known = {5: "AAAA", 8: T0}
    gone = [block(1, {0: T2, **known}, deletes((f"k{key}", wrapper("Int", 0)))) for key in (1, 2)]
    logs = [data(T1, [row(0, 9, T1)], header=known), gone[0], deleted(T2, 3), gone[1]]
    found, counts = merged(tmp_path, [row(key, 5) for key in range(5)], *logs, rules=rules)
    assert sorted(found) == ["k0", "k4"]
    # Rows are found by their keys from the first block without positions on.
    assert (counts.log_records, counts.log_keys, counts.deletes) == (3, 4, 3)


def test_only_the_first_of_several_base_rows_with_a_key_is_merged(tmp_path: Path) -> None:
    base = [row(key, ts) for ts in range(4) for key in range(3)]
    path = tmp_path / f"p/f_0-0-0_{T0}.parquet"
    (tmp_path / "p").mkdir()
    pq.write_table(pa.Table.from_pylist(base, SCHEMA), path, row_group_size=5)
    (tmp_path / f"p/.f_{T1}.log.1_0-0-0").write_bytes(data(T1, [row(1, 7, T1)]) + deleted(T1, 2, ts=7))
    files = SliceFiles("p", "f", f"p/{path.name}", (f"p/.f_{T1}.log.1_0-0-0",))
    found = merge_slice(Storage(str(tmp_path)), files, RULES, SCHEMA, batch_rows=2)
    rows = [(each[META[2]], each["ts"]) for batch in found.batches() for each in batch.to_pylist()]
    assert rows == [("k0", 0), ("k1", 7), *((f"k{key}", ts) for ts in (1, 2, 3) for key in (0, 1, 2))]
    positions = data(T1, [row(1, 7, T1)], header={5: "AAAA", 8: T0})
    (tmp_path / f"p/.f_{T1}.log.1_0-0-0").write_bytes(positions)
    with pytest.raises(NotProvedError, match="positions"):
        list(merge_slice(Storage(str(tmp_path)), files, RULES, SCHEMA, batch_rows=2).batches())


def test_a_column_that_is_new_in_the_logs_is_null_in_other_rows(tmp_path: Path) -> None:
    old = {**AVRO, "fields": [each for each in AVRO["fields"] if each["name"] != "city"]}  # type: ignore[union-attr,index]
    log = data(T1, [{name: value for name, value in row(1, 9, T1).items() if name != "city"}], avro=old)
    assert merged(tmp_path, [row(1, 5), row(2, 5)], log)[0] == {"k1": (T1, 9, None), "k2": (T0, 5, "c2")}
    defaults = MergeRules("EVENT_TIME_ORDERING", ("ts",), 9, frozenset(), T3, with_default=frozenset({"city"}))
    with pytest.raises(NotProvedError, match="default"):
        merged(tmp_path, [row(1, 5)], log, rules=defaults)


GOOD = data(T1, [row(1, 9, T1)])
NO_KEY, ELSEWHERE = row(1, 9) | {META[2]: None}, row(1, 9) | {META[3]: "q"}
OPERATION = {**AVRO, "fields": [*AVRO["fields"], {"name": "_hoodie_operation", "type": TEXT}]}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("reason", "log"),
    {
        "cdc": ("CDC_DATA", data(T1, [], kind=6)),
        "hfile": ("HFILE_DATA", data(T1, [], kind=4)),
        "corrupt": ("CORRUPT", data(T1, [], kind=2)),
        "partial": ("partial", data(T1, [], header={7: "true"})),
        "log compaction": ("log compaction", data(T1, [], header={4: T0})),
        "command": ("no rollback", block(0, {0: T1, 1: T1, 3: "1"}, b"")),
        "no schema": ("no schema", block(3, {0: T1}, struct.pack(">ii", 3, 0))),
        "more bytes": ("more bytes", block(3, {0: T1, 2: json.dumps(AVRO)}, struct.pack(">ii", 3, 0) + b"x")),
        "no key": ("no key", data(T1, [NO_KEY])),
        "another partition": ("partition", data(T1, [ELSEWHERE])),
        "another type": ("ts", data(T1, [], avro=json.loads(json.dumps(AVRO).replace('"long"', '"double"')))),
        "another column": ("_hoodie_operation", data(T1, [], avro=OPERATION)),
        "truncated": ("block", GOOD[:-3]),
        "broken Parquet": ("Parquet", data(T1, [row(1, 9)], kind=5)),
        "delete of another type": ("ordering value", block(1, {0: T1}, deletes(("k1", wrapper("String", "x"))))),
    }.values(),
)
def test_slices_whose_merge_is_not_proved_are_refused_with_a_reason(tmp_path: Path, reason: str, log: bytes) -> None:
    with pytest.raises(NotProvedError, match=reason) as refused:
        merged(tmp_path, [row(1, 5)], log)
    assert pickle.loads(pickle.dumps(refused.value)).reason == refused.value.reason


def test_base_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for base in ([ELSEWHERE], [NO_KEY]):
        with pytest.raises(NotProvedError):
            merged(tmp_path, base, GOOD)
    narrower = pa.schema([each for each in SCHEMA if each.name != "city"])
    with pytest.raises(NotProvedError, match="city"):
        merged(tmp_path, [row(1, 5)], GOOD, schema=narrower)
    with pytest.raises(NotProvedError, match="10"):
        merged(tmp_path, [row(1, 5)], GOOD, rules=MergeRules("EVENT_TIME_ORDERING", ("ts",), 10, frozenset(), T3))


@pytest.mark.parametrize(
    ("entries", "is_old"),
    [
        ({"org.apache.spark.version": "3.5.9"}, False),
        ({}, False),
        ({"org.apache.spark.version": "3.5.9", "org.apache.spark.legacyDateTime": ""}, True),
        ({"org.apache.spark.version": "2.4.8"}, True),
    ],
)
@pytest.mark.parametrize("kind", [pa.date32(), pa.list_(pa.timestamp("us")), pa.string()])
def test_dates_of_sparks_old_calendar_are_left_to_hudi(
    tmp_path: Path, entries: dict[str, str], is_old: bool, kind: pa.DataType
) -> None:
    schema = SCHEMA.append(pa.field("day", kind))
    (tmp_path / "p").mkdir()
    path = tmp_path / f"p/f_0-0-0_{T0}.parquet"
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        writer.write_table(pa.Table.from_pylist([row(key, 1) for key in range(5)], schema))
        writer.add_key_value_metadata(entries)
    found = merge_slice(Storage(str(tmp_path)), SliceFiles("p", "f", f"p/{path.name}", ()), RULES, schema, batch_rows=9)
    if is_old and not pa.types.is_string(kind):
        with pytest.raises(NotProvedError, match="calendar"):
            list(found.batches())
    else:
        assert sum(batch.num_rows for batch in found.batches()) == 5


@pytest.mark.parametrize("seed", range(3))
def test_large_logs_are_merged_like_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Merging in chunks of a few records that are held in a file returns the rows of a plain dictionary."""
    pick = random.Random(seed)
    base = [row(key, pick.randrange(5)) for key in range(40)]
    places = [(pick.randrange(60), pick.randrange(9), str(pick.random())) for _ in range(120)]
    rows = [row(key, ts, T1, city=city) for key, ts, city in places]
    batches = [rows[first : first + 30] for first in range(0, 120, 30)]
    expected = {each[META[2]]: each for each in base}
    for each in rows:
        if each["ts"] >= expected.get(each[META[2]], each)["ts"]:
            expected[each[META[2]]] = each
    monkeypatch.setattr(log_records, "_CHUNK_BYTES", 300)
    monkeypatch.setattr(log_records, "HeldBatches", lambda schema: held_batches.HeldBatches(schema, 2000))
    found, _ = merged(tmp_path, base, *(data(T1, each) for each in batches), batch_rows=1 + seed * 10)
    assert found == {key: (each[META[0]], each["ts"], each["city"]) for key, each in expected.items()}
