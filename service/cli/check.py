"""The model of one line of `groundskeeper doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.contract import JsonMapped

OK, FAILED, ABSENT = "ok", "failed", "absent"


@dataclass(frozen=True)
class Check(JsonMapped):
    """The result of one check. The state `absent` says that there is nothing to check; this is not a fault. `hint` says
    what to do about a fault."""

    name: str
    state: str
    detail: str
    hint: str = ""
