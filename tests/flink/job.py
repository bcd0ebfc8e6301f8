"""A Flink job whose rows are computed from a sequence, so that the last number determines the expected rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STAYS_SECONDS = 3600
_GONE = 7
# Options that every job needs to write a table with a simple bucket index.
_PLAIN = {
    "index.type": "BUCKET",
    "ordering.fields": "ver",
    "compaction.schedule.enabled": "false",
    "compaction.async.enabled": "false",
    "clean.async.enabled": "false",
}


@dataclass(frozen=True)
class Row:
    """The latest version of a key."""

    ver: int
    val: str
    num: float
    part: str


@dataclass(frozen=True)
class FlinkJob:
    """Sends the numbers `first` to `last`, `rate` a second; number n is version n of key n modulo `keys`.

    `options` override the options of the table; an empty value removes one. Keys from `late` on are written to a new
    partition. The job ends after the last number; if it `stays`, it only makes checkpoints for another hour (because
    Flink makes all numbers of a sequence at its start). If it `deletes`, a key does not exist while its version is a
    multiple of 7. If `timestamps` is set, rows have an `at`, n seconds and 123 ms after the beginning of 2024.
    """

    base: Path | str
    last: int
    first: int = 0
    rate: int = 100
    keys: int = 2000
    late: int = 1500
    buckets: int = 4
    table_type: str = "MERGE_ON_READ"
    checkpoint_seconds: float = 2.0
    parallelism: int = 2
    stays: bool = False
    deletes: bool = False
    timestamps: bool = False
    name: str | None = None
    table_name: str = "lake"
    options: Mapping[str, str] = field(default_factory=dict)
    more_settings: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> dict[str, str]:
        """Returns the settings of Flink for this job."""
        return {
            "execution.runtime-mode": "streaming",
            "parallelism.default": str(self.parallelism),
            "execution.checkpointing.interval": f"{int(self.checkpoint_seconds * 1000)} ms",
            **({"pipeline.name": self.name} if self.name else {}),
            **self.more_settings,
        }

    def statements(self) -> list[str]:
        """Returns the statements that create source and table and start the job."""
        source = {
            "connector": "datagen",
            "rows-per-second": self.rate,
            "fields.seq.kind": "sequence",
            "fields.seq.start": self.first,
            "fields.seq.end": self.last + (_STAYS_SECONDS * self.rate if self.stays else 0),
        }
        return [f"CREATE TEMPORARY TABLE numbers (seq BIGINT) WITH ({_with(source)})", self.table(), self._insert()]

    def table(self) -> str:
        """Returns the table's DDL."""
        options = {
            "connector": "hudi",
            "path": self.base if isinstance(self.base, str) else self.base.as_uri(),
            "table.type": self.table_type,
            "hoodie.bucket.index.num.buckets": str(self.buckets),
            **_PLAIN,
            **self.options,
        }
        return (
            f"CREATE TEMPORARY TABLE {self.table_name} (id STRING, ver BIGINT, val STRING, num DOUBLE, part STRING,"
            f"{' `at` TIMESTAMP(3),' if self.timestamps else ''}"
            " PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (part)"
            f" WITH ({_with({key: value for key, value in options.items() if value})})"
        )

    def _insert(self) -> str:
        numbers = f"SELECT MOD(seq, {self.keys}) AS n, seq FROM numbers WHERE seq <= {self.last}"
        if self.deletes:
            # Flink retracts the row of a group that no longer fulfils the condition.
            latest = f"SELECT n, MAX(seq) AS seq FROM ({numbers}) GROUP BY n"
            numbers = f"{latest} HAVING MOD(MAX(seq), {_GONE}) <> 0"
        at = "TIMESTAMPADD(SECOND, CAST(seq AS INT), TIMESTAMP '2024-01-01 00:00:00.123')"
        return (
            f"INSERT INTO {self.table_name} SELECT 'k' || LPAD(CAST(n AS STRING), 7, '0'), seq,"
            " 'v' || CAST(seq * 31 AS STRING),"
            " CAST(seq AS DOUBLE) / 7,"
            f" CASE WHEN n >= {self.late} THEN 'late' ELSE 'p' || CAST(MOD(n, 3) AS STRING) END"
            f"{f', CAST({at} AS TIMESTAMP(3))' if self.timestamps else ''} FROM ({numbers})"
        )

    def expected(self, last: int | None = None) -> dict[str, Row]:
        """Returns the rows by their keys after all numbers up to `last` (default: the job's last number)."""
        end = (self.last if last is None else last) + 1
        rows = {}
        for number in range(max(0, end - self.keys), end):
            key = number % self.keys
            if self.deletes and number % _GONE == 0:
                continue
            rows[f"k{key:07d}"] = Row(
                number, f"v{number * 31}", number / 7, "late" if key >= self.late else f"p{key % 3}"
            )
        return rows


def _with(options: Mapping[str, object]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
