"""The model of one line of `groundskeeper doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.contract import JsonMapped

OK, FAILED, ABSENT = "ok", "failed", "absent"


@dataclass(frozen=True)
class Check(JsonMapped):
    """`absent`: there is nothing to check here, which is no fault. `hint` tells what to do about a fault."""

    name: str
    state: str
    detail: str
    hint: str = ""
