"""The faults that stop an attempt, and the steps that undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model import expander
from tests.model.rules import Known, Undo
from tests.model.state import (
    COMPLETED,
    EXPANDER,
    INFLIGHT,
    NO_KEY,
    NOBODY,
    NONE,
    PENDING,
    RECOVERY,
    REQUESTED,
    ROLLED_BACK,
    Block,
    Group,
    State,
    Steps,
    completions,
    rolled_back,
    with_instant,
)
from tests.model.view import visible

if TYPE_CHECKING:
    from tests.model.rules import Setting

ALIVE = ("planned", "split", *expander.UNDER_LOCK)
RECOVERING = ("recovering", "reverted", "without config", "without instant")


def steps(state: State, setting: Setting) -> Steps:
    """Yields the faults, and the steps of an attempt that finds traces of an earlier one."""
    yield from _faults(state)
    yield from _rollback_by_others(state, setting)
    mine = state.expander
    if mine.step in ("dead", "undoing") and state.lock == NOBODY:
        taken = state._replace(lock=RECOVERY, expander=mine._replace(step="recovering"))
        yield ("The service takes the lock to settle instant {}, which did not get through.", mine.instant), taken
    elif mine.step in RECOVERING:
        yield from _recover(state, setting)
    if state.zombie:
        yield from _thaw(state, setting)


def _faults(state: State) -> Steps:
    mine, faults, step = state.expander, state.faults, state.expander.step
    holder = RECOVERY if step in RECOVERING else EXPANDER
    freed = state._replace(lock=NOBODY) if state.lock == holder else state
    if faults.crashes and step in ALIVE + RECOVERING:
        dead = mine._replace(step="dead", target=NONE)
        text = "The service's worker dies ({})."
        yield (text, step), freed._replace(expander=dead, faults=faults._replace(crashes=faults.crashes - 1))
    if faults.expiries and state.lock == EXPANDER:
        text = "The expander is frozen ({}); its ZooKeeper session expires, and the lock is free."
        yield (text, step), freed._replace(faults=faults._replace(expiries=faults.expiries - 1))
    if faults.freezes and state.lock == EXPANDER and not state.zombie:
        dead = mine._replace(step="dead", target=NONE)
        text = "The expander is frozen ({}); its lock expires, and the service takes it for dead."
        frozen = freed._replace(zombie=mine, expander=dead, faults=faults._replace(freezes=faults.freezes - 1))
        yield (text, step), frozen


def _rollback_by_others(state: State, setting: Setting) -> Steps:
    """Rolls back instants without a live heartbeat, as every writer's clean does (LAZY). Hudi's rollback removes the
    config first, but only in a client with the option `hoodie.bucket.index.partition.expressions`
    (`BaseRollbackActionExecutor.rollbackHashingConfigIfNecessary`)."""
    number = state.expander.instant
    if state.expander.step == "dead" and state.lock == NOBODY and state.instants[number].phase in PENDING:
        after = rolled_back(state, number)
        text = "A writer's clean rolls instant {} back, since its heartbeat has expired"
        if setting.protocol.rollbacks_remove_config:
            yield (text + ".", number), after._replace(configs=after.configs - {number})
        else:
            yield (text + ", and leaves its hashing config.", number), after


def _recover(state: State, setting: Setting) -> Steps:
    """Undoes the instant in three steps, unless it has completed."""
    mine, undo = state.expander, setting.protocol.undo
    number, step = mine.instant, mine.step
    phase = state.instants[number].phase
    if step == "recovering" and phase == COMPLETED:
        known = mine.known
        if not setting.protocol.known_survives or setting.protocol.known is Known.TIMELINE_AFTER:
            known = state.instants[number].done
        watching = mine._replace(step="watching", known=known)
        text = "The service finds that instant {} did complete, and watches; it knows the {} instants before it."
        yield (text, number, known), state._replace(lock=NOBODY, expander=watching)
    elif step == "recovering" and undo is Undo.REVERT_FIRST and phase == INFLIGHT:
        reverted = with_instant(state, number, phase=REQUESTED)
        text = "The service makes instant {} requested again, so that nobody can complete it."
        yield (text, number), reverted._replace(expander=mine._replace(step="reverted"))
    elif step in ("recovering", "reverted") and (undo is not Undo.ROLLBACK_FIRST or phase == ROLLED_BACK):
        without = state._replace(configs=state.configs - {number})
        after = without._replace(expander=mine._replace(step="without config"))
        yield ("The service removes the hashing config of instant {}.", number), after
    elif step == "without config" or (step == "recovering" and undo is Undo.ROLLBACK_FIRST):
        if phase in PENDING:
            state = rolled_back(state, number)
        text = "The service rolls instant {} back."
        if undo is Undo.ROLLBACK_FIRST and step == "recovering":
            yield (text, number), state._replace(expander=mine._replace(step="without instant"))
        else:
            yield (text, number), expander.begun_again(state._replace(lock=NOBODY))
    elif step == "without instant":
        without = state._replace(configs=state.configs - {number}, lock=NOBODY)
        yield ("The service removes the hashing config of instant {}.", number), expander.begun_again(without)


def _thaw(state: State, setting: Setting) -> Steps:
    """Lets a frozen attempt continue. The attempt's next check fails, but it still acts on checks that it has made
    before."""
    zombie = state.zombie
    assert zombie
    over = state._replace(zombie=None)
    phase = state.instants[zombie.instant].phase
    if zombie.step == "verified" and phase == INFLIGHT:
        done = with_instant(over, zombie.instant, phase=COMPLETED, done=completions(state) + 1)
        text = "The frozen expander goes on and commits instant {}, whose lock it had verified."
        yield (text, zombie.instant), done
    elif zombie.step == "with baseline" and not setting.protocol.config_write_is_atomic:
        text = "The frozen expander goes on and writes the hashing config of instant {}."
        written = state._replace(configs=state.configs | {zombie.instant})
        yield (text, zombie.instant), written._replace(zombie=zombie._replace(step="with config"))
    elif zombie.step == "guarded":
        files = _late_children(state, setting, zombie.instant)
        text = "A task of the frozen expander goes on and writes files of instant {}; then the expander ends."
        yield (text, zombie.instant), over._replace(files=state.files | files)
    elif zombie.step == "with config" and phase == ROLLED_BACK and zombie.instant in state.configs:
        text = "The frozen expander finds that its lock is lost, and removes its hashing config."
        yield (text,), over._replace(configs=state.configs - {zombie.instant})
    else:
        yield ("The frozen expander finds that its lock is lost, and ends.",), over


def _late_children(state: State, setting: Setting, number: int) -> frozenset[Block]:
    """Returns the files that the attempt was about to write: the children of the file groups that it saw as live."""
    blocks: set[Block] = set()
    for group, rows in visible(state, setting).items():
        if group.creator < number:
            for (partition, key), value in rows.items():
                child = Group(partition, key % setting.scenario.new_number, number)
                blocks |= {Block(child, number, NO_KEY, 0), Block(child, number, key, value)}
    return frozenset(blocks)
