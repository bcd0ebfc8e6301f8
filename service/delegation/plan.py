"""Plans of table services that a writer has scheduled and delegates to this service, by Hudi's own protocol.

The client is `HoodieTableServiceManagerClient` (Hudi 0.13 to 1.2, RFC-43).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from jobs.contract import JobKind
from jobs.spec import Spec
from service.model.record import Record

MOST_INSTANTS = 1000
"""Greatest number of instants that one request may name."""

_METADATA_TABLE = "/.hoodie/metadata"  # `HoodieTableMetaClient.METADATA_TABLE_FOLDER_PATH`
# An instant has 17 digits, or 14 before Hudi 0.9. The metadata table of table version 6 adds three digits.
_INSTANT = re.compile(r"[0-9]{14,20}", re.ASCII)
_ENGINE = re.compile(r"[a-z][a-z0-9_-]{0,15}", re.ASCII)
_MOST_PARALLELISM = 10_000
_MOST_TEXT = 256


class DelegatedService(StrEnum):
    """The table services that a writer can delegate. The value is the last part of the path of the request."""

    COMPACT = "compact"
    CLUSTER = "cluster"
    CLEAN = "clean"

    @property
    def kind(self) -> JobKind:
        return _KINDS[self]


_KINDS = {
    DelegatedService.COMPACT: JobKind.COMPACTION,
    DelegatedService.CLUSTER: JobKind.CLUSTERING,
    DelegatedService.CLEAN: JobKind.CLEANING,
}


class PlanState(StrEnum):
    """The state of a plan. `UNREGISTERED`: no registered table has the base path. `WAITING`: the plan will be executed.
    `SUBMITTED`: a job executes the plan. `WITHHELD`: the plan is not executed, and `because` says why. `DONE`: the plan
    has completed. `GONE`: the plan has left the timeline without completing."""

    UNREGISTERED = "unregistered"
    WAITING = "waiting"
    SUBMITTED = "submitted"
    WITHHELD = "withheld"
    DONE = "done"
    GONE = "gone"

    @property
    def is_open(self) -> bool:
        return self not in ENDED


ENDED = (PlanState.DONE, PlanState.GONE)
OPEN = tuple(state for state in PlanState if state not in ENDED)


@dataclass(frozen=True)
class ExecutionHints:
    """The writer's wishes for the execution of its plans (`hoodie.table.service.manager.deploy.*`).

    Invalid values are None. `queue` is the name of a worker group. `parallelism` is the greatest number of tasks at
    once.
    """

    queue: str | None = None
    resource: str | None = None
    parallelism: int | None = None
    engine: str | None = None
    username: str | None = None

    @classmethod
    def parse(
        cls, *, queue: str, resource: str, parallelism: str, engine: str, username: str, group_pattern: str
    ) -> ExecutionHints:
        """Parses the hints. Invalid hints are ignored, because they must not stop a writer. Hudi's client sends the
        queue `default` if its option for the queue is not set."""
        is_group = re.fullmatch(group_pattern, queue) is not None and queue != "default"
        number = int(parallelism) if parallelism.isascii() and parallelism.isdigit() and len(parallelism) < 10 else 0
        return cls(
            queue=queue if is_group else None,
            resource=_bounded(resource),
            parallelism=min(number, _MOST_PARALLELISM) or None,
            engine=engine.lower() if _ENGINE.fullmatch(engine.lower()) else None,
            username=_bounded(username),
        )

    def to_json(self) -> dict[str, str | int]:
        named = {"queue": self.queue, "resource": self.resource, "engine": self.engine, "username": self.username}
        texts: dict[str, str | int] = {name: text for name, text in named.items() if text is not None}
        return texts if self.parallelism is None else {**texts, "parallelism": self.parallelism}

    @classmethod
    def from_json(cls, data: Mapping[str, str | int]) -> ExecutionHints:
        def text(name: str) -> str | None:
            found = data.get(name)
            return found if isinstance(found, str) else None

        number = data.get("parallelism")
        return cls(
            text("queue"),
            text("resource"),
            number if isinstance(number, int) else None,
            text("engine"),
            text("username"),
        )


@dataclass(frozen=True)
class PlanRequest:
    """One request of a writer. `base_path` is the path of the data table. If `is_metadata` is set, the plans are on its
    metadata table. `instants` are all pending plans of the service, in order and without duplicates."""

    service: DelegatedService
    base_path: str
    is_metadata: bool
    table_name: str
    instants: tuple[str, ...]
    hints: ExecutionHints = field(default_factory=ExecutionHints)


@dataclass(frozen=True)
class DelegatedPlan(Record):
    """A stored plan. `requested_by` is the caller of the first request."""

    id: Annotated[str, Spec("Id of the plan", examples=("plan_3b0f2a9d5e7b1c44a1b2c3d4e5f60718",))]
    base_path: Annotated[str, Spec(examples=("s3a://lake/orders",))]
    service: Annotated[DelegatedService, Spec("The delegated service", examples=("compact",))]
    instant: Annotated[str, Spec(examples=("20260101120000000",))]
    is_metadata: Annotated[bool, Spec("Whether this is a plan of the table's metadata table")]
    table_name: str
    requested_by: Annotated[str, Spec("The caller that delegated the plan", examples=("writer (4f0c9d2b71aa)",))]
    requested_at: datetime
    last_requested_at: Annotated[
        datetime, Spec("Time of the last request that named the plan", examples=("2026-01-01T12:00:00Z",))
    ]
    state: Annotated[PlanState, Spec("State of the plan", examples=("waiting",))]
    table_id: str | None = None
    hints: ExecutionHints = field(default_factory=ExecutionHints)
    because: Annotated[str | None, Spec("The reason for the state")] = None
    job_id: Annotated[str | None, Spec("The last job that was submitted for the plan")] = None
    ended_at: datetime | None = None


def plan_id(base_path: str, service: DelegatedService, instant: str, *, is_metadata: bool) -> str:
    """Returns the id of a plan. The same plan always gets the same id, so that a plan that is delegated twice is stored
    once."""
    text = repr((base_path, service.value, instant, is_metadata))
    return f"plan_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def instants_of(text: str) -> tuple[str, ...]:
    """Returns the instants of a comma-separated list, in order and without duplicates. Raises ValueError."""
    found = sorted({part.strip() for part in text.split(",")} - {""})
    if wrong := next((part for part in found if not _INSTANT.fullmatch(part)), None):
        raise ValueError(f"{wrong[:40]!r} is not an instant")
    if len(found) > MOST_INSTANTS:
        raise ValueError(f"names {len(found)} plans, more than {MOST_INSTANTS}")
    return tuple(found)


def data_table_of(base_path: str) -> tuple[str, bool]:
    """Returns the base path of the data table, and whether `base_path` is the path of its metadata table."""
    path = base_path.rstrip("/")
    if path.endswith(_METADATA_TABLE) and len(path) > len(_METADATA_TABLE):
        return path.removesuffix(_METADATA_TABLE), True
    return base_path, False


def _bounded(text: str) -> str | None:
    shown = "".join(letter for letter in text if letter.isprintable())[:_MOST_TEXT]
    return shown or None
