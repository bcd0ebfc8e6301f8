"""Ensures that a pending plan of compaction or clustering has only one runner, because a second one corrupts the table
(Hudi #18012). Hudi 1.2 does not ensure that: a compaction sends heartbeats only in multi-writer mode, a clustering
never does, and every runner of an inflight plan first rolls back the files of the runner before it. So an INFLIGHT
plan, which somebody has begun, is begun again only if its runner is proved dead (`PlanOwner.check`).

A job that begins a plan writes a note to the table: the plan, the job, the process, and the time of the inflight file
by the storage's clock. Anybody who begins the plan again makes another inflight file, so a matching note proves who
began the present one; neither the instants that a job reports nor a heartbeat can prove that. One note for a table is
enough, because at most one job works on it. A worker that is killed leaves

- after `planned`: a requested plan, which any runner may begin; the note says that this service has made it;
- between the first heartbeat and `begun`: a plan without a note, so its runner counts as unknown until the heartbeat
  has expired (two minutes);
- after `begun`, even if the service does not know the instant: an inflight plan of this job. The next attempt, or any
  other job that finds the process gone, begins it again at once. If the process may be alive, a compaction plans the
  file groups anew (`begun_by_living`);
- after the commit: a completed instant, and a note that matches no plan any more.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any

from jobs.errors import CommitLostError, CommitUndoneError, HudiError, JobError, LeaseLostError, PlanTakenError
from jobs.format import plan_files
from jobs.format.file_names import parse_base_file_name
from jobs.hudi.client import WriteClient
from jobs.hudi.file_times import modified, storage_now, times_in
from jobs.hudi.heartbeats import expiry_seconds, last_beat
from jobs.hudi.held_lock import instant_held
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.lock import TableLock, for_at_most
from jobs.hudi.lock_note import has_died, process
from jobs.hudi.lock_status import duration
from jobs.hudi.plans import plan_of
from jobs.hudi.records import CLEAN, CLUSTERING, COMPACTION, REPLACE, Instant
from jobs.hudi.small_file import read_object, write_object
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.problems.left_plan import take_over
from jobs.protocol import own_instant
from jobs.protocol.writers import dead_writes

logger = logging.getLogger(__name__)

# A runner without heartbeats that has written no file for this long is taken for dead.
QUIET_SECONDS = 3600.0
UNDO_SECONDS = 120.0
_NOTE, _WHAT = ".hoodie/.aux/groundskeeper.plan", "the note of who has begun a plan"
Note = dict[str, Any]


def plan_instants(table: HudiTable, actions: Collection[str]) -> list[Instant]:
    """Returns the pending instants of these actions that are plans.

    Before table version 8 a clustering plan is a replacecommit; any other replacecommit is a write, not a plan.
    """
    return [
        item
        for item in table.instants()
        if item.state != "COMPLETED"
        and item.action in actions
        and (item.action != REPLACE or table.is_clustering_plan(item.requested))
    ]


class PlanOwner:
    """The plans of one attempt at a job. The table's lock must be held for all calls but `check` and `working`.

    `take_over`: the operator declares that no other runner is alive. The declaration does not override a live
    heartbeat.
    """

    def __init__(self, table: HudiTable, job_id: str, *, take_over: bool = False) -> None:
        self._table = table
        self._take_over = take_over
        self._begun: Instant | None = None
        self._read_from: frozenset[str] = frozenset()  # The instants that had completed when the plan was begun.
        self._signature = {"job": job_id, "attempt": uuid.uuid4().hex, **process()}

    def check(self, instant: str) -> None:
        """Raises PlanTakenError unless the plan may be begun now, and CommitLostError if it is no longer pending.

        A plan may be begun if it is only requested and has no heartbeat, or if its runner is proved dead. A runner is
        dead if it was an earlier attempt of this job, if its process has ended, or if its heartbeat has expired. A
        runner without heartbeats is dead if the inflight file and all markers and base files of the instant are older
        than `QUIET_SECONDS`.
        """
        item = self._pending(instant)
        note = self._note_of(item)
        if note is not None and (note["job"] == self._signature["job"] or has_died(note)):
            return
        what, last, enough = "it sent a heartbeat", last_beat(self._table, instant), expiry_seconds(self._table)
        if last is None and not self._take_over:
            file, last = self._newest_file(item)
            what, enough = f"it sends no heartbeats, and {file} was written", QUIET_SECONDS
        if last is not None and (seconds := (storage_now(self._table) - last) / 1000) <= enough:
            state = f"{item.action}, {item.state.lower()}"
            detail = f"Instant {instant} ({state}) has a runner: {what} {duration(seconds)} ago."
            raise PlanTakenError(detail, hint=self._advice(item) if enough == QUIET_SECONDS else None)

    def planned(self, instant: str) -> None:
        """Notes that this job has made the plan, so that the plan is removed if it cannot be executed."""
        self._write({"instant": instant, "made": True, "inflight": None})

    def has_made(self, instant: str) -> bool:
        """Returns whether this service has made the plan."""
        note = self._read()
        return note.get("instant") == instant and note.get("made") is True

    def begun_by_living(self) -> str | None:
        """Returns the compaction that an earlier attempt of this job has begun, unless the process of that attempt is
        proved dead. A process may be suspended after its commit to the metadata table. When it goes on, it completes
        the instant: Hudi (1.2.0) only looks whether the inflight file exists, and the next runner of the plan makes
        that file again. Since table version 8 the name of a completed instant has its completion time. So the timeline
        would have the instant twice, once with files that are gone."""
        for item in plan_instants(self._table, {COMPACTION}):
            note = self._note_of(item)
            if note is not None and note["job"] == self._signature["job"] and not has_died(note):
                return item.requested
        return None

    def begun(self, instant: str) -> None:
        """Notes that this attempt has begun the plan. Call it right after the plan was checked and begun with a
        heartbeat."""
        made = self.has_made(instant)
        self._read_from = self._completed()
        self._begun = self._pending(instant)
        self._write({"instant": instant, "made": made, "inflight": self._inflight_time(self._begun)})

    def working(self) -> AbstractContextManager[None]:
        """Lets Hudi's tasks of a block, in the driver's JVM, make and complete files only while the plan that was begun
        last is this attempt's. They raise CommitLostError otherwise. The lock need not be held."""
        begun = self._begun
        locks = instant_generators(self._table.jvm).locks
        return instant_held(locks, lambda: begun is not None and self._is_mine(begun))

    def require(self, client: WriteClient, instant: str) -> None:
        """Raises CommitLostError unless the instant is inflight and still this attempt's own, and CommitUndoneError if
        a commit was rolled back since the plan was begun: Hudi's `rollback_to_instant` ignores pending plans, and the
        new files may have the rows of that commit. Call it before a commit."""
        if self._table.state_of(instant) != "INFLIGHT":
            raise self._table.lost(f"Instant {instant} is not inflight any more.")
        if not self._is_mine(self._pending(instant)):
            raise CommitLostError(f"Another runner has begun {instant} anew.")
        if not client.has_heartbeat(instant) or client.is_dead(instant):
            raise CommitLostError(f"The heartbeat of {instant} has expired or is gone, so others may begin it anew.")
        # Hudi 1.0 ignores the heartbeat of a compaction (`runAnyPendingCompactions`), and deletes our files even if the
        # plan is complete by then.
        if instant in client.pending_rollbacks().values():
            raise CommitLostError(f"Another runner of {instant} is about to roll it back.")
        if undone := self._undone(client):
            raise CommitUndoneError(", ".join(undone))

    def undo(self, client: WriteClient, lock: TableLock, context: JobContext, instant: str) -> None:
        """Undoes a plan whose execution has failed. Removes it from the timeline if this job has made it, otherwise
        sets it back to requested. Clustering plans are always removed, because a pending one blocks writers of its file
        groups. The lock must not be held. A completed plan stays as it is. A plan of another runner stays as well, and
        this method raises CommitLostError. The job's problem says what could not be undone (`JobContext.leaves`)."""
        try:
            with context.undoing(), lock.held(for_at_most(UNDO_SECONDS)):
                self._table.reload()
                state = self._table.state_of(instant)
                if state == "INFLIGHT" and not self._is_mine(self._pending(instant)):
                    raise CommitLostError(f"Another runner has begun {instant} anew.")
                if state is not None and state != "COMPLETED":
                    if self.has_made(instant) or self._pending(instant).action != COMPACTION:
                        kept = self._given_back_to_writers(client, instant) or take_back(self._table, client, instant)
                        if kept:
                            context.leaves(kept)
                    else:
                        give_back(client, self._pending(instant))
                elif state is None:
                    own_instant.remove_rest(self._table, client, instant, may_be_unmarked=True)
        except (CommitLostError, LeaseLostError):
            # Another runner or attempt is active and decides about the plan.
            raise
        except JobError as error:
            logger.exception("could not take back the plan %s", instant)
            context.leaves(f"{_stays(instant)} ({error.detail}). {_EXECUTE}")

    def _given_back_to_writers(self, client: WriteClient, instant: str) -> str | None:
        """Makes a compaction a requested one again if a write is in flight, and returns the sentence that says so.

        A writer lists pending plans when it begins, and its tasks read them later
        (`AbstractTableFileSystemView.init`, 1.2.0): without the plan's file they would fail, and a Flink job with
        them."""
        item = self._pending(instant)
        if item.action != COMPACTION:
            return None
        writes = {each.requested for each in self._table.pending_writes()}
        writing = sorted(writes - {*dead_writes(self._table, client)}) if writes else []
        if not writing:
            return None
        give_back(client, item)
        return f"{_stays(instant)}, because writes in flight may still read it ({', '.join(writing[:5])}). {_EXECUTE}"

    # -- evidence

    def _advice(self, item: Instant) -> str:
        """Returns what to do about a plan whose runner sends no heartbeats."""
        job = {REPLACE: CLUSTERING, CLEAN: "cleaning"}.get(item.action, item.action)
        command = take_over(job, [item.requested], self._table.declared.name)
        return (
            f"If you know that the runner is dead, execute the plan: {command}. Otherwise it counts as dead an hour"
            " after its last file. A writer should execute no plans beside this service: `writer-options` has the"
            " options."
        )

    def _completed(self) -> frozenset[str]:
        return frozenset(item.requested for item in self._table.instants() if item.state == "COMPLETED")

    def _undone(self, client: WriteClient) -> list[str]:
        """Returns the rolled-back instants that had completed when the plan was begun. A rollback first makes its
        instant a pending one again."""
        gone = self._read_from - self._completed()
        return sorted(gone & {*self._table.rollbacks(), *client.pending_rollbacks().values()}) if gone else []

    def _pending(self, instant: str) -> Instant:
        found = next((item for item in self._table.instants() if item.requested == instant), None)
        if found is None or found.state == "COMPLETED":
            raise self._table.lost(f"Instant {instant} is pending no more.")
        return found

    def _newest_file(self, item: Instant) -> tuple[str, int | None]:
        """Returns the file that was written last for the instant, and when."""
        table, instant = self._table, item.requested
        markers = times_in(table, f".hoodie/.temp/{instant}", recursive=True)
        found = {"a marker": max(markers.values(), default=None)}
        if item.state == "INFLIGHT":
            found["its inflight file"] = self._inflight_time(item)
            partitions = {partition for partition, _ in plan_files.read_by(plan_of(table, instant))}
            for partition in partitions or set(table.partitions()):
                for name, time in times_in(table, partition).items():
                    # Logs are ignored, because before table version 8 writers name theirs by a pending compaction's
                    # instant.
                    base_file = parse_base_file_name(name)
                    if base_file and base_file.instant == instant:
                        found["a base file"] = max(time, found.get("a base file") or 0)
        return max(found.items(), key=lambda each: each[1] or 0)

    def _inflight_time(self, item: Instant) -> int | None:
        folder = self._table.timeline_path.removeprefix(self._table.path)
        return modified(self._table, f"{folder.strip('/')}/{item.requested}.{item.action}.inflight")

    # -- the note

    def _note_of(self, item: Instant) -> Note | None:
        """Returns the note that matches the present inflight plan, if a job of this service has begun it."""
        if item.state != "INFLIGHT":
            return None
        note = self._read()
        begun = note.get("inflight")
        is_its = note.get("instant") == item.requested and begun is not None and begun == self._inflight_time(item)
        return note if is_its and isinstance(note.get("job"), str) else None

    def _is_mine(self, item: Instant) -> bool:
        note = self._note_of(item)
        return note is not None and note.get("attempt") == self._signature["attempt"]

    def _read(self) -> Note:
        return read_object(self._table.jvm, self._table.storage, self._path, _WHAT)

    def _write(self, note: Note) -> None:
        storage = self._table.storage
        write_object(self._table.jvm, storage, self._path, {**note, **self._signature}, _WHAT)

    @property
    def _path(self) -> str:
        return f"{self._table.base_path}/{_NOTE}"


