"""A recorded history of a real table: the events on its timeline, and those that the service has recorded.

`of_instant` builds events of the timeline from an instant's times and its `HoodieCommitMetadata`; events of the service
are built by hand, from its own records. All times are by one clock and compare as strings, such as Hudi's
`yyyyMMddHHmmssSSS`. If writers' clocks differ from ours by more than the time for which a lock is held, the rules of
the lock cannot be checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FileIds = frozenset[tuple[str, str]]  # Pairs of partition path and file id.
BASELINE = "00000000000000"
ALWAYS = "9"  # This text comes after every time.


class What(Enum):
    """Kinds of events. The first six are on the timeline, the others are recorded by the service."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled back"  # the rollback of this instant has completed
    ARCHIVED = "archived"  # the active timeline starts after this instant
    CLEANED = "cleaned"  # a clean has deleted files of the file groups in `file_ids`

    LOCKED = "locked"
    UNLOCKED = "unlocked"
    # The replacement `instant` has read the timeline under the lock, and knows all instants that have completed by
    # now.
    LOOKED = "looked"
    CONFIG_WRITTEN = "config written"  # the config of `instant`, or the baseline, with this `number` of buckets
    CONFIG_REMOVED = "config removed"
    FENCED = "fenced"  # the service is about to roll back the instant of a live writer
    LATE_FILES_REMOVED = "late files removed"  # the fenced writer has ended, so no more late files will appear
    JUDGED = "judged"  # the service has found the write correct, by its file ids or else by its keys
    INCIDENT = "incident"
    REPAIRED = "repaired"
    STOPPED = "stopped"  # a Flink job was stopped, or declared as stopped
    RESUMED = "resumed"  # a Flink job was started or restarted


@dataclass(frozen=True)
class Event:
    """An event. Fields that do not apply are empty."""

    at: str
    what: What
    instant: str = ""  # The requested time of the instant.
    action: str = ""  # Hudi's name, such as `replacecommit`.
    operation: str = ""  # Hudi's name, such as `BUCKET_RESCALE`.
    file_ids: FileIds = frozenset()  # File groups that were written or cleaned.
    replaced: FileIds = frozenset()  # File groups that a replacecommit replaces.
    is_flink: bool = False  # Whether the instant is a Flink job's, by its commit or its empty inflight file.
    number: int = 0
    by: str = ""  # The name of our job that holds the lock, or that rolled the instant back.


def of_instant(
    instant: str,
    action: str,
    metadata: Mapping[str, Any] | None = None,
    *,
    inflight_at: str | None = None,
    completed_at: str | None = None,
    is_flink: bool = False,
) -> list[Event]:
    """Returns the events of one instant of the timeline.

    `instant` is its requested time and `action` that of its completed file (a clustering completes as
    `replacecommit`). `metadata` is the content of the completed file as JSON (`HoodieCommitMetadata`, or
    `HoodieReplaceCommitMetadata`), of which `operationType`, `partitionToWriteStats[partition][].fileId` and
    `partitionToReplaceFileIds[partition][]` are used. Since table version 8 the file is Avro with the same names
    (`service.lake.instant_metadata.decode` reads both). `inflight_at` is the modification time of the inflight file,
    `completed_at` the completion time in the file's name (before version 8 its modification time); None if that has not
    happened.
    """
    content = metadata or {}
    written = _places(content.get("partitionToWriteStats"), lambda stat: stat["fileId"])
    replaced = _places(content.get("partitionToReplaceFileIds"), str)
    operation = str(content.get("operationType") or "")
    events = [Event(instant, What.REQUESTED, instant, action, operation, is_flink=is_flink)]
    if inflight_at:
        events.append(Event(inflight_at, What.INFLIGHT, instant, action, operation, is_flink=is_flink))
    if completed_at:
        events.append(Event(completed_at, What.COMPLETED, instant, action, operation, written, replaced, is_flink))
    return events


def _places(by_partition: Mapping[str, Iterable[Any]] | None, file_id: Any) -> FileIds:
    items = (by_partition or {}).items()
    return frozenset((partition, file_id(item)) for partition, found in items for item in found)


@dataclass
class Life:
    """The facts about one instant in a history. A time is None if the event did not happen."""

    instant: str
    action: str = ""
    operation: str = ""
    written: FileIds = frozenset()
    replaced: FileIds = frozenset()
    is_flink: bool = False
    at: dict[What, str] = field(default_factory=dict)
    times: dict[What, int] = field(default_factory=dict)

    @property
    def completed(self) -> str | None:
        return self.at.get(What.COMPLETED)

    @property
    def is_write(self) -> bool:
        """Returns whether the instant is a write, not a replacement or another table service."""
        return self.action in ("commit", "deltacommit") and self.operation not in ("COMPACT", "LOG_COMPACT")

    def was_looked_at(self) -> bool:
        """Returns whether the service has judged the instant, as correct or as stale."""
        return What.JUDGED in self.at or What.INCIDENT in self.at

    def is_an_incident_at(self, time: str) -> bool:
        """Returns whether the instant is stale and not repaired at this time."""
        if What.INCIDENT not in self.at or self.completed is None:
            return False
        return self.completed <= time < self.at.get(What.REPAIRED, ALWAYS)


@dataclass(frozen=True)
class History:
    """Events in order, and the facts about each instant."""

    events: Sequence[Event]
    lives: Mapping[str, Life]

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Orders events by time; events with the same time keep their order."""
        ordered = sorted(events, key=lambda event: event.at)
        lives: dict[str, Life] = {}
        for event in ordered:
            if not event.instant:
                continue
            life = lives.setdefault(event.instant, Life(event.instant))
            life.action = event.action or life.action
            life.operation = event.operation or life.operation
            life.is_flink = life.is_flink or event.is_flink
            if event.what is What.COMPLETED:
                life.written, life.replaced = event.file_ids, event.replaced
            if event.what is not What.LOOKED or life.completed is None:
                life.at[event.what] = event.at
            life.times[event.what] = life.times.get(event.what, 0) + 1
        return cls(ordered, lives)

    def replacements(self) -> list[Life]:
        """Returns the completed instants that have replaced file groups, in the order in which they completed."""
        found = [life for life in self.lives.values() if life.replaced and life.completed]
        return sorted(found, key=lambda life: life.completed or "")
