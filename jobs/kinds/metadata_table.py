"""Metadata table: it is compared with the storage, or built anew."""

from __future__ import annotations

from typing import Literal

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters


class MetadataTableParams(Parameters, frozen=True, kw_only=True):
    action: Literal["validate", "rebuild"] = "validate"


KIND = Kind(
    JobKind.METADATA_TABLE,
    "Metadata table",
    "Mt",
    "Compares the metadata table with the storage, or builds it anew; for that the writers must be stopped.",
    MetadataTableParams,
    {"params": {"action": "rebuild"}, "dry_run": True},
    for_damaged=True,
)
