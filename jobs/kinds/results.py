"""The results of jobs as types, from which the schemas in the API's document follow.

A job builds its result, and the worker sends it as JSON. The service stores and shows that JSON unchanged, and reads it
with `parse`: a worker of another version may send fewer, other or more members. So every member of a result may be
unset. Members that do not apply are unset as well, such as those that a dry run does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from jobs.contract import Problem, converted, json_of
from jobs.kinds.parameters import Spec

SomeInstant = Annotated[str, Spec(examples=("20260101120000000",))]

Kept = TypeVar("Kept")
# Types of members that may be unset.
Maybe: TypeAlias = Kept | UnsetType
Many: TypeAlias = tuple[Kept, ...] | UnsetType
Count: TypeAlias = Maybe[int]
Flag: TypeAlias = Maybe[bool]
Number: TypeAlias = Maybe[float]
Text: TypeAlias = Maybe[str]
Reasons: TypeAlias = Many[Problem]
Texts: TypeAlias = Many[str]

STREAMS = Spec(
    "Queries of Structured Streaming whose last batches are undone. Spark's checkpoint counts these batches as written,"
    " so the query does not write them again"
)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An object in a result. The API's document shows its docstring and its members' sentences."""

    def to_json(self) -> dict[str, Any]:
        """Returns the members that are set."""
        found: dict[str, Any] = json_of(self)
        return found

    def having(self, **members: Any) -> Self:
        """Returns a copy with these members replaced."""
        return msgspec.structs.replace(self, **members)

    @classmethod
    def parse(cls, given: object) -> Self:
        """Returns the object that a worker of any version has sent. A member of the wrong type counts as missing.
        Raises msgspec.ValidationError if a member without a default is missing."""
        try:
            return converted(given, cls)
        except msgspec.ValidationError:
            known = given if isinstance(given, dict) else {}
            return converted(dict(_readable(cls, known)), cls)


