"""The expander: plan, split, catch up, lock, guard, split again, configs, verify, commit, verify, watch.

new -> planned -> split -> locked -> guarded -> ready -> with baseline -> with config -> verified -> committed ->
watching. When the expander is stopped, recovery follows (`recovery.py`), and then another attempt or the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model import flink
from tests.model.rules import Kind, Known, Policy
from tests.model.state import (
    BASELINE,
    COMPACTION,
    COMPLETED,
    EARLY,
    EXPANDER,
    INFLIGHT,
    NO_KEY,
    NOBODY,
    NONE,
    PENDING,
    REQUESTED,
    Block,
    Expander,
    Group,
    Instant,
    State,
    Step,
    Steps,
    completions,
    rolled_back,
    with_instant,
)
from tests.model.view import visible

if TYPE_CHECKING:
    from tests.model.rules import Setting

# The steps in which the expander believes that it holds the lock.
UNDER_LOCK = ("locked", "fencing", "guarded", "ready", "with baseline", "with config", "verified", "committed")


def steps(state: State, setting: Setting) -> Steps:
    """Yields the possible next steps of the expander."""
    step = state.expander.step
    if step == "new":
        yield from _start(state, setting)
    elif step == "planned":
        split = _split(state, setting)
        yield (
            ("The expander splits the file groups without the lock.",),
            _with_step(split, "split", seen=completions(state)),
        )
    elif step == "split":
        yield from _before_lock(state, setting)
    elif step == "locked":
        yield from _guard(state, setting)
    elif step == "fencing":
        yield _fence(state)
    elif step == "guarded":
        yield _split_again(state, setting)
    elif step == "ready":
        yield from _write_baseline(state, setting)
    elif step == "with baseline":
        yield from _write_config(state, setting)
    elif step == "with config":
        yield _verify(state, setting)
    elif step == "verified":
        yield commit(state, setting)
    elif step == "committed":
        yield _unlock(state)


def _with_step(state: State, step: str, **changes: object) -> State:
    return state._replace(expander=state.expander._replace(step=step, **changes))  # type: ignore[arg-type]


def _start(state: State, setting: Setting) -> Steps:
    number = len(state.instants)
    if setting.scenario.is_given:
        if state.lock == NOBODY and state.instants[1].phase == REQUESTED:
            begun = _with_step(with_instant(state, 1, phase=INFLIGHT), "planned", instant=1)
            yield ("The service begins the clustering plan of instant 1, which a writer has made.",), begun
        return
    if setting.protocol.config_first and EARLY not in state.configs:
        text = "The expander writes its hashing config before its instant is on the timeline."
        yield (text,), state._replace(configs=state.configs | {BASELINE, EARLY})
        return
    if state.lock == NOBODY:
        state = state._replace(instants=(*state.instants, Instant(EXPANDER, INFLIGHT)))
        yield ("The expander starts instant {}, a replacecommit.", number), _with_step(state, "planned", instant=number)


def _split(state: State, setting: Setting) -> State:
    """Writes the children of every live file group, including empty ones, and removes those of earlier splits."""
    mine, scenario = state.expander.instant, setting.scenario
    files = {block for block in state.files if block.instant != mine}
    live = visible(state._replace(files=frozenset(files)), setting)
    if scenario.is_given:
        live = {group: rows for group, rows in live.items() if group in state.instants[mine].replaced}
    children: list[Group] = []
    for group, rows in live.items():
        for bucket in range(group.bucket, scenario.new_number, scenario.old_number):
            child = Group(group.partition, group.bucket if scenario.is_clustering else bucket, mine)
            children.append(child)
            files.add(Block(child, mine, NO_KEY, 0))
            files.update(
                Block(child, mine, key, value)
                for (_, key), value in rows.items()
                if key % scenario.new_number == bucket or scenario.is_clustering
            )
    state = with_instant(state, mine, groups=tuple(sorted(children)), replaced=tuple(sorted(live)))
    return state._replace(files=frozenset(files))


def _split_again(state: State, setting: Setting) -> Step:
    if setting.scenario.is_given:
        return ("Hudi executes a plan once: writers conflict with it while it is pending.",), _with_step(state, "ready")
    if not setting.protocol.looks_again:
        return ("The expander does not look at what has changed.",), _with_step(state, "ready")
    return ("The expander splits again, under the lock, what has changed.",), _with_step(
        _split(state, setting), "ready"
    )


def _before_lock(state: State, setting: Setting) -> Steps:
    """Catches up without the lock while file groups have changed, or takes the lock."""
    if state.expander.seen != completions(state) and not setting.scenario.is_given:
        caught_up = _with_step(_split(state, setting), "split", seen=completions(state))
        yield ("The expander catches up: it splits again what has changed.",), caught_up
    yield ("The expander's deadline is over: it gives up.",), _with_step(state, "undoing")
    if state.lock == NOBODY:
        yield ("The expander takes the lock.",), _with_step(state._replace(lock=EXPANDER), "locked")


def _guard(state: State, setting: Setting) -> Steps:
    """Reads the timeline once. Completed instants are known then; the expander waits for pending instants or fences
    them."""
    protocol, policy = setting.protocol, setting.scenario.policy
    trusted = []
    for number in _others_pending(state) if protocol.guard else ():
        kind = _kind(state, setting, number)
        if kind is Kind.FLINK and not protocol.fences_flink:
            yield _wait(state, f"instant {number} is Flink's")
            return
        if kind is None or (policy is Policy.WAIT and kind is not Kind.FLINK):
            yield _wait(state, f"instant {number} is in flight")
            return
        if policy is Policy.LET_RETRY and kind is not Kind.FLINK:
            if not _will_conflict(state, number):
                yield _wait(state, f"instant {number} is in flight and may pass the conflict check")
                return
            trusted.append(number)
            continue
        if not protocol.fence_is_atomic:
            text = "The expander finds instant {} pending, has verified its lock, and sets about rolling it back."
            yield (text, number), _with_step(state, "fencing", target=number)
            return
        if state.lock == EXPANDER:
            text = "The expander fences instant {}: it rolls it back under the lock."
            yield (text, number), rolled_back(state, number)
        else:
            yield ("The expander has lost its lock and begins again.",), _with_step(state, "undoing")
        return
    if protocol.guard and protocol.hand_over and flink.may_run(state, setting):
        yield _wait(state, "a Flink job may run")
        return
    if protocol.known is Known.TIMELINE_BEFORE:
        trusted = _others_pending(state)
    elif protocol.known is Known.COMPLETED_BEFORE:
        trusted = []
    text = "The expander looks at the timeline under the lock: nothing is in its way."
    yield (text,), _with_step(state, "guarded", known=completions(state), let_through=tuple(trusted))


def _others_pending(state: State) -> list[int]:
    mine = state.expander.instant
    return [number for number, item in enumerate(state.instants) if item.phase in PENDING and number != mine]


def _kind(state: State, setting: Setting, number: int) -> Kind | None:
    """Returns the instant's kind of writer; None for a compaction, and for an instant that its writer has given up."""
    owner = state.instants[number].owner
    if owner == COMPACTION:
        return None
    index = int(owner.split()[1])
    kind = setting.scenario.writers[index].kind
    return kind if kind is Kind.FLINK or state.writers[index].instant == number else None


