"""Tests the comparison of the record keys of two base files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from jobs.dataplane import key_changes
from jobs.dataplane.key_digest import KeyDigest
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

# Each of these keys has another Java hash code. Keys such as "Aa" and "BB", which share a hash code, are left out.
_KEYS = st.lists(st.sampled_from(["", "a", "b", "k1", "k2", "ü", "id:1,day:1", "id:1,day:2"]), max_size=12)


def _file(folder: Path, name: str, keys: Sequence[str]) -> str:
    path = folder / name
    pq.write_table(pa.table({"_hoodie_record_key": pa.array(keys, pa.string()), "n": range(len(keys))}), path)
    return str(path)


@given(old=_KEYS, new=_KEYS)
def test_a_comparison_counts_the_keys_that_only_one_file_has(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    change = key_changes.compare(
        of_hadoop(str(folder), {}), _file(folder, "old.parquet", old), _file(folder, "new.parquet", new)
    )
    assert change.gone == (Counter(old) - Counter(new)).total()
    assert change.new == (Counter(new) - Counter(old)).total()
    assert (change.before.rows, change.after.rows) == (len(old), len(new))
    assert change.after == KeyDigest.of(pa.array(new, pa.string()))


def test_a_file_group_without_a_base_file_has_no_keys(tmp_path: Path) -> None:
    change = key_changes.compare(of_hadoop(str(tmp_path), {}), None, _file(tmp_path, "new.parquet", ["a", "b"]))
    assert (change.before, change.gone, change.new) == (KeyDigest(), 0, 2)


def test_a_file_of_many_batches_has_the_digest_of_all_its_keys(tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(200_000)]
    path = _file(tmp_path, "a.parquet", keys)
    assert key_changes.digest(of_hadoop(str(tmp_path), {}), path) == KeyDigest.of(pa.array(keys))
    assert key_changes.compare(of_hadoop(str(tmp_path), {}), path, _file(tmp_path, "b.parquet", keys[1:])).gone == 1
