"""Checks a recorded history of a real run against the rules of the model.

    history = [*of_instant("001", "deltacommit", metadata, completed_at="002"), Event("003", What.LOCKED, by="job 1")]
    assert violations(history) == []

The rules are those that the mutants of `mutants.py` break. Facts that a history does not have (which writer holds the
lock, what a writer has read) are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.history import BASELINE, Event, FileIds, History, Life, What, of_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Event", "What", "of_instant", "violations"]

RESCALE = "BUCKET_RESCALE"
UNDER_LOCK = (What.LOOKED, What.CONFIG_WRITTEN, What.CONFIG_REMOVED, What.FENCED, What.REPAIRED)


def violations(history: Iterable[Event]) -> list[str]:
    """Returns a sentence for each violated rule; an empty list for a legal history."""
    told = History.of(history)
    rules = (_lives, _lock, _configs, _known, _stale, _old_numbers, _fences, _flink, _cleaning, _archival)
    return [sentence for rule in rules for sentence in rule(told)]


def _lives(history: History) -> Iterator[str]:
    """Checks that each instant is requested, inflight and completed once, or rolled back and never completed."""
    order = (What.REQUESTED, What.INFLIGHT, What.COMPLETED)
    for life in history.lives.values():
        if life.times.get(What.COMPLETED, 0) > 1:
            yield f"Instant {life.instant} completed {life.times[What.COMPLETED]} times."
        if life.completed and What.ROLLED_BACK in life.at and life.operation != "COMPACT":
            yield f"Instant {life.instant} completed, and was rolled back."
        times = [life.at[what] for what in order if what in life.at]
        if times != sorted(times):
            yield f"Instant {life.instant} went through its states in a wrong order."


def _lock(history: History) -> Iterator[str]:
    """Checks that the lock has one holder at a time, that steps which need it happen under it, and that no write starts
    or commits while we hold it."""
    holder = None
    for event in history.events:
        if event.what is What.LOCKED:
            if holder:
                yield f"{event.by} took the lock at {event.at}, while {holder} held it."
            holder = event.by
        elif event.what is What.UNLOCKED:
            holder = None
        elif event.what in UNDER_LOCK and not holder:
            yield f"At {event.at} instant {event.instant} was {event.what.value} without the lock."
        elif event.what is What.COMPLETED and not holder and _is_ours(history, event.instant):
            yield f"Instant {event.instant} committed without the lock."
        elif event.what in (What.REQUESTED, What.COMPLETED) and holder:
            life = history.lives[event.instant]
            if life.is_write and not life.was_looked_at() and What.REPAIRED not in life.at:
                yield (
                    f"Instant {event.instant} was {event.what.value} at {event.at}, while {holder} held the lock, "
                    "and nobody has judged it."
                )


def _is_ours(history: History, instant: str) -> bool:
    return history.lives[instant].operation == RESCALE or What.LOOKED in history.lives[instant].at


def _configs(history: History) -> Iterator[str]:
    """Checks that the baseline is written first, and that a config is written, or removed, while its instant is
    pending."""
    has_baseline = False
    for event in history.events:
        if event.what is not What.CONFIG_WRITTEN:
            continue
        if event.instant == BASELINE:
            has_baseline = True
            continue
        life = history.lives[event.instant]
        if not has_baseline:
            yield f"The hashing config of instant {event.instant} was written without a baseline."
        if not _is_pending(life, event.at):
            yield f"The hashing config of instant {event.instant} was written while that instant was not pending."
    for life in history.lives.values():
        written, removed = life.at.get(What.CONFIG_WRITTEN), life.at.get(What.CONFIG_REMOVED)
        rolled_back = life.at.get(What.ROLLED_BACK)
        counts = written is not None and (removed is None or removed < written)
        if life.instant == BASELINE:
            continue
        if life.operation == RESCALE and life.completed and not (counts and written and written <= life.completed):
            yield f"Instant {life.instant} changed the number of buckets, and its hashing config was not there."
        if written and rolled_back and (removed is None or removed > rolled_back):
            yield f"Instant {life.instant} was rolled back while its hashing config was there."


def _is_pending(life: Life, time: str) -> bool:
    if What.REQUESTED not in life.at or life.at[What.REQUESTED] > time:
        return False
    return all(life.at.get(what, "9") > time for what in (What.COMPLETED, What.ROLLED_BACK))


def _known(history: History) -> Iterator[str]:
    """Checks that each write is judged that began before a replacement's commit and completes after its look at the
    timeline."""
    for replacement in history.replacements():
        looked, end = replacement.at.get(What.LOOKED), replacement.completed or ""
        if replacement.operation == RESCALE and looked is None:
            yield f"Instant {replacement.instant} committed, and nobody had looked at the timeline under the lock."
        for life in history.lives.values():
            if not life.is_write or not life.completed or life.was_looked_at():
                continue
            if looked and looked < life.completed < end:
                yield (
                    f"Instant {life.instant} completed between the look at the timeline and the commit of "
                    f"{replacement.instant}, and nobody has judged it."
                )
            if looked and life.instant < end < life.completed:
                yield (
                    f"Instant {life.instant} was in flight when {replacement.instant} committed, "
                    "and nobody has judged it."
                )


def _stale(history: History) -> Iterator[str]:
    """Checks that every write to a file group that had been replaced is an incident."""
    for life in history.lives.values():
        if not life.is_write or not life.completed or What.INCIDENT in life.at:
            continue
        for replacement in history.replacements():
            hit = life.written & replacement.replaced
            if hit and (replacement.completed or "") < life.completed:
                yield (
                    f"Instant {life.instant} wrote to {_names(hit)}, which {replacement.instant} had replaced, "
                    "and there was no incident."
                )


def _old_numbers(history: History) -> Iterator[str]:
    """Checks that a later write was judged by its keys if none of its buckets in a partition is new, because it may
    use the old number."""
    numbers = {event.instant: event.number for event in history.events if event.what is What.CONFIG_WRITTEN}
    for replacement in history.replacements():
        earlier = [instant for instant in numbers if instant < replacement.instant]
        if replacement.operation != RESCALE or not earlier or replacement.instant not in numbers:
            continue
        old = numbers[max(earlier)]
        for life in history.lives.values():
            if not life.is_write or life.was_looked_at() or (life.completed or "") <= (replacement.completed or ""):
                continue
            for partition in sorted({partition for partition, _ in life.written}):
                buckets = _buckets(life, partition)
                if buckets and max(buckets) < old:
                    yield (
                        f"Instant {life.instant} wrote to no bucket of partition '{partition}' from {old} on after "
                        f"{replacement.instant}, and nobody has looked at its keys."
                    )


def _buckets(life: Life, partition: str) -> set[int]:
    """Returns the buckets in the file ids that the instant wrote in the partition."""
    return {int(file_id[:8]) for place, file_id in life.written if place == partition and file_id[:8].isdigit()}


def _fences(history: History) -> Iterator[str]:
    """Checks that a fenced instant never completes, and that we never fence or roll back the instant of a Flink job."""
    for life in history.lives.values():
        if What.FENCED in life.at and life.completed:
            yield f"Instant {life.instant} was fenced, and completed."
        if life.is_flink and What.FENCED in life.at:
            yield f"Instant {life.instant} is a Flink job's, and was fenced."
    for event in history.events:
        if event.what is What.ROLLED_BACK and event.by and history.lives[event.instant].is_flink:
            yield f"Instant {event.instant} is a Flink job's, and {event.by} rolled it back."


def _flink(history: History) -> Iterator[str]:
    """Checks that no file group is replaced while a Flink job may run or has an incomplete instant."""
    is_running = False
    for event in history.events:
        if event.what in (What.STOPPED, What.RESUMED):
            is_running = event.what is What.RESUMED
        if event.what is not What.COMPLETED or not event.replaced:
            continue
        if is_running:
            yield f"Instant {event.instant} replaced file groups while a Flink job might run."
        for life in history.lives.values():
            if life.is_flink and _is_pending(life, event.at):
                yield f"Instant {event.instant} replaced file groups while Flink's instant {life.instant} was pending."


def _cleaning(history: History) -> Iterator[str]:
    """Checks that the cleaner deletes no files of the file groups of a stale commit before its repair."""
    for event in history.events:
        if event.what is not What.CLEANED:
            continue
        for life in history.lives.values():
            hit = event.file_ids & life.written
            if hit and life.is_an_incident_at(event.at):
                yield f"The clean at {event.at} deleted {_names(hit)}, and {life.instant} is yet to be repaired."


def _archival(history: History) -> Iterator[str]:
    """Checks that archival does not pass a fenced instant with late files, and archives nothing while an incident is
    open."""
    for event in history.events:
        if event.what is not What.ARCHIVED:
            continue
        for life in history.lives.values():
            if life.is_an_incident_at(event.at):
                yield f"Archival passed {event.instant} while the incident of instant {life.instant} was open."
            is_passed = life.instant <= event.instant and What.FENCED in life.at
            if is_passed and life.at.get(What.LATE_FILES_REMOVED, "9") > event.at:
                yield f"Archival passed the fenced instant {life.instant}, whose late files were not removed for good."


def _names(file_ids: FileIds) -> str:
    return ", ".join(f"{partition}/{file_id}" for partition, file_id in sorted(file_ids))
