"""Tests which changes the digest of record keys detects, and that a rewrite with exchanged rows fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane import row_buffer
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import RefusedError
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEYS = [f"id:{number},day:{number % 7}" for number in range(5000)] + ["", "ü", "id:1,day:1"]


def test_parts_in_any_order_add_up_to_the_whole() -> None:
    whole = KeyDigest.of(pa.array(KEYS))
    assert KeyDigest.of(pa.chunked_array([KEYS[3000:], KEYS[:3000]])) == whole
    assert KeyDigest.of(pa.array(KEYS).dictionary_encode()) == whole
    parts = [KeyDigest.of(pa.array(KEYS[place::3])) for place in range(3)]
    assert KeyDigest.sum(KeyDigest.parse(part.rows, str(part)) for part in parts) == whole


@pytest.mark.parametrize(
    "others",
    [KEYS[1:], [*KEYS, "id:1,day:1"], ["id:0,day:1", *KEYS[1:]], [KEYS[1], *KEYS[1:]]],
    ids=["one less", "one twice", "another key", "one instead of another"],
)
def test_another_set_of_rows_has_another_digest(others: Sequence[str]) -> None:
    assert KeyDigest.of(pa.array(others)) != KeyDigest.of(pa.array(KEYS))


def test_a_rewrite_that_exchanges_a_row_for_another_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "00000000-in.parquet"
    rows = pa.table({"_hoodie_record_key": KEYS, "_hoodie_file_name": ["f"] * len(KEYS), "n": range(len(KEYS))})
    pq.write_table(rows, path)
    work = Rewrite(of_hadoop(str(tmp_path), {}), "20260101000000000", (), sort_by=("n",))
    source = Source("", "00000000-in", 0, 1, (0,), str(path))
    [written] = rewrite_base_file(work, source, "0-0-0")
    assert KeyDigest.parse(written.rows, written.key_digest) == KeyDigest.of(pa.array(KEYS))

    def with_one_twice(table: pa.Table, *_: object) -> pa.Array:
        return pa.array([1, *range(1, table.num_rows)])

    monkeypatch.setattr(row_buffer, "sort_indices", with_one_twice)
    with pytest.raises(RefusedError, match="file group 00000000-in: 5003 rows") as caught:
        rewrite_base_file(work, source, "0-0-1")
    assert caught.value.problem().type == "rows-differ"
