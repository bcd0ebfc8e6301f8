"""Findings of a diagnosis, and the table that it examines."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind, JsonMapped
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import ExitStack

    from jobs.format.bucket_rules import BucketRules
    from jobs.hudi.records import Commit, FileSlice, Instant
    from jobs.hudi.table import HudiTable

_NAMED = 5


@dataclass(frozen=True)
class Cure(JsonMapped):
    """A job that cures a finding. Run it dry first."""

    kind: JobKind
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding(JsonMapped):
    """A damage. `effect` is what it does to readers, writers or services; `hint` says what to do. `cure` is None where
    no job can cure it soundly; the hint then says why."""

    type: str
    title: str
    detail: str
    effect: str
    hint: str
    cure: Cure | None = None


class Examined:
    """A table under examination; what several checks read is read once.

    Each part is read when a check first asks for it, since any may be what is damaged: then that check ends by a
    `JobError`. `clients` closes the Hudi client.
    """

    def __init__(self, table: HudiTable, clients: ExitStack) -> None:
        self.table = table
        self._clients = clients

    @cached_property
    def client(self) -> WriteClient:
        return self._clients.enter_context(WriteClient(self.table, UNDER_OUR_LOCK))

    @cached_property
    def instants(self) -> list[Instant]:
        return self.table.instants()

    @cached_property
    def commits(self) -> list[Commit]:
        return self.table.commits()

    @cached_property
    def slices(self) -> list[FileSlice]:
        return self.table.file_slices()

    @cached_property
    def listed_slices(self) -> list[FileSlice]:
        return self.table.file_slices_by_listing()

    @cached_property
    def rules(self) -> BucketRules | None:
        return self.table.bucket_rules()

    @cached_property
    def files(self) -> dict[str, set[str]]:
        """The names of all files by partition path, as the storage lists them."""
        return {partition: self.table.files_in(partition) for partition in self.table.partitions()}

    @cached_property
    def strays(self) -> set[str]:
        """The paths of files with the instant of a commit of the active timeline that does not name them.

        Before table version 8 the name of a log has another instant than its writer's.
        """
        names = {commit.write.instant: commit.file_names for commit in self.commits}
        found = set()
        for partition, listed in self.files.items():
            for name in listed:
                parsed = parse_base_file_name(name) or (parse_log_file_name(name) if self.table.version >= 8 else None)
                if parsed and name not in names.get(parsed.instant, {name}):
                    found.add(f"{partition}/{name}" if partition else name)
        return found


def some(items: Collection[str]) -> str:
    """Returns the number of the items and the first of them."""
    named = ", ".join(sorted(items)[:_NAMED])
    return f"{len(items)}, such as {named}" if len(items) > _NAMED else named
