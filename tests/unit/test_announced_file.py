"""A task that goes on after its instant has ended completes no file."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from jobs.dataplane.joined_files import join
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.errors import CommitLostError
from jobs.storage import announced_file
from jobs.storage.announced_file import AnnouncedFile
from jobs.storage.paths import of_hadoop
from tests.unit import test_joined_files as joined
from tests.unit import test_kept_chunks as chunks
from tests.unit import test_row_group_copy as groups
from tests.unit.test_slice_merge import T0, T1, data

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jobs.storage.paths import Output

INSTANT = "20260101000000000"
INFLIGHT = f".hoodie/timeline/{INSTANT}.replacecommit.inflight"


def split(folder: Path, *, apart: bool) -> Callable[[], object]:
    """Returns the rewrite of a file; its row groups can be copied if they have the rows of one new bucket each."""
    stay, go = groups.keys_of(1, 8)[:50], groups.keys_of(5, 8)[:50]
    path = folder / "00000001-in.parquet"
    groups.write(path, [groups.rows(stay), groups.rows(go)] if apart else [groups.rows([*stay, *go])])
    return lambda: rewrite_base_file(groups.work(folder), groups.in_halves(path), "0-0-0")


def compact(folder: Path, *, copies: bool) -> Callable[[], object]:
    chance = random.Random(1)
    rows = [chunks.wide_row(key, 5, T0, chance) for key in range(50)]
    log = data(T1, [chunks.wide_row(1, 6, T1, chance)], avro=chunks.WIDE)
    work = chunks.make(folder, chunks.SCHEMA, rows, log)
    return lambda: chunks.compacted(work, folder, 0 if copies else 1 << 40)


def joining(folder: Path) -> Callable[[], object]:
    slices = tuple(joined.write(folder, name, joined.rows(place, place + 9)) for place, name in ((0, "a"), (9, "b")))
    return lambda: join(joined.work(folder, slices[0]), slices, "0-1-0")


WRITERS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "row groups copied": lambda folder: split(folder, apart=True),
    "rows split": lambda folder: split(folder, apart=False),
    "columns copied": lambda folder: compact(folder, copies=True),
    "rows merged": lambda folder: compact(folder, copies=False),
    "files joined": joining,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_file_of_an_instant_that_has_ended_is_not_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_begun: bool
) -> None:
    write = WRITERS[name](tmp_path)
    before = data_files(tmp_path)
    create = AnnouncedFile.create

    def late(self: AnnouncedFile) -> Output:
        """The instant ends right before or after the task begins its file: its markers are deleted."""
        begun = create(self) if is_begun else None
        shutil.rmtree(tmp_path / ".hoodie")
        return begun or create(self)

    monkeypatch.setattr(AnnouncedFile, "create", late)
    with pytest.raises(CommitLostError):
        write()
    assert data_files(tmp_path) == before
    monkeypatch.setattr(AnnouncedFile, "create", create)
    write()
    assert data_files(tmp_path) > before


def data_files(folder: Path) -> set[Path]:
    return set(folder.rglob("*.parquet"))


def announced(folder: Path) -> AnnouncedFile:
    return AnnouncedFile(of_hadoop(str(folder), {}), INSTANT, "p", "f.parquet", "CREATE")


@pytest.mark.parametrize(
    ("timeline", "is_completed"),
    [
        ({INFLIGHT}, True),
        ({f".hoodie/{INSTANT}.inflight"}, True),
        ({f".hoodie/{INSTANT}.compaction.requested", f".hoodie/{INSTANT}.compaction.inflight"}, True),
        ({INFLIGHT, f".hoodie/timeline/{INSTANT}_20260101000001000.replacecommit"}, False),
        ({f".hoodie/{INSTANT}.replacecommit.inflight", f".hoodie/{INSTANT}.replacecommit"}, False),
        (set(), False),
    ],
)
def test_without_a_marker_the_timeline_says_whether_the_instant_is_pending(
    tmp_path: Path, timeline: set[str], is_completed: bool
) -> None:
    (tmp_path / "p").mkdir()
    file = announced(tmp_path)
    marker = tmp_path / ".hoodie" / ".temp" / INSTANT / "p" / "f.parquet.marker.CREATE"
    output = file.create()
    shutil.rmtree(tmp_path / ".hoodie")
    for name in timeline:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    output.stream.write(b"rows")
    if is_completed:
        assert output.close() == 4
        # A commit that does not name the file deletes it, because it finds this marker.
        assert marker.exists()
        return
    with pytest.raises(CommitLostError):
        output.close()
    output.abandon()
    assert not (tmp_path / "p" / "f.parquet").exists()


def test_a_file_is_not_begun_if_its_instant_has_ended_long_after_the_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p").mkdir()
    file = announced(tmp_path)
    shutil.rmtree(tmp_path / ".hoodie")
    monkeypatch.setattr(announced_file, "_FRESH_SECONDS", -1.0)
    with pytest.raises(CommitLostError):
        file.create()
    assert list((tmp_path / "p").iterdir()) == []
