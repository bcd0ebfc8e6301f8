"""Reads what the database has about a table for a decision. One statement has all these queries: decisions follow each
commit, and the overhead of a separate statement is larger than most of the queries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from service.catalog import consumer_store, snapshot_store, table_store, watch_store
from service.db.documents import AtOnce
from service.delegation import plan_store
from service.incidents import store as incident_store
from service.outcome import read_store
from service.policies import freeze_store, pause_store
from service.policies import store as policy_store
from service.queue import breaker_store, gain_store, job_store, worker_store
from service.scheduling import decision_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from jobs.contract import JobKind
    from service.catalog.consumer import Consumer
    from service.catalog.registration import Registration
    from service.catalog.snapshot_store import Stored
    from service.incidents.incident import Incident
    from service.lake.engine_sighting import Sightings
    from service.lake.snapshot import PartitionState
    from service.outcome.read_cost import ReadRates
    from service.outcome.reads import ReadSource
    from service.policies.freeze import Freeze
    from service.policies.policy import PatternPolicy, Pause, TableLevel
    from service.queue.job import Job
    from service.scheduling.decision import Decision

_REMEMBERED = 60
"""Number of a table's last jobs that are read for its job history."""


class DecisionFacts(NamedTuple):
    """The facts about a table. Members are None if the table, its snapshot or its own level does not exist."""

    table: Registration | None
    stored: Stored | None
    partitions: tuple[PartitionState, ...]
    sightings: Mapping[str, Sightings]  # By table id.
    patterns: Sequence[PatternPolicy]
    own: TableLevel | None
    before: Mapping[JobKind, Decision]  # The last decisions.
    recent: Sequence[Job]
    unresolved: Sequence[Incident]
    mended_at: datetime | None
    pause: Pause | None
    freezes: Sequence[Freeze]  # Those that have not ended.
    rates: ReadRates
    reads: Sequence[tuple[ReadSource, int, int]]
    has_plans: bool  # Whether writers delegate plans that have not ended.
    consumers: Sequence[Consumer]
    has_gains: bool  # Whether the gain of a job is still to be measured by a poll.


_READ = AtOnce(
    *(table_store.OF_ID, snapshot_store.OF_TABLE, snapshot_store.STATES, watch_store.ENGINES),
    *(policy_store.EVERY, policy_store.OF_TABLE, decision_store.LATEST, job_store.RECENT, incident_store.STANDING),
    *(breaker_store.MENDED_AT, pause_store.PAUSE, freeze_store.NOT_ENDED, worker_store.RATES, read_store.SEEN),
    *(plan_store.HAS_OPEN, consumer_store.OF_TABLE, gain_store.ARE_UNSEEN),
)


def read(connection: Connection, table_id: str, now: datetime) -> DecisionFacts:
    given = {"of_table": table_id, "of_tables": [table_id], "most": _REMEMBERED, "now": now}
    return DecisionFacts(*_READ.read(connection, given))
