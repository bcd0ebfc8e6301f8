"""Response models of tables: their declarations, their engines, and the clock of their writers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from jobs.contract import WriterEngine
from service.api.answers import Declared, Shown
from service.api.structs import made, struct_of
from service.catalog.registration import Registration, Writers
from service.catalog.table_secrets import masked
from service.incidents.incident import IncidentState
from service.lake.engine_sighting import Sighting, Sightings
from service.model.flink_restart import FlinkRestart


class ClockDisagreementOut(BaseModel):
    """Two clocks from which writers take the times of their instants in turn."""

    one_seconds: float = Field(description="Offset of the one clock from UTC", examples=[0.2])
    other_seconds: float = Field(description="Offset of the other clock from UTC", examples=[-28800.4])
    since: datetime = Field(examples=["2026-01-01T12:00:00Z"])


class ClockSetBackOut(BaseModel):
    """A clock was set back: instants appeared that are earlier than an instant which had completed before them. The
    members describe the first such instant."""

    instant: str = Field(examples=["20260101115508123"])
    after: str = Field(description="The instant that had completed before", examples=["20260101120003456"])
    seconds: float = Field(description="How much earlier the instant is", examples=[295.3])
    since: datetime = Field(description="When the first such instant appeared", examples=["2026-01-01T12:00:08Z"])
    instants: int = Field(description="Number of such instants", examples=[1])


class ClockOut(BaseModel):
    """The clock from which writers take the times of instants, as measured by the last poll that found the timeline
    changed. The measurement uses at most 100 commits of writers, of two days."""

    utc_offset_seconds: float | None = Field(
        description="Offset of the clock from UTC, zone included; null if no file of the timeline shows it",
        examples=[-28860.2],
    )
    zone_seconds: int | None = Field(
        description="The part of the offset that looks like a time zone", examples=[-28800]
    )
    ahead_seconds: float | None = Field(
        description="The rest of the offset, by which the clock is ahead", examples=[-60.2]
    )
    since: datetime | None = Field(
        description="When the first of the latest commits, all by this clock, appeared",
        examples=["2026-01-01T12:00:08Z"],
    )
    samples: int = Field(description="Number of commits by this clock", examples=[3])
    disagreement: ClockDisagreementOut | None = Field(
        description="Two clocks, if writers use both in turn; then jobs that write are refused"
    )
    set_back: ClockSetBackOut | None = Field(
        default=None, description="Set if a clock was set back in the last two days, so that rows may be lost"
    )


class IndexOut(BaseModel):
    type: Literal["bucket"] = "bucket"
    num_buckets: int
    hash_fields: list[str]


class LockOut(BaseModel):
    provider: str = Field(description="`filesystem`, `zookeeper`, or a LockProvider class", examples=["filesystem"])
    options: dict[str, str] = Field(description="The provider's options, secrets masked", examples=[{}])
    wait_seconds: float | None = Field(description="How long a job waits for the lock; null for the service's setting")


class FlinkOut(Shown):
    rest_url: str
    job: str = Field(description="Name or id of the job", examples=["orders-ingest"])
    savepoint_folder: str | None = Field(description="Folder of the Flink job's savepoints; null for the cluster's own")
    restart: FlinkRestart = Field(
        description="How the Flink job is started again after each stop", examples=["from-savepoint"]
    )


class SightingOut(Shown, declared=Sighting):
    """The detection of an engine."""

    first_seen: datetime
    last_seen: datetime


class WritersOut(Declared, declared=Writers):
    hudi_version: str | None
    flink: FlinkOut | None = Field(description="The Flink job that writes the table; null if not declared")
    detected: dict[WriterEngine, SightingOut] = Field(
        description="Detected on the table since `engines` was last declared", examples=[{}]
    )

    @classmethod
    def of(cls, writers: Writers, sightings: Sightings) -> WritersOut:
        return made(cls, writers, detected=writers.detected(sightings))


class ReadersOut(BaseModel):
    hudi_version: str | None
    reads_per_day: float | None = Field(description="How often the whole table is read, as declared", examples=[240.0])


class IncidentCounts(BaseModel):
    """Counts of unresolved incidents; `GET /v1/tables/{id}/incidents` lists them."""

    open: int = Field(0, description="Open incidents", examples=[0])
    suspected: int = Field(0, description="Suspected incidents", examples=[0])

    @classmethod
    def of(cls, counts: Mapping[IncidentState, int]) -> IncidentCounts:
        return struct_of(cls)(open=counts.get(IncidentState.OPEN, 0), suspected=counts.get(IncidentState.SUSPECTED, 0))


class TableOut(BaseModel):
    """A registered table. An option whose name or value looks like a secret is masked."""

    id: str = Field(description="Id of the table", examples=["tbl_0f3c2a9d5e7b1c44"])
    name: str
    base_path: str = Field(description="Canonical: absolute, links and `..` resolved")
    index: IndexOut | None
    lock: LockOut
    writers: WritersOut
    readers: ReadersOut
    hudi_options: dict[str, str]
    owner: str | None
    tags: dict[str, str]
    profile: dict[str, Any] = Field(description="Detected when the table was last examined")
    incidents: IncidentCounts = Field(description="Unresolved incidents")
    clock: ClockOut | None = Field(description="The writers' clock; null before the first poll")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(
        cls,
        table: Registration,
        sightings: Sightings,
        counts: Mapping[IncidentState, int] | None = None,
        clock: Mapping[str, Any] | None = None,
    ) -> TableOut:
        """Returns the answer about a table. `sightings` are the detections of its engines, `counts` its unresolved
        incidents. `clock` comes from its snapshot."""
        lock = table.lock
        shown_lock = struct_of(LockOut)(
            provider=lock.provider, options=masked(lock.options), wait_seconds=lock.wait_seconds
        )
        return made(
            cls,
            table,
            lock=shown_lock,
            writers=WritersOut.of(table.writers, sightings),
            hudi_options=masked(table.hudi_options),
            incidents=IncidentCounts.of(counts or {}),
            clock=clock or None,
        )


class TableDetected(BaseModel):
    """What a registration with the same body would find."""

    name: str = Field(examples=["orders"])
    base_path: str = Field(description="Canonical: absolute, links and `..` resolved", examples=["s3a://lake/orders"])
    index: IndexOut | None = Field(description="The given bucket index, or the one that sampled record keys prove")
    profile: dict[str, Any] = Field(
        description="Type, version, partitioning, keys and columns, as in GET /v1/tables/{id}",
        examples=[{"table_type": "MERGE_ON_READ", "table_version": 9, "warnings": []}],
    )
    registered_as: str | None = Field(description="The table that is registered at this path already", examples=[None])


class PollOut(BaseModel):
    table_id: str = Field(examples=["tbl_0f3c2a9d5e7b1c44"])
    is_new: bool = Field(description="Whether this call requested a poll; false if one was about to begin anyway")
