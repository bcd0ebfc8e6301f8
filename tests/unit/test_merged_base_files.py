"""Tests merging the base files of several buckets into one: rows, order, layout, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.rewrite_job import in_parts
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.format import bucket_hash
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [f"k{number}" for number in range(400)]


def rows(keys: list[str], **more: list[Any]) -> pa.Table:
    return pa.table(
        {"_hoodie_record_key": keys, "_hoodie_file_name": ["old"] * len(keys), "n": range(len(keys)), **more}
    )


def keys_of(bucket: int, modulus: int) -> list[str]:
    found = bucket_hash.bucket_ids(pa.array(KEYS), ("id",), modulus).tolist()
    return [key for key, its in zip(KEYS, found, strict=True) if its == bucket]


def sources(tmp_path: Path, tables: dict[int, pa.Table], *, modulus: int = 8, to: int = 2) -> Source:
    """Returns one source for each bucket; all are merged into the first."""
    parts = []
    for bucket, table in tables.items():
        path = tmp_path / f"{bucket:08d}-in.parquet"
        pq.write_table(table, path)
        parts.append(Source("", path.stem, bucket, modulus, (bucket,), str(path), new_number=to))
    first, *others = parts
    return Source("", first.file_id, first.bucket, modulus, (first.bucket,), first.base_file, None, to, tuple(others))


def rewrite(tmp_path: Path, source: Source) -> list[Any]:
    return rewrite_base_file(Rewrite(of_hadoop(str(tmp_path), {}), "20260101000000000", ("id",)), source, "0-0-0")


def test_the_rows_follow_each_other_in_one_file_of_the_smaller_number(tmp_path: Path) -> None:
    expected = {bucket: keys_of(bucket, 8) for bucket in (5, 1, 3, 7)}

    [written] = rewrite(tmp_path, sources(tmp_path, {bucket: rows(keys) for bucket, keys in expected.items()}))

    all_keys = [key for keys in expected.values() for key in keys]
    found = pq.read_table(tmp_path / written.file_name)
    assert found.column("_hoodie_record_key").to_pylist() == all_keys
    assert set(found.column("_hoodie_file_name").to_pylist()) == {written.file_name}
    assert written.file_id.startswith("00000001-")
    assert KeyDigest.parse(written.rows, written.key_digest) == KeyDigest.of(pa.array(all_keys))
    markers = [path.name for path in (tmp_path / ".hoodie/.temp/20260101000000000").iterdir()]
    assert markers == [f"{written.file_name}.marker.CREATE"]


def test_a_column_may_have_a_small_dictionary_in_some_of_the_files_only(tmp_path: Path) -> None:
    first, second = keys_of(0, 8), keys_of(2, 8)
    tables = {
        0: rows(first, city=["Oslo"] * len(first)),
        2: rows(second, city=[f"city {key}" * 3 for key in second]),
    }
    tables[4] = tables[2].slice(0, 0)
    [written] = rewrite(tmp_path, sources(tmp_path, tables))
    cities = pq.read_table(tmp_path / written.file_name).column("city").to_pylist()
    assert cities == ["Oslo"] * len(first) + [f"city {key}" * 3 for key in second]


def test_a_key_in_two_of_the_buckets_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    twice = keys_of(1, 8)[0]
    given = sources(tmp_path, {1: rows(keys_of(1, 8)), 5: rows([*keys_of(5, 8), twice])})
    with pytest.raises(RefusedError, match="bucket 5") as caught:
        rewrite(tmp_path, given)
    assert caught.value.problem().type == "bucket-index-contradicted"
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["00000001-in.parquet", "00000005-in.parquet"]


def test_files_with_other_columns_are_not_merged(tmp_path: Path) -> None:
    more = rows(keys_of(5, 8), tip=[1.5] * len(keys_of(5, 8)))
    with pytest.raises(RefusedError) as caught:
        rewrite(tmp_path, sources(tmp_path, {1: rows(keys_of(1, 8)), 5: more}))
    assert caught.value.problem().type == "schema-not-reproducible"


def test_several_tasks_write_the_files_of_a_family_and_none_writes_rows_of_another(tmp_path: Path) -> None:
    tables = {bucket: rows(keys_of(bucket, 3)) for bucket in range(3)}
    parts = []
    for bucket, table in tables.items():
        path = tmp_path / f"{bucket:08d}-in.parquet"
        pq.write_table(table, path)
        residues = tuple(range(bucket, 12, 3))
        parts.append(Source("", path.stem, bucket, 12, residues, str(path), new_number=4))
    whole = replace(parts[0], merged_with=tuple(parts[1:]))

    tasks = [source for source, _ in in_parts([(whole, 100)], 3)]
    written = [file for source in tasks for file in rewrite(tmp_path, source)]

    assert [source.only for source in tasks] == [(0, 3, 2), (1,)]
    for file in written:
        found = pq.read_table(tmp_path / file.file_name).column("_hoodie_record_key").to_pylist()
        assert sorted(found) == sorted(keys_of(file.bucket, 4))
        assert KeyDigest.parse(file.rows, file.key_digest) == KeyDigest.of(pa.array(found))
    assert sum(file.rows for file in written) == len(KEYS)
    # Each task finds a row of another bucket, also one whose file another task writes.
    stray = next(key for key in keys_of(1, 3) if key in keys_of(1, 4))
    pq.write_table(rows([*keys_of(0, 3), stray]), tmp_path / "00000000-in.parquet")
    for source in tasks:
        with pytest.raises(RefusedError, match="bucket 0"):
            rewrite(tmp_path, source)
