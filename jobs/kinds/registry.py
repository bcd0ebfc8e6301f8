"""All kinds of jobs: one module of this package for each member of `JobKind`, by its value."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from jobs.contract import JobKind, WorkOrder
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters

KINDS: Final[Mapping[JobKind, Kind]] = {kind: import_module(f"jobs.kinds.{kind.value}").KIND for kind in JobKind}


READING: Final = frozenset(kind for kind in JobKind if not KINDS[kind].writes)
"""Kinds of jobs that never write to the table."""

RESCALES: Final = frozenset(kind for kind in JobKind if KINDS[kind].changes_bucket_number)
"""Kinds of jobs that change the number of buckets."""


def typed(order: WorkOrder) -> WorkOrder[Parameters]:
    """Returns the leased work order with its parameters as an instance of their type. Raises ValueError."""
    return order.having(KINDS[order.kind].read(order.params))
