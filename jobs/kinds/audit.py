"""Audit: the table is proved."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec


class AuditParams(Parameters, frozen=True, kw_only=True):
    rows: Annotated[
        bool,
        Spec(
            "Read the key of every row as well: rows in wrong buckets, duplicate keys, rows that filters miss",
            examples=(True,),
        ),
    ] = True


KIND = Kind(
    JobKind.AUDIT,
    "Audit",
    "Au",
    "Proves the table: what its commits, its metadata table and the storage say is the same, every row is in its"
    " bucket, and no key is there twice.",
    AuditParams,
    {"params": {"rows": False}},
    policy=Policy(120, "When the table is proved"),
    writes=False,
    has_plan=False,
    examines=True,
    for_damaged=True,
)
