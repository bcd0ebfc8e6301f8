"""A Flink job, which keeps its number of buckets and its file ids, and has an instant only around a checkpoint.

A job with a bucket index looks up the file ids when it is submitted. Without a bucket index the job keeps the file id
of each key in its state (Flink's default index, `FLINK_STATE`), and does not look them up.

A batch is acknowledged with the checkpoint: the source does not send it again. So an instant that is rolled back
between its checkpoint and its commit is lost with its batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model import writers
from tests.model.rules import Kind, Resubmit
from tests.model.state import (
    INFLIGHT,
    NOBODY,
    NONE,
    PENDING,
    Group,
    Instant,
    State,
    Step,
    Steps,
    Writer,
    completions,
    with_writer,
)
from tests.model.view import number_of_buckets, place_of, replaced_groups, visible

if TYPE_CHECKING:
    from tests.model.rules import Setting


def index_of(setting: Setting) -> int | None:
    """Returns the index of the scenario's Flink job among the writers; there is at most one."""
    return next((n for n, spec in enumerate(setting.scenario.writers) if spec.kind is Kind.FLINK), None)


def submitted(state: State, setting: Setting, index: int, number: int) -> Writer:
    """Returns the job after a submission: it keeps what it has read until the next submission."""
    rows = setting.scenario.writers[index].batches[0]
    live = visible(state, setting)
    located = tuple(place_of(live, setting, row, number) for row in rows)
    return state.writers[index]._replace(step="idle", number=number, located=located, instant=NONE)


def may_run(state: State, setting: Setting) -> bool:
    """Returns whether the job may be running, according to the operator or to Flink's REST API."""
    index = index_of(setting)
    if index is None:
        return False
    return state.writers[index].step != "stopped" and not state.is_declared_stopped


