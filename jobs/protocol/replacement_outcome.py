"""The outcome of a replacement of file groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from jobs.dataplane.key_digest import KeyDigest
from jobs.format.written_file import WrittenFile
from jobs.hudi.records import FileSlice
from jobs.kinds.results import FileGroupNumbers, ReplacementResult
from jobs.protocol.stale_writer_watch import KnownInstants
from jobs.protocol.writers import Fenced

Measured = TypeVar("Measured", bound=ReplacementResult)


@dataclass
class Replaced:
    """The committed replacement, with its slices, its files, and its cost. Times are in seconds."""

    instant: str
    slices: list[FileSlice] = field(default_factory=list)
    written: list[WrittenFile] = field(default_factory=list)
    rounds: int = 0
    rewritten_again: int = 0
    left_out: int = 0
    waited_seconds: float = 0.0
    locked_seconds: float = 0.0
    fenced: Fenced = field(default_factory=dict)  # Writers' instants that were rolled back.
    before: KnownInstants = field(default_factory=KnownInstants)  # The timeline on which the commit was decided.
    lock_lost: bool = False  # The lock was lost during the commit.

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """The file groups that were replaced."""
        return frozenset(item.key for item in self.slices)

    def measured(self, form: type[Measured]) -> Measured:
        """Returns the job's result with the measurements: counts, bytes, seconds."""
        return form(
            rows=sum(item.rows for item in self.written),
            key_digest=str(KeyDigest.sum(KeyDigest.parse(item.rows, item.key_digest) for item in self.written)),
            file_groups=FileGroupNumbers(before=len(self.slices), after=len(self.written)),
            files_read=sum(item.number_of_files for item in self.slices),
            files_written=len(self.written),
            files_copied=sum(item.copied for item in self.written),
            bytes_read=sum(item.bytes for item in self.slices),
            bytes_written=sum(item.bytes for item in self.written),
            rounds=self.rounds,
            rewritten_again=self.rewritten_again,
            left_out=self.left_out,
            waited_seconds=round(self.waited_seconds, 3),
            locked_seconds=round(self.locked_seconds, 3),
            lock_lost=self.lock_lost,
        )
