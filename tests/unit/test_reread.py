"""A timeline is read again if a writer archives instants during the reading."""

from __future__ import annotations

import pytest

from jobs.errors import FileMissingError, HudiError
from jobs.hudi.jvm import reread


class Timeline:
    """A timeline whose first files do not exist any more when they are read."""

    def __init__(self, gone: int, error: HudiError) -> None:
        self.gone, self.error, self.reads = gone, error, 0

    @reread
    def read(self) -> str:
        self.reads += 1
        if self.reads <= self.gone:
            raise self.error
        return "read"


def test_a_timeline_whose_files_are_archived_meanwhile_is_read_again() -> None:
    timeline = Timeline(3, FileMissingError("gone"))
    assert timeline.read() == "read"
    assert timeline.reads == 4


def test_a_file_that_stays_missing_is_an_error_and_so_is_any_other() -> None:
    with pytest.raises(FileMissingError):
        Timeline(1000, FileMissingError("gone")).read()
    broken = Timeline(1, HudiError("broken"))
    with pytest.raises(HudiError):
        broken.read()
    assert broken.reads == 1