def _will_conflict(state: State, number: int) -> bool:
    """Returns whether the write is past its `preWrite` and goes to a bucket that is replaced."""
    item = state.instants[number]
    replaced = {(group.partition, group.bucket) for group in state.instants[state.expander.instant].replaced}
    return item.phase == INFLIGHT and any((group.partition, group.bucket) in replaced for group in item.groups)


def _wait(state: State, why: str) -> Step:
    lock = NOBODY if state.lock == EXPANDER else state.lock
    return ("The expander gives the lock back and waits, because {}.", why), _with_step(
        state._replace(lock=lock), "split"
    )


def _fence(state: State) -> Step:
    """Does the second half of a fence that is not atomic: Hudi's rollback deletes the files without another check."""
    target = state.expander.target
    after = _with_step(state, "locked", target=NONE)
    if state.instants[target].phase == COMPLETED:
        kept = frozenset(block for block in state.files if block.instant != target)
        text = "The expander's rollback deletes the files of instant {}, which has completed meanwhile."
        return (text, target), after._replace(files=kept)
    return ("The expander's rollback removes instant {} and its files.", target), rolled_back(after, target)


def _write_baseline(state: State, setting: Setting) -> Steps:
    if setting.scenario.is_clustering:
        yield ("Clustering needs no hashing config.",), _with_step(state, "with config")
    elif not setting.protocol.baseline or state.configs:
        yield from _write_config(state, setting)
    else:
        state = state._replace(configs=state.configs | {BASELINE})
        yield ("The expander writes the baseline config, with the old number.",), _with_step(state, "with baseline")


def _write_config(state: State, setting: Setting) -> Steps:
    number = state.expander.instant
    text = "The expander writes the hashing config of instant {}, with the new number."
    yield (text, number), _with_step(state._replace(configs=state.configs | {number}), "with config")


def _verify(state: State, setting: Setting) -> Step:
    if setting.protocol.verifies_lock and state.lock != EXPANDER:
        return ("The expander finds that its lock is lost, and does not commit.",), _with_step(state, "undoing")
    text = "The expander verifies that the lock is still its own."
    if not setting.protocol.verifies_lock:
        text = "The expander does not look whether the lock is still its own."
    return (text,), _with_step(state, "verified")


def commit(state: State, setting: Setting) -> Step:
    """Completes the replacecommit, which changes file groups and number of buckets atomically."""
    number, is_held = state.expander.instant, state.lock == EXPANDER
    if state.instants[number].phase != INFLIGHT:
        return ("The expander's commit fails: instant {} is not inflight any more.", number), _with_step(
            state, "undoing"
        )
    state = with_instant(state, number, phase=COMPLETED, done=completions(state) + 1)
    replaced = state.instants[number].replaced
    if setting.protocol.known is Known.TIMELINE_AFTER:
        state = _with_step(state, "verified", known=completions(state), let_through=tuple(_others_pending(state)))
    text = (
        "The expander commits instant {}" + (" under the lock" if is_held else " WITHOUT the lock") + ": {} replaced."
    )
    return (text, number, [str(group) for group in replaced]), _with_step(state, "committed")


def _unlock(state: State) -> Step:
    is_held = state.lock == EXPANDER
    text = (
        "The expander verifies its lock again and gives it back."
        if is_held
        else "The expander sees that it lost its lock."
    )
    return (text,), _with_step(state._replace(lock=NOBODY if is_held else state.lock), "watching")


def begun_again(state: State) -> State:
    """Returns the state when an attempt has been undone: another attempt begins, or no attempt is left."""
    left = state.expander.attempts - 1
    return state._replace(expander=Expander("new" if left > 0 else "gave up", attempts=left))