def _readable(form: type[Part], given: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for each in msgspec.structs.fields(form):
        if each.name in given:
            with suppress(msgspec.ValidationError):
                yield each.name, _read(given[each.name], each.type)


def _read(value: Any, hint: Any) -> Any:
    """Returns a value converted to this type. List items of another type are left out. Raises
    msgspec.ValidationError."""
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError:
        for form in _choices(hint):
            if isinstance(form, type) and issubclass(form, Part) and isinstance(value, dict):
                return form.parse(value)
            if get_origin(form) is tuple and isinstance(value, list):
                return tuple(_items(value, get_args(form)[0]))
        raise


def _choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Annotated:
        return _choices(get_args(hint)[0])
    return (hint,) if get_origin(hint) is tuple else get_args(hint) or (hint,)


def _items(values: list[Any], hint: Any) -> Iterator[Any]:
    for each in values:
        with suppress(msgspec.ValidationError):
            yield _read(each, hint)


class ResultReason(Part, frozen=True, kw_only=True):
    """A reason for a refusal or an omission, as a problem"""

    type: Annotated[str, Spec("Type of the problem")] = ""
    title: Annotated[str, Spec("What it is")] = ""
    detail: Annotated[str, Spec("This case")] = ""
    hint: Annotated[str, Spec("What to do")] = ""
    retriable: Annotated[bool, Spec("Whether it may end by itself")] = False


class WorkLeft(Part, frozen=True, kw_only=True):
    """Work that a job with a limit leaves to the next one"""

    file_groups: Annotated[Count, Spec("File groups that are left to the next job")] = UNSET
    partitions: Annotated[Count, Spec("Partitions that are left to the next job")] = UNSET
    bytes: Annotated[Count, Spec("Size of the files that are left, in bytes")] = UNSET
    plans: Annotated[Texts, Spec("Plans that are left")] = UNSET


class Cure(Part, frozen=True, kw_only=True):
    """A job that repairs a damage"""

    kind: Annotated[str, Spec("Kind of the job", examples=("repair",))]
    params: Annotated[dict[str, Any], Spec("Its parameters")] = msgspec.field(default_factory=dict)


class DamageFound(Part, frozen=True, kw_only=True):
    """A damage that was found"""

    type: Annotated[Text, Spec("Type of the damage")] = UNSET
    title: Annotated[Text, Spec("What is damaged")] = UNSET
    detail: Annotated[Text, Spec("Where")] = UNSET
    effect: Annotated[Text, Spec("The effect on readers, writers or services")] = UNSET
    hint: Annotated[Text, Spec("What to do")] = UNSET
    check: Annotated[Text, Spec("The check that found it")] = UNSET
    cure: Annotated[Cure | UnsetType | None, Spec("The job that repairs it; null if no job can")] = UNSET


class CheckNotMade(Part, frozen=True, kw_only=True):
    """A check that could not be made"""

    check: Annotated[str, Spec("The check")]
    reason: Annotated[Problem, Spec("Why it could not be made")]


Findings = Annotated[tuple[DamageFound, ...], Spec("Damages that were found")]
Checked = Annotated[tuple[str, ...], Spec("Checks that were made")]
Unchecked = Annotated[tuple[CheckNotMade, ...], Spec("Checks that could not be made")]


class Examination(Part, frozen=True, kw_only=True):
    """The checks of an audit that read no rows"""

    findings: Findings = ()
    checked: Checked = ()
    unchecked: Unchecked = ()


class LockFound(Part, frozen=True, kw_only=True):
    """The table's lock as a dry run found it"""

    provider: Annotated[str, Spec("The lock's provider")]
    reachable: Annotated[bool, Spec("Whether it can be reached")]
    held: Annotated[bool | None, Spec("Whether somebody holds it; null if its provider does not tell")]
    holder: Annotated[str | None, Spec("Who holds it, as far as its provider tells")]


class FoundBeside(Part, frozen=True, kw_only=True):
    """Work of others on the table"""

    dead_writers: Annotated[tuple[str, ...], Spec("Instants of dead writers")]
    writers: Annotated[tuple[str, ...], Spec("Instants that writers have in flight")]
    plans: Annotated[tuple[str, ...], Spec("Plans that are pending")]


class EstimatedCost(Part, frozen=True, kw_only=True):
    """What the work would cost"""

    bytes_read: Annotated[Count, Spec("Bytes to read")] = UNSET
    bytes_written: Annotated[Count, Spec("Bytes to write, at most")] = UNSET
    tasks: Annotated[Count, Spec("Tasks of Spark")] = UNSET
    requests: Annotated[Count, Spec("Requests to the storage")] = UNSET
    deletes: Annotated[Count, Spec("Files to delete")] = UNSET


class Work(NamedTuple):
    """The files that a job reads or deletes, on which its time depends: their size in bytes, and their number."""

    bytes: int = 0
    files: int = 0


NO_WORK = Work()


class KindResult(Part, frozen=True, kw_only=True):
    """The result of a job or of its dry run, with the members that every kind may have."""

    refusals: Annotated[Reasons, Spec("All reasons for which the job would be refused; only in a dry run")] = UNSET
    warnings: Annotated[Texts, Spec("Facts that the owner should check; only in a dry run")] = UNSET
    lock: Annotated[Maybe[LockFound], Spec("The table's lock; only in a dry run")] = UNSET
    beside: Annotated[Maybe[FoundBeside], Spec("Work of others on the table; only in a dry run")] = UNSET
    would_roll_back: Annotated[
        Texts, Spec("Instants of dead writers that the job would roll back; only in a dry run")
    ] = UNSET
    notes: Annotated[Texts, Spec("What the findings mean for the job, in sentences")] = UNSET
    estimated_cost: Annotated[Maybe[EstimatedCost], Spec("The estimated cost of the work; only in a dry run")] = UNSET
    audit: Annotated[
        Maybe[Examination], Spec("Result of the audit's checks that were made after the job had replaced file groups")
    ] = UNSET
    nothing_to_do: Annotated[Flag, Spec("Whether there was nothing to do")] = UNSET
    found_completed: Annotated[
        Maybe[SomeInstant], Spec("The completed instant of an earlier attempt, so that nothing was left to do")
    ] = UNSET
    seconds: Annotated[Number, Spec("Time that the attempt took")] = UNSET
    cpu_seconds: Annotated[
        Number, Spec("CPU time of the worker and its processes, shared equally by attempts that run at once")
    ] = UNSET
    lock_wait_seconds: Annotated[Number, Spec("Time for which it waited for the table's lock")] = UNSET
    clock: Annotated[Maybe[dict[str, Any]], Spec("What the timeline says about the clock of the table's writers")] = (
        UNSET
    )
    not_writable: Annotated[
        Problem | UnsetType | None,
        Spec("Why the worker cannot write to the table; null if it can, absent if it has not tried"),
    ] = UNSET

    @property
    def work(self) -> Work:
        """What the job has worked on, or would according to a dry run."""
        return Work(self._first("bytes_read", "bytes"), self._first("files_read", "files_deleted", "files"))

    def _first(self, *names: str) -> int:
        """Returns the first of these members that is set to a number, else 0."""
        found = (getattr(self, name, None) for name in names)
        return next((max(0, each) for each in found if isinstance(each, int)), 0)

    @property
    def leaves_work(self) -> bool | None:
        """Whether this job has left work for another job of its kind; None if this is not known. A job that has done
        nothing counts as leaving no work, because the next one could not do any either."""
        return None

    @property
    def has_gained(self) -> bool | None:
        """Whether the job has achieved anything of what its policy runs it for. None if this is unknown, or if a job of
        this kind has to run again in any case."""
        return None

    @property
    def seen_until(self) -> str | None:
        """The last completed instant that the job saw, if its result has it."""
        return None

    @property
    def input_bytes(self) -> object:
        """The bytes of the table's files that the job has read."""
        return UNSET

    @property
    def amounts(self) -> dict[str, object]:
        """The figures of a report to which the job contributes, by their names (`service.queue.attempt_figures`)."""
        return {}


class SlicesMerged(Part, frozen=True, kw_only=True):
    """Who merged file slices with logs"""

    arrow: Annotated[int, Spec("File slices with logs that Arrow merged, including repetitions")]
    hudi: Annotated[int, Spec("File slices with logs that Hudi's readers merged")]
    reasons: Annotated[tuple[Problem, ...], Spec("Why Hudi's readers merged some")]


class KeyProof(Part, frozen=True, kw_only=True):
    """The comparison of the record keys before and after"""

    rows_before: Annotated[int, Spec("Rows in the base files before the job")]
    key_digest_before: Annotated[str, Spec("Digest of the keys of these rows")]
    inserted: Annotated[int, Spec("Keys that only the logs have")]
    deleted: Annotated[int, Spec("Keys that the logs delete")]
    corrupt_log_blocks: Annotated[int, Spec("Corrupt log blocks that were skipped, as Hudi's readers do")]
    seconds: Annotated[float, Spec("Time of the comparison")]
    left_out: Annotated[tuple[str, ...], Spec("File groups that were not compared")]


class WriterOption(Part, frozen=True, kw_only=True):
    """An option of a writer"""

    name: Annotated[str, Spec("Its name", examples=("hoodie.metadata.record.index.enable",))]
    value: Annotated[str, Spec("Its value", examples=("true",))]


class FileGroupNumbers(Part, frozen=True, kw_only=True):
    """Numbers of file groups before and after a job"""

    before: Annotated[int, Spec("Before the job")]
    after: Annotated[int | None, Spec("After the job; null if not known")]


class ExaminedResult(KindResult, frozen=True, kw_only=True):
    """The result of a job that examines the table."""

    findings: Findings = ()
    checked: Checked = ()
    unchecked: Unchecked = ()


class PlansResult(KindResult, frozen=True, kw_only=True):
    """The result of a job that can execute given plans."""

    plans: Annotated[Texts, Spec("Plans that were executed")] = UNSET
    completed_before: Annotated[Texts, Spec("Plans that had completed before the job")] = UNSET
    gone: Annotated[Texts, Spec("Plans that do not exist any more")] = UNSET
    scheduled: Annotated[Flag, Spec("Always false, because a job with `plans` schedules none")] = UNSET


class ReplacementResult(KindResult, frozen=True, kw_only=True):
    """The result of a job that replaces file groups beside live writers."""

    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys: equal for equal sets of keys")] = UNSET
    file_groups: Annotated[Maybe[FileGroupNumbers], Spec("Number of file groups")] = UNSET
    files_read: Annotated[Count, Spec("Files that were read")] = UNSET
    files_written: Annotated[Count, Spec("Files that were written")] = UNSET
    files_copied: Annotated[Count, Spec("Files that were written by copying row groups, without decoding rows")] = UNSET
    merged: Annotated[Maybe[SlicesMerged], Spec("Who merged file slices with logs")] = UNSET
    engine: Annotated[
        Text,
        Spec("The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"),
    ] = UNSET
    engine_reasons: Annotated[Reasons, Spec("Why Hudi's readers would merge them; only in a dry run")] = UNSET
    bytes_read: Annotated[Count, Spec("Bytes that were read")] = UNSET
    bytes_written: Annotated[Count, Spec("Bytes that were written")] = UNSET
    rounds: Annotated[Count, Spec("Rounds in which changed slices were rewritten again")] = UNSET
    rewritten_again: Annotated[Count, Spec("Slices that were rewritten again")] = UNSET
    left_out: Annotated[Count, Spec("Slices that were left out because writers changed them")] = UNSET
    waited_seconds: Annotated[Number, Spec("Wait for a moment without writes in flight")] = UNSET
    locked_seconds: Annotated[Number, Spec("Time for which the table's lock was held")] = UNSET
    fenced: Annotated[Texts, Spec("Instants of writers that were rolled back")] = UNSET
    lock_lost: Annotated[Flag, Spec("Whether the lock was lost after the commit")] = UNSET
    repaired: Annotated[Texts, Spec("Stale writes that were repaired afterwards")] = UNSET

    @property
    def input_bytes(self) -> object:
        return self.bytes_read

    @property
    def amounts(self) -> dict[str, object]:
        names = {"files_before": self.files_read, "files_after": self.files_written}
        return {**names, "locked_seconds": self.locked_seconds}
