"""Steps of our compaction and of writers that append to logs, and the rows that readers must see. Before table version
8 a log belongs to the file slice in its name: to the plan's new slice if the writer saw the plan's file when it began,
else to the slice that the plan reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.model.search import Found, explore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.log_rules import LogProtocol, LogScenario
    from tests.model.state import Label

NONE = -1


class Writer(NamedTuple):
    """A writer with one batch."""

    step: str = "idle"
    instant: int = NONE  # The instant of the batch, whose file exists at once.
    knows: bool = False  # Whether the writer knows the plan, so that it names its log by the plan.
    is_stalled: bool = False


class Logs(NamedTuple):
    """A state of writers, plan and job."""

    writers: tuple[Writer, ...]
    stalls: int
    attempts: int
    now: int = 1
    job: str = "new"  # The step of our job.
    instant: int = NONE  # The plan's instant.
    planned: int = NONE  # When the plan's file was created.
    named: frozenset[int] = frozenset()  # The writers whose logs the plan names.
    read: frozenset[int] = frozenset()  # The rows in the base file that the job has written.


def search(protocol: LogProtocol, scenario: LogScenario) -> Found:
    """Explores every state of the scenario under this protocol, or stops at the first violation."""
    first = Logs((Writer(),) * scenario.writers, scenario.stalls, scenario.attempts)
    return explore(scenario.name, first, partial(steps, protocol, scenario), violation)


def violation(logs: Logs) -> str | None:
    """Returns a violation unless each row of an acknowledged batch is in the base file, or in a log of its file
    slice."""
    if logs.job != "committed":
        return None
    lost = _missed(logs, logs.read)
    return f"The rows of writer {min(lost)} are in a log that no reader reads." if lost else None


def steps(protocol: LogProtocol, scenario: LogScenario, logs: Logs) -> Iterator[tuple[Label, Logs]]:
    """Yields the possible next steps. The plan is made, and batches are committed, with the table's lock held."""
    for index, writer in enumerate(logs.writers):
        yield from _writer(scenario, logs, index, writer)
    yield from _job(protocol, logs)


def _writer(scenario: LogScenario, logs: Logs, index: int, writer: Writer) -> Iterator[tuple[Label, Logs]]:
    def to(**changes: object) -> Logs:
        changed = writer._replace(**changes)  # type: ignore[arg-type]
        return logs._replace(writers=(*logs.writers[:index], changed, *logs.writers[index + 1 :]))

    is_locked = logs.job == "planning"
    if writer.step == "idle" and not (scenario.begins_locked and is_locked):
        text = "Writer {} begins instant {}, and knows of {} plan."
        knows = logs.planned != NONE
        begun = to(step="begun", instant=logs.now, knows=knows)._replace(now=logs.now + 1)
        yield (text, index, logs.now, "the" if knows else "no"), begun
    elif writer.step == "begun" and not is_locked:
        if logs.planned != NONE and not writer.knows and logs.instant > writer.instant:
            yield (
                ("Writer {} finds that the plan is in conflict with its batch, which fails.", index),
                to(step="failed"),
            )
        else:
            yield ("Writer {} commits instant {}.", index, writer.instant), to(step="committed")
        if logs.stalls and not writer.is_stalled:
            stalled = to(is_stalled=True)._replace(stalls=logs.stalls - 1)
            yield ("Writer {} is stalled for so long that it looks dead.", index), stalled


def _job(protocol: LogProtocol, logs: Logs) -> Iterator[tuple[Label, Logs]]:
    def to(job: str, **changes: object) -> Logs:
        return logs._replace(job=job, **changes)  # type: ignore[arg-type]

    if logs.job == "new":
        yield (
            ("Our job takes the lock and makes the plan's instant {}.", logs.now),
            to("planning", instant=logs.now, now=logs.now + 1),
        )
    elif logs.job == "planning":
        planned = to("planned", planned=logs.now, named=_committed(logs), now=logs.now + 1)
        yield ("The plan's file is there, and our job releases the lock.",), planned
    elif logs.job == "planned":
        if not protocol.waits or not any(_is_unaware(logs, writer) for writer in logs.writers):
            named = logs.named | (_missed(logs, logs.named) if protocol.adds else frozenset())
            yield (
                ("Our job sees to the logs of the plan, which names those of {}.", sorted(named)),
                to("ready", named=named),
            )
    elif logs.job == "ready":
        yield ("Our job executes the plan.",), to("executed", read=logs.named)
    elif logs.job == "executed" and protocol.checks and _missed(logs, logs.read):
        text = "Our job is refused with the lock held, since the plan misses logs."
        yield (text,), to("planned" if logs.attempts > 1 else "refused", attempts=logs.attempts - 1)
    elif logs.job == "executed":
        yield ("Our job commits the compaction.",), to("committed")


def _committed(logs: Logs) -> frozenset[int]:
    return frozenset(index for index, writer in enumerate(logs.writers) if writer.step == "committed")


def _missed(logs: Logs, known: frozenset[int]) -> frozenset[int]:
    """Returns the writers that have committed logs to the slice that the plan reads, without the `known` ones."""
    return frozenset(index for index in _committed(logs) - known if not logs.writers[index].knows)


def _is_unaware(logs: Logs, writer: Writer) -> bool:
    """Returns whether the writer is in flight, does not look dead, and began before the plan's file existed."""
    return writer.step == "begun" and not writer.is_stalled and writer.instant < logs.planned
