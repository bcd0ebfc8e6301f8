"""Hides instants, or the number of buckets, from a writer, as if the writer had read the table before them."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame


@contextmanager
def hidden(base: Path, instant: str, away: Path) -> Iterator[None]:
    """Moves the instants' files to the new folder `away`."""
    away.mkdir()
    paths = [path for folder in (".hoodie", ".hoodie/timeline") for path in (base / folder).glob(f"{instant}*")]
    for path in paths:
        shutil.move(path, away / path.name)
    yield
    for path in paths:
        shutil.move(away / path.name, path)


@contextmanager
def unseen_config(base: Path) -> Iterator[None]:
    """Hides the hashing config, as from a writer that has read the number of buckets before the change."""
    config = base / ".hoodie" / ".bucket_index"
    away = base.with_name(f"{base.name} config")
    shutil.move(config, away)
    yield
    shutil.move(away, config)


def write_stale(frame: DataFrame, base: Path, options: dict[str, str]) -> str:
    """Writes by the number in the options; returns the instant."""
    with unseen_config(base):
        tables.upsert(frame, base, options)
    return tables.newest(base)