def steps(state: State, setting: Setting, index: int) -> Steps:
    """Yields the possible next steps of the job and of its operator."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if writer.step == "idle" and writer.batch < len(spec.batches) and state.lock == NOBODY:
        yield _open(state, setting, index)
    elif writer.step == "writing":
        yield from _flush(state, setting, index)
    elif writer.step == "written" and state.lock == NOBODY:
        yield _check(state, setting, index)
    elif writer.step == "committing":
        _, after = writers.commit(state, setting, index)
        done = after.writers[index]
        kept = writer._replace(step="idle", batch=done.batch, instant=NONE)
        yield ("Flink commits instant {}.", writer.instant), with_writer(after, index, kept)
    yield from _operated(state, setting, index)


def _open(state: State, setting: Setting, index: int) -> Step:
    """Opens the instant at the flush; its inflight file is empty, so its targets are unknown."""
    writer = state.writers[index]
    rows = setting.scenario.writers[index].batches[writer.batch]
    instant = len(state.instants)
    groups = tuple(
        group or Group(partition, key % writer.number, instant)
        for group, (partition, key) in zip(writer.located, rows, strict=True)
    )
    opened = Instant(writers.name(index), INFLIGHT, groups=tuple(sorted(set(groups))), rows=tuple(sorted(rows)))
    state = state._replace(instants=(*state.instants, opened))
    text = "Flink opens instant {} with an empty profile; it holds {} buckets and the file ids {}."
    opening = writer._replace(step="writing", instant=instant, located=groups, window=completions(state))
    return (text, instant, writer.number, writer.located), with_writer(state, index, opening)


def _flush(state: State, setting: Setting, index: int) -> Steps:
    writer = state.writers[index]
    if state.instants[writer.instant].phase not in PENDING:
        text = "Flink's instant {} was rolled back before its checkpoint; the job fails over and sends the batch again."
        yield (text, writer.instant), with_writer(state, index, writer._replace(step="idle", instant=NONE))
        return
    _, after = writers.write(state, setting, index)
    yield ("Flink writes instant {} and completes its checkpoint: the source has moved on.", writer.instant), after


def _check(state: State, setting: Setting, index: int) -> Step:
    writer = state.writers[index]
    if state.instants[writer.instant].phase not in PENDING:
        text = "Flink's commit of instant {} fails, since it was rolled back after its checkpoint: the batch is lost."
        return (text, writer.instant), state._replace(lost=writer.instant)
    other = writers.conflict(state, writer, setting) if setting.protocol.flink_conflicts else NONE
    if other != NONE:
        text = "Flink's commit of instant {} conflicts with instant {} after its checkpoint: the batch is lost."
        return (text, writer.instant, other), state._replace(lost=writer.instant)
    locked = with_writer(state, index, writer._replace(step="committing"))
    return ("Flink takes the lock to commit instant {}.", writer.instant), locked._replace(lock=writers.name(index))


def _operated(state: State, setting: Setting, index: int) -> Steps:
    """Yields stops with a savepoint, new submissions, kills, and errors of the operator."""
    writer, faults = state.writers[index], state.faults
    is_over = state.expander.step in ("watching", "gave up")
    if writer.step == "idle" and not is_over and state.expander.step != "new":
        text = "The operator stops Flink with a savepoint; nothing of it is in flight."
        yield (text,), with_writer(state, index, writer._replace(step="stopped"))
    if writer.step == "stopped" and is_over and (number := number_of_buckets(state, setting)):
        text, fresh = _resubmitted(state, setting, index, number)
        yield (text, number, fresh.located), with_writer(state, index, fresh)._replace(is_declared_stopped=False)
    if faults.flink_kills and writer.step == "written":
        text = "Flink is killed between its checkpoint and the commit of instant {}."
        killed = with_writer(state, index, writer._replace(step="killed"))
        yield (text, writer.instant), killed._replace(faults=faults._replace(flink_kills=faults.flink_kills - 1))
    if writer.step == "killed":
        text = "Flink restarts from its checkpoint and will commit instant {} again."
        yield (text, writer.instant), with_writer(state, index, writer._replace(step="written"))
    if faults.operator_errors:
        fewer = faults._replace(operator_errors=faults.operator_errors - 1)
        if writer.step != "stopped" and not state.is_declared_stopped:
            text = "The operator says that Flink is stopped, which is wrong."
            yield (text,), state._replace(is_declared_stopped=True, faults=fewer)
        if writer.step == "stopped":
            yield from _submitted_wrongly(state._replace(faults=fewer, is_declared_stopped=True), setting, index)


def _resubmitted(state: State, setting: Setting, index: int, number: int) -> tuple[str, Writer]:
    """Returns the job after the hand-over, with a sentence for it."""
    fresh = submitted(state, setting, index, number)
    if setting.scenario.has_buckets:
        return "The operator submits Flink anew: it reads {} buckets and the file ids {}.", fresh
    how = setting.protocol.resubmit
    text = f"The operator submits Flink {how.value}: {{}} bucket, and the file ids {{}}."
    if how is Resubmit.SAVEPOINT:
        return text, fresh._replace(located=state.writers[index].located)
    return text, fresh if how is Resubmit.BOOTSTRAP else fresh._replace(located=tuple(None for _ in fresh.located))


def _submitted_wrongly(state: State, setting: Setting, index: int) -> Steps:
    """Yields wrong submissions while the job counts as stopped: too early, from an old savepoint, or with old
    options."""
    old = setting.scenario.old_number
    looked_up = submitted(state, setting, index, old)
    if setting.scenario.has_buckets:
        text = "The operator submits Flink with the old number {}; it looks the file ids up: {}."
        yield (text, old, looked_up.located), with_writer(state, index, looked_up)
    replaced = sorted(replaced_groups(state))
    if replaced:
        cached = looked_up._replace(located=tuple(replaced[0] for _ in looked_up.located))
        text = "The operator submits Flink from an old savepoint, with {} buckets and the file ids {}."
        yield (text, old, cached.located), with_writer(state, index, cached)
