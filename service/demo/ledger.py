"""Ledger of the batches that the demo's writer wrote and Hudi acknowledged. At the end, the table must contain exactly
the rows of the ledger."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiTable

PARTITIONS = 3
GROWTH_PERCENT = 2


@dataclass(frozen=True)
class Batch:
    """One upsert. Batch 0 writes all rows with `id < below`. Each later batch writes the rows of one partition; the
    partitions take turns.

    A row's partition is `id % PARTITIONS`. `below` grows, so a later batch has new rows as well as changed ones.
    """

    number: int
    below: int
    error: str | None = None

    @property
    def ids(self) -> range:
        return range(self.number % PARTITIONS, self.below, PARTITIONS) if self.number else range(self.below)

    def next(self) -> Batch:
        return Batch(self.number + 1, self.below + max(PARTITIONS, self.below * GROWTH_PERCENT // 100))


def append(path: Path, batch: Batch) -> None:
    """Records a batch when Hudi has acknowledged the batch, or has failed with `error`."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(batch)) + "\n")


def read(path: Path) -> list[Batch]:
    if not path.exists():
        return []
    return [Batch(**json.loads(line)) for line in path.read_text().splitlines()]


@dataclass(frozen=True)
class Comparison:
    """The differences between ledger and table. `lost` are acknowledged rows that are missing or have an older version,
    `unknown` are rows that were never written."""

    rows: int
    lost: int
    duplicates: int
    unknown: int


def compare(batches: list[Batch], base_path: Path) -> Comparison:
    """Compares the ledger with the table. The table is read by hudi-rs, a reader that is independent of Spark's."""
    expected = np.full(max(batch.below for batch in batches), -1, dtype=np.int64)
    for batch in batches:
        if batch.error is None:
            expected[batch.ids.start : batch.ids.stop : batch.ids.step] = batch.number
    table = pa.Table.from_batches(HudiTable(str(base_path)).read()).select(["id", "ts", "fare"])
    ids = pc.cast(pc.utf8_slice_codeunits(table["id"], 1), pa.int64()).to_numpy()
    versions, fares = table["ts"].to_numpy(), table["fare"].to_numpy()
    right = (ids < len(expected)) & (fares == fare(ids, versions))
    found = np.full(len(expected), -1, dtype=np.int64)
    np.maximum.at(found, ids[right], versions[right])
    return Comparison(
        rows=table.num_rows,
        lost=int(np.count_nonzero(found < expected)),
        duplicates=table.num_rows - len(np.unique(ids)),
        unknown=int(np.count_nonzero(~right)) + int(np.count_nonzero((found >= 0) & (expected < 0))),
    )


def fare(ids: np.ndarray, versions: np.ndarray) -> np.ndarray:
    """Returns a value that depends on both arguments, so that a row mixed from two versions is detected."""
    return np.asarray(ids * 2.5 + versions)