_EXECUTE = "The next compaction of the table executes it: `groundskeeper jobs run compaction TABLE`."


def take_back(table: HudiTable, client: WriteClient, instant: str) -> str | None:
    """Removes a pending plan from the timeline, with all files that were written for it. The lock must be held. Returns
    None, or a sentence why the plan stays as a requested one, with the command to execute it. Before table version 8
    compaction plans stay, because writers name their logs by the plan's instant, and without the plan these would be a
    separate file slice (`AbstractTableFileSystemView.filterBaseFileAfterPendingCompaction`). Since version 8 a log
    belongs to a file slice by its completion time (`HoodieFileGroup.getBaseInstantTime`)."""
    item = next((each for each in table.pending() if each.requested == instant), None)
    if item is None:
        return None
    if item.action != COMPACTION:
        client.end_heartbeat(instant)
        client.rollback(instant)
        client.tidy_up(instant)
        return None
    give_back(client, item)
    if table.has_logs_named_by_slice:
        return f"{_stays(instant)}, because logs that writers have written since refer to it. {_EXECUTE}"
    client.withdrawal.delete(instant)
    return None


def give_back(client: WriteClient, item: Instant) -> None:
    """Makes an inflight compaction a requested one again and removes the files that were written for it. The lock must
    be held."""
    client.end_heartbeat(item.requested)
    if item.state == "INFLIGHT":
        if item.requested in client.pending_rollbacks().values():
            raise HudiError(f"An interrupted rollback of {item.requested} must be finished first")
        client.withdrawal.revert(item.requested)
    client.forget_heartbeat(item.requested)


def _stays(instant: str) -> str:
    return f"The plan {instant} stays on the timeline"
