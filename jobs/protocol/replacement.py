"""Replaces file groups by rewritten ones in a single replacecommit, without making a writer's batch fail. Rewriting
takes long and writers continue meanwhile, so the slices are rewritten without the lock, and changed ones are rewritten
again (catch-up). Only the last step takes the table's lock: while it is held, no instant can start or commit. If no
write is in flight then, the changes since the last round are rewritten under the lock, and the job commits. Hudi's own
conflict detection is not enough: it does not detect a write in flight that creates a new partition or bucket in the old
layout (Hudi 1.2, `BucketIndexConcurrentFileWritesConflictResolutionStrategy`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from jobs.contract import ExpansionStep
from jobs.errors import (
    BucketRulesChangedError,
    CommitStateUnknownError,
    HudiError,
    JobError,
    LeaseLostError,
    WritersActiveError,
    refuse,
)
from jobs.format.instants import wall_clock
from jobs.format.written_file import WrittenFile
from jobs.hudi.client import WriteClient
from jobs.hudi.indexes import METADATA_AT_THE_END
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import Buckets, FileSlice, Instant
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.job_params import OnActiveWriters
from jobs.lock_errors import LockLostError
from jobs.protocol import abandoned, own_instant, preflight, writer_engines
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.protocol.replacement_outcome import Replaced
from jobs.protocol.stale_writer_watch import KnownInstants
from jobs.protocol.writers import Writers, alone, quiet_seconds, seconds_until_next_write

logger = logging.getLogger(__name__)

Rewriter = Callable[[str, Sequence["FileSlice"], Sequence["FileSlice"]], "list[WrittenFile]"]
Key = tuple[str, str]
POLL_SECONDS = 0.1
# Time limit for undoing; the next attempt undoes the rest.
UNDO_SECONDS = 120.0
# Typical time in which Hudi completes a replacecommit, mostly for the metadata table.
COMMIT_SECONDS = 3.0
# The commit does not wait for a retrying writer that has been idle for this long.
RETRYING_WRITER_IDLE_SECONDS = 30.0


class Replacement:
    """One replacecommit, from its start to its completion or to the removal of all its traces.

    `choose` picks the slices to replace from those of the table; `rewrite(instant, chosen, all_slices)` writes the
    files; `before_commit(outcome)` runs with the lock held, right before the commit; what `extra` returns goes into
    the commit's metadata. `unit(partition, file_id)` names the set of file groups that must be rewritten together; by
    default each file group is its own set.
    """

    def __init__(
        self,
        table: HudiTable,
        config: ReplacementConfig,
        context: JobContext,
        lock: TableLock,
        *,
        choose: Callable[[list[FileSlice]], list[FileSlice]],
        rewrite: Rewriter,
        before_commit: Callable[[Replaced], None] = lambda _: None,
        extra: Callable[[Replaced], Mapping[str, str]] = lambda _: {},
        unit: Callable[[str, str], Key] = lambda partition, file_id: (partition, file_id),
    ) -> None:
        self._table = table
        self._config = config
        self._context = context
        self._lock = lock
        self._choose = choose
        self._rewrite = rewrite
        self._before_commit = before_commit
        self._extra = extra
        self._unit = unit
        self._done: dict[Key, tuple[frozenset[FileSlice], list[WrittenFile]]] = {}
        self._written: list[WrittenFile] = []  # The files of all rounds.
        self._bytes_per_second = 0.0
        self._all: list[FileSlice] = []
        self._timeline_at_lock: list[Instant] = []
        self._known_at_start: frozenset[str] = frozenset()

    def run(self) -> Replaced:
        """Runs the replacement. Any error but `LeaseLostError` leaves no trace of it. Raises `WritersActiveError` if
        there was no moment to commit, and `RefusedError` if a Flink job is running."""
        self._table.reload()
        # Hudi would by default write a record index from reports of its own tasks, but our tasks make no such reports.
        metadata = METADATA_AT_THE_END if self._table.indexes_of_keys else {}
        with WriteClient(self._table, UNDER_OUR_LOCK, metadata) as client:
            outcome = Replaced(instant := self._start(client))
            try:
                client.begin_replacement(instant)
                self._round(outcome, "rewriting")
                self._commit(client, outcome)
            except LeaseLostError:
                # Another attempt is active and settles our instant; writing anything now could damage its files.
                own_instant.remove_late(self._table, client, instant)
                raise
            except BaseException:
                self._abort(client, instant)
                raise
            return outcome

    def _start(self, client: WriteClient) -> str:
        """Starts the replacecommit, and returns its instant."""
        config, checkpoint = self._config, self._context.checkpoint
        moment = (
            alone(self._table, self._lock, client, config.wait_seconds, checkpoint)
            if config.starts_alone
            else self._lock.held(checkpoint)
        )
        with moment:
            instant = client.new_instant()
            # The instant is reported before it exists, because an instant that the service does not know would block
            # the table for long if the worker dies.
            self._context.instant(instant)
            client.start_replacement(instant)
            self._known_at_start = frozenset(item.requested for item in self._table.instants())
        return instant

    def _commit(self, client: WriteClient, outcome: Replaced) -> None:
        """Catches up until little is left, waits for a moment to commit, and commits."""
        config = self._config
        writers = Writers(
            self._table, self._lock, client, config.on_active_writers, retry_conflicts=config.writers_retry
        )
        waiting_since = time.monotonic()
        deadline = waiting_since + config.wait_seconds
        while True:
            self._context.step(ExpansionStep.DRAINING)
            refuse(writer_engines.of_flink_meanwhile(self._table, self._known_at_start))
            in_flight = self._without_plans(writers.in_flight(outcome.instant, self._context.checkpoint))
            if self._is_worth_a_round(outcome, is_quiet=not in_flight):
                self._round(outcome, f"catching up, round {outcome.rounds}")
                in_flight = self._without_plans(writers.in_flight(outcome.instant, self._context.checkpoint))
            blocking = self._blocking(writers, in_flight)
            is_good = not blocking and self._is_good_moment(in_flight)
            if is_good:
                with self._lock.held(self._context.checkpoint):
                    locked_since = time.monotonic()
                    self._timeline_at_lock = self._table.instants()
                    in_flight = self._without_plans(self._table.pending(without=outcome.instant))
                    blocking = self._blocking(writers, in_flight)
                    # The job may have waited for a writer's commit, so that the good moment has passed.
                    is_good = not blocking and self._is_good_moment(in_flight)
                    if is_good and self._may_do_under_lock(self._changed()[0]):
                        outcome.waited_seconds = locked_since - waiting_since
                        if not config.ignores_writers:
                            writers.fence_all(in_flight, self._buckets())
                        outcome.fenced = writers.fenced
                        self._commit_under_lock(client, outcome)
                        outcome.locked_seconds = time.monotonic() - locked_since
                        writers.remove_late_files()
                        return
            if time.monotonic() >= deadline:
                names, hint = ", ".join(map(str, blocking)), abandoned.hint_about(self._table, blocking)
                reason = f"still in flight: {names}" if names else "the writers' pauses are too short for the commit"
                raise WritersActiveError(f"After {config.wait_seconds:.0f} s: {reason}.", hint=hint)
            if blocking or not is_good:
                time.sleep(POLL_SECONDS)

    def _without_plans(self, pending: list[Instant]) -> list[Instant]:
        """Returns the instants without the plans that the replacement may ignore. If there are indexes of keys, an
        inflight plan counts: our commit may roll back what its runner has begun to write to the metadata table."""
        if not self._config.beside_plans:
            return pending
        may_be_begun = not self._table.indexes_of_keys
        return [
            item for item in pending if not ((may_be_begun or item.state == "REQUESTED") and self._table.is_plan(item))
        ]

    def _blocking(self, writers: Writers, in_flight: Sequence[Instant]) -> list[Instant]:
        return [] if self._config.ignores_writers else writers.blocking(in_flight, self._buckets())

    def _commit_under_lock(self, client: WriteClient, outcome: Replaced) -> None:
        refuse(writer_engines.of_flink_meanwhile(self._table, self._known_at_start))
        self._round(outcome, "committing", under_lock=True)
        outcome.slices = [item for done, _ in self._done.values() for item in done]
        outcome.written = [item for _, written in self._done.values() for item in written]
        if not outcome.slices:
            raise WritersActiveError("Writers changed every file group during the rewrite, so none was replaced.")
        self._context.checkpoint()
        # A writer may have renamed a column since the job was accepted.
        refuse(preflight.columns_changed(self._table, outcome.slices))
        outcome.before = self._known(outcome)
        others = own_instant.announce_again(client, outcome.instant, self._written)
        # Lock and instant are checked before and after `before_commit` writes, because a frozen attempt may have been
        # rolled back.
        own_instant.require(self._table, client, self._lock, outcome.instant, self._timeline_at_lock)
        self._before_commit(outcome)
        own_instant.require(self._table, client, self._lock, outcome.instant, self._timeline_at_lock)
        extra = {**outcome.before.to_metadata(), **self._extra(outcome)}
        reported: JobError | None = None
        try:
            client.commit_replacement(outcome.instant, outcome.written, outcome.slices, extra)
        except JobError as error:
            reported = error
        if self._table.state_of(outcome.instant) != "COMPLETED":
            raise reported or CommitStateUnknownError(f"instant {outcome.instant}")
        with suppress(JobError):  # An audit finds the files.
            if reported:
                logger.warning("the commit landed, but Hudi reported an error after it: %s", reported.detail)
                client.tidy_up(outcome.instant)
            # A lost task may complete its file until the markers are gone (`announced_file`).
            client.late_files.remove(outcome.instant, others)
        try:
            self._lock.verify()
        except LockLostError:
            # A worker that was frozen during the commit resumes without the lock, and cannot undo the commit. Instants
            # from that time are not in `before`, so they are checked.
            logger.warning("the table's lock was lost while %s was committed", outcome.instant)
            outcome.lock_lost = True

    def _known(self, outcome: Replaced) -> KnownInstants:
        """Returns the timeline of the moment when the lock was taken, so that later instants are checked."""
        at_lock = self._timeline_at_lock
        unfinished = {item.requested for item in at_lock if item.state != "COMPLETED"} - {outcome.instant}
        return KnownInstants(frozenset(item.requested for item in at_lock), frozenset(unfinished))

    def _round(self, outcome: Replaced, step: str, *, under_lock: bool = False) -> None:
        """Rewrites slices that are new or have changed since they were rewritten, and drops those that are gone."""
        rules = self._config.rules
        # Hudi's own rescale takes no lock, and readers follow its config if that has the latest instant.
        if rules and (found := self._table.bucket_rules()) != rules:
            raise BucketRulesChangedError(f"{rules} became {found}")
        self._require_inflight(outcome.instant)
        todo, current = self._changed()
        units = self._units(current)
        self._done = {key: value for key, value in self._done.items() if key in units}
        if under_lock and self._config.may_leave_out:
            affordable = self._affordable(todo)
            for item in set(todo) - set(affordable):
                outcome.left_out += self._done.pop(self._unit(*item.key), None) is not None
            todo = affordable
        self._context.step(step, bytes_total=sum(item.bytes for item in todo))
        if todo:
            started = time.monotonic()
            rewritten = self._units(todo)
            by_unit: dict[Key, list[WrittenFile]] = {key: [] for key in rewritten}
            try:
                with own_instant.working(self._table, outcome.instant):
                    files = self._rewrite(outcome.instant, todo, self._all)
            except HudiError:
                self._require_inflight(outcome.instant)
                raise
            self._written += files
            for written in files:
                by_unit[self._unit(written.partition, written.source)].append(written)
            outcome.rewritten_again += sum(self._unit(*item.key) in self._done for item in todo)
            self._done |= {key: (items, by_unit[key]) for key, items in rewritten.items()}
            self._bytes_per_second = sum(item.bytes for item in todo) / max(time.monotonic() - started, 0.001)
        outcome.rounds += 1

    def _require_inflight(self, instant: str) -> None:
        """Raises `CommitLostError` if somebody has rolled the instant back, or has made the table anew."""
        if self._table.state_of(instant) != "INFLIGHT":
            raise self._table.lost(f"instant {instant}")

    def _changed(self) -> tuple[list[FileSlice], list[FileSlice]]:
        """Returns the chosen slices whose current state is not rewritten yet, and all chosen slices."""
        self._all = self._table.file_slices()
        current = self._choose(self._all)
        done = {key: items for key, (items, _) in self._done.items()}
        changed = {key for key, items in self._units(current).items() if done.get(key) != items}
        return [item for item in current if self._unit(*item.key) in changed], current

    def _units(self, slices: Sequence[FileSlice]) -> dict[Key, frozenset[FileSlice]]:
        found: dict[Key, set[FileSlice]] = {}
        for item in slices:
            found.setdefault(self._unit(*item.key), set()).add(item)
        return {key: frozenset(items) for key, items in found.items()}

    def _buckets(self) -> Buckets:
        """Returns the buckets of the written files; Hudi's conflict detection considers only these of our commit."""
        found: Buckets = {}
        for _, written in self._done.values():
            for file in written:
                if file.file_id[:8].isdigit():
                    found.setdefault(file.partition, set()).add(int(file.file_id[:8]))
        return found

    def _is_worth_a_round(self, outcome: Replaced, *, is_quiet: bool) -> bool:
        """Returns whether the changed slices should be rewritten before the lock is taken, while writers continue. This
        is so if rewriting them takes longer than the time limit of the lock. It is also so in the pause between writes
        that the commit needs, because the lock shall be held as briefly as possible."""
        if self._config.may_leave_out and outcome.rounds > 1:
            return False
        changed = self._changed()[0]
        if is_quiet and self._config.needs_pause:
            return bool(changed)
        return self._seconds_for(changed) > self._config.lock_seconds

    def _may_do_under_lock(self, changed: Sequence[FileSlice]) -> bool:
        """Returns whether rewriting these slices, except those left out, keeps writers waiting only briefly."""
        return self._config.may_leave_out or self._seconds_for(changed) <= self._config.lock_seconds

    def _is_good_moment(self, in_flight: Sequence[Instant]) -> bool:
        """Returns whether the next writes are likely to see the change. A writer that prepares its write during our
        commit would use the old number of buckets (see `StaleWriterWatch`). The table would still be correct, because
        that write is stopped, but its batch must be written again. So a moment is good if the only writer is in the
        middle of a write that it will retry, or if no write is in flight and the gaps between writes are long enough.
        """
        if not self._config.needs_pause or self._config.on_active_writers is OnActiveWriters.FENCE or in_flight:
            return True
        writes = [(wall_clock(start), wall_clock(end)) for start, end in self._table.completed_writes()]
        now = self._table.now()
        if self._config.writers_retry and quiet_seconds(writes, now) < RETRYING_WRITER_IDLE_SECONDS:
            # The next write of a retrying writer is certain to be a good moment, whereas this pause may end early.
            return False
        needed = COMMIT_SECONDS + self._seconds_for(self._changed()[0])
        return seconds_until_next_write(writes, now) >= needed

    def _affordable(self, changed: Sequence[FileSlice]) -> list[FileSlice]:
        """Returns as many of these slices as can be rewritten while writers wait, the smallest units first."""
        chosen: list[FileSlice] = []
        for items in sorted(self._units(changed).values(), key=lambda each: sum(item.bytes for item in each)):
            if self._seconds_for([*chosen, *items]) > self._config.lock_seconds:
                break
            chosen += items
        return chosen

    def _seconds_for(self, slices: Sequence[FileSlice]) -> float:
        """Estimates the seconds to rewrite these slices, at the speed of the last round."""
        return sum(item.bytes for item in slices) / max(self._bytes_per_second, 1.0)

    def _abort(self, client: WriteClient, instant: str) -> None:
        """Removes instant, data files, markers and hashing config, unless the commit has completed."""
        try:
            with self._context.undoing(), self._lock.held(for_at_most(UNDO_SECONDS)):
                self._table.reload()
                if (state := self._table.state_of(instant)) in {"REQUESTED", "INFLIGHT"}:
                    own_instant.announce_again(client, instant, self._written)
                    client.rollback(instant)
                elif state is None:
                    own_instant.remove_rest(self._table, client, instant, may_be_unmarked=True)
        except LeaseLostError:
            raise  # Another attempt settles our instant.
        except JobError:
            # The first error is reported; the next attempt, or any writer's clean, rolls the instant back.
            logger.exception("could not roll back %s", instant)
