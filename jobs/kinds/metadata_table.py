"""Metadata table: it is compared with the storage, or rebuilt."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import DamageFound, KindResult, Many, Texts


class MetadataTableParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[
        Literal["validate", "rebuild"],
        Spec("`validate` compares it with the storage, `rebuild` deletes it and builds it again"),
    ] = "validate"


class MetadataTableResult(KindResult, frozen=True, kw_only=True):
    partitions: Annotated[Texts, Spec("Partitions of the metadata table")] = UNSET
    findings: Annotated[Many[DamageFound], Spec("Differences from the storage")] = UNSET


KIND = Kind(
    JobKind.METADATA_TABLE,
    "Metadata table",
    "Mt",
    "Compares the metadata table with the storage, or rebuilds it. For a rebuild the writers must be stopped.",
    MetadataTableParams,
    {"params": {"action": "rebuild"}, "dry_run": True},
    for_damaged=True,
    result=MetadataTableResult,
)
