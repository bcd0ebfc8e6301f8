"""Finish of an expansion: its hashing config is retired."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Flag, KindResult, Texts
from jobs.kinds.words import HAND_OVER_SECONDS, HandOverSeconds


class FinishExpansionParams(Parameters, frozen=True, kw_only=True):
    undo: Annotated[bool, Spec("Restore the hashing config that was retired last")] = False
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class FinishExpansionResult(KindResult, frozen=True, kw_only=True):
    num_buckets: Annotated[int | UnsetType | None, Spec("Number of buckets in the config; null without a config")] = (
        UNSET
    )
    retired: Annotated[Texts, Spec("Folders of the configs that are retired, the last one at the end")] = UNSET
    in_force: Annotated[Flag, Spec("Whether a config is in force")] = UNSET


KIND = Kind(
    JobKind.FINISH_EXPANSION,
    "Finish expansion",
    "Fi",
    "Retires the hashing config of an expansion once every writer has the new number of buckets as its own option.",
    FinishExpansionParams,
    rewrites=True,
    stops_flink=True,
    waits_for_repair=True,
    result=FinishExpansionResult,
)
