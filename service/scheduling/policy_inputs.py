"""Inputs of all policies about one table. `propose`, in the module of each kind, takes the inputs that its policy
needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.catalog.consumer import Consumer
from service.incidents.incident import Incident
from service.lake.snapshot import TableSnapshot
from service.policies.policy import Policy
from service.scheduling.bucket_growth import BucketGrowth
from service.scheduling.first_freed import FirstFreed
from service.scheduling.trigger_context import TriggerContext
from service.scheduling.writer_hazard import WriterHazard


@dataclass(frozen=True)
class PolicyInputs:
    """The state of a table, and what is known about its jobs and writers."""

    policy: Policy
    snapshot: TableSnapshot
    context: TriggerContext  # The context of the kind.
    incidents: Sequence[Incident]
    tried: Sequence[str]  # Instants in the parameters of the last successful repair.
    hazard: WriterHazard
    consumers: Sequence[Consumer]
    has_flink: bool  # Whether Flink is a declared or detected writer, stopped or not.
    must_stop_flink: bool
    unproved: str | None  # Why no writer of the table can be proved dead.
    # Partitions with splits of no use, and the bytes of the bucket that was split.
    one_sided: Mapping[str, int] = field(default_factory=dict)
    first_freed: FirstFreed | None = None  # The first files out of use; None if no such file is known.
    growth: BucketGrowth | None = None  # The growth of the largest bucket; None if no decision depends on it.
