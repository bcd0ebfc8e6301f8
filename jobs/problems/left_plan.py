"""Texts for users about pending plans that hold up a job: which ones, how old, who made them, and what to do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class Maker(StrEnum):
    """Who has made a plan, as far as the table tells: Hudi does not record that."""

    OURS = "made by this service"
    FLINK = "probably made by a Flink job"
    OTHER = "probably made by a writer"


@dataclass(frozen=True)
class LeftPlan:
    """A pending instant of a table service; `age` is the time since the plan was made, in words for users, if known.
    The `action` of a clustering plan is `clustering` in every table version."""

    instant: str
    action: str
    state: str  # In the spelling of the timeline.
    age: str | None
    maker: Maker

    def __str__(self) -> str:
        age = f", {self.age} old" if self.age else ""
        return f"{self.instant} ({self.action}, {self.state.lower()}{age}, {self.maker})"

    @property
    def is_request(self) -> bool:
        """Whether it is no plan, but a write that has not begun, such as an overwrite."""
        return self.action == "replacecommit" and self.state.lower() == "requested"

    @property
    def kind(self) -> tuple[str, bool, Maker]:
        """What the advice depends on. The second part is whether somebody has begun the plan."""
        return self.action, self.state.lower() != "requested", self.maker


def advice(plans: Iterable[LeftPlan], table: str, *, has_buckets: bool) -> str:
    """Returns what to do about these plans, in sentences with the commands. `table` is the table's name or id."""
    alike = groupby(sorted(plans, key=lambda each: each.kind), key=lambda each: each.kind)
    found = (
        _about(kind, [each.instant for each in of_kind], table, has_buckets=has_buckets) for kind, of_kind in alike
    )
    return " ".join(found)


def take_over(job: str, instants: Sequence[str], table: str) -> str:
    """Returns the command of the kind of job that executes these plans, whose process is dead."""
    return _command(job, table, plans=list(instants), take_over=True)


def _about(kind: tuple[str, bool, Maker], instants: list[str], table: str, *, has_buckets: bool) -> str:
    action, has_begun, maker = kind
    them = "it" if len(instants) == 1 else "them"
    if action == "logcompaction":
        # Hudi 1.2 does not roll a log compaction back, and a job does not execute one (`LOG_COMPACTION_UNSOUND`).
        return (
            "No job executes or removes a log compaction: let the writer that made the plan execute it, and then"
            " switch log compaction off in the writers (`hoodie.log.compaction.inline=false`)."
        )
    if action not in ("compaction", "clustering") or (action == "clustering" and has_buckets):
        undo = ", ".join(_command("rollback", table, instant=each) for each in instants)
        if action == "clustering":
            return f"Hudi's own clustering would break the bucket index. Roll {them} back: {undo}."
        if action == "replacecommit" and not has_begun and maker is not Maker.FLINK:
            return (
                f"Wait until the writer of {', '.join(instants)} has ended. Hudi's `run_ttl` leaves such a request"
                " without a heartbeat if no partition has expired. An hour after the request, the next `cleaning`, or"
                f" job that replaces file groups, takes {them} back. Earlier, a rollback does if all writers are"
                f" stopped and declared so: {undo}."
            )
        return f"Wait for the end of {', '.join(instants)}; if the process is dead, roll {them} back: {undo}."
    execute, option = _command(action, table, plans=instants), f"`{action}.async.enabled"
    if maker is Maker.OURS:
        return f"Execute {them}: {execute}."
    is_flink = maker is Maker.FLINK
    if not has_begun:
        first = f" while the Flink job is stopped, or has {option}=false`" if is_flink else ""
        return f"Execute {them}{first}: {execute}."
    dead = "the Flink job that began the plan is stopped" if is_flink else "the process that began the plan is dead"
    other = (
        f", or start that job again with {option}=true`, which executes the plan, but may leave another one"
        if is_flink
        else ""
    )
    return (
        f"If {dead}, execute {them}: {take_over(action, instants, table)}{other}. Otherwise wait: two executions of a"
        " plan corrupt the table. A process without heartbeats counts as dead an hour after its last file; then any"
        f" {action} executes the plan."
    )


def _command(job: str, table: str, **params: object) -> str:
    # An instant that is not quoted would be read as a number.
    given = (word for name, value in params.items() for word in ("--param", f"{name}={json.dumps(value)}"))
    return f"`{shlex.join(['groundskeeper', 'jobs', 'run', job, table, *given])}`"
