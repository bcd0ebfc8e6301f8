"""Measures what a rewrite of base files costs per byte: to decode, to encode, and to copy row groups.

    python tests/benchmarks/rehash.py [--rows 1000000]

The figures are those by which `jobs.dataplane.rehash_ways` compares the ways to another number of buckets. CPU seconds
of this process count, in one run and without Spark; each figure is the median of three.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.format import bucket_hash
from jobs.storage.paths import batches_of, of_hadoop

if TYPE_CHECKING:
    from collections.abc import Callable

CODECS = ("gzip", "snappy", "zstd")
OLD, NEW, REPEAT = 4, 7, 3


def costs(folder: Path, rows: int, codec: str) -> dict[str, float]:
    """Returns the CPU seconds of decoding a file, and the cost of encoding and of copying it as multiples of them."""
    storage = of_hadoop(str(folder), {})
    work = Rewrite(storage, "20260101000000000", ("id",))
    whole, piece = folder / "00000000-in.parquet", folder / "00000004-in.parquet"
    _write(whole, rows, codec, OLD, 0)
    _write(piece, rows, codec, OLD * NEW, 4)
    split = Source("", whole.stem, 0, OLD * NEW, tuple(range(0, OLD * NEW, OLD)), str(whole), new_number=NEW)
    joined = Source("", piece.stem, 4, OLD * NEW, (4,), str(piece), new_number=NEW)

    def decode() -> None:
        with storage.read_parquet(str(whole), rows=True) as reader:
            for batch in batches_of(reader):
                del batch

    decoded = _cpu_seconds(decode)
    rewritten = _cpu_seconds(lambda: rewrite_base_file(work, split, "0-0-0"))
    copied = _cpu_seconds(lambda: _require_copied(rewrite_base_file(work, joined, "0-0-0")))
    return {
        "megabytes": round(whole.stat().st_size / 1e6, 1),
        "decode_seconds": round(decoded, 3),
        "encode_by_decode": round((rewritten - decoded) / decoded, 2),
        "copy_by_decode": round(copied / decoded, 2),
    }


def _write(path: Path, rows: int, codec: str, modulus: int, bucket: int) -> None:
    """Writes so many rows of one bucket, with fifteen columns like those of a trip."""
    wanted = rows * modulus * 11 // 10 + 1000
    keys = pa.array([f"trip-{number:012d}" for number in range(wanted)])
    keys = keys.filter(pa.array(bucket_hash.bucket_ids(keys, ("id",), modulus) == bucket))[:rows]
    random = np.random.default_rng(7)
    columns: dict[str, object] = {
        "_hoodie_commit_time": ["20260101000000000"] * len(keys),
        "_hoodie_commit_seqno": [f"20260101000000000_0_{number}" for number in range(len(keys))],
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": [""] * len(keys),
        "_hoodie_file_name": [path.name] * len(keys),
        "id": keys,
        "city": pa.array([f"city {number}" for number in random.integers(0, 500, len(keys))]),
    }
    columns |= {f"n{number}": random.integers(0, 10**6, len(keys)) for number in range(4)}
    columns |= {f"x{number}": np.round(random.random(len(keys)) * 100, 2) for number in range(4)}
    pq.write_table(pa.table(columns), path, compression=codec, row_group_size=rows)


def _require_copied(written: list[object]) -> None:
    assert [getattr(file, "copied", False) for file in written] == [True]


def _cpu_seconds(what: Callable[[], object]) -> float:
    found = []
    for _ in range(REPEAT):
        started = time.process_time()
        what()
        found.append(time.process_time() - started)
    return median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    for codec in CODECS:
        with tempfile.TemporaryDirectory() as folder:
            print(codec, json.dumps(costs(Path(folder), rows, codec)), flush=True)


if __name__ == "__main__":
    main()
