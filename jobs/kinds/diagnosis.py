"""Diagnosis: the table is searched for damages."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import BucketIndex, JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import ExaminedResult, Flag


class DiagnosisParams(Parameters, frozen=True, kw_only=True):
    rows: Annotated[
        bool, Spec("Read the key of every row as well: rows in wrong buckets, duplicate keys", examples=(True,))
    ] = True
    index: Annotated[
        BucketIndex | None,
        Spec(
            "The bucket index of the writers. Needed for a table that was registered without an index because its"
            " files contradict this one"
        ),
    ] = None


class DiagnosisResult(ExaminedResult, frozen=True, kw_only=True):
    healthy: Annotated[Flag, Spec("All checks were made, and none found anything")] = UNSET


KIND = Kind(
    JobKind.DIAGNOSIS,
    "Diagnosis",
    "Di",
    "Looks for damages that are known to happen to Hudi tables, and names the job that repairs each one.",
    DiagnosisParams,
    {"params": {"rows": False}},
    policy=Policy(110, "When the table is searched for damages"),
    writes=False,
    has_plan=False,
    examines=True,
    for_damaged=True,
    result=DiagnosisResult,
)
