"""Hides instants from a writer, as if the writer had read the timeline before them."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
