"""Schemas of the objects inside the results of jobs, each with a name of its own in the document."""

from __future__ import annotations

from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, UnsetType

from jobs.contract import Problem
from jobs.kinds.parameters import Spec
from jobs.kinds.results import WorkLeft

Schema = dict[str, Any]
Members = dict[str, tuple[str | Schema, str]]
"""The members of an object: a type, by name or as a schema, and a description each."""

_TYPES: Final[dict[str, Schema]] = {
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "instant": {"type": "string", "examples": ["20260101120000000"]},
    "instant?": {"type": ["string", "null"], "examples": ["20260101120000000"]},
    "text?": {"type": ["string", "null"]},
    "int?": {"type": ["integer", "null"]},
    "bool": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
    # Members that depend on something else than the result: the test of the document lists each with the reason.
    "object": {"type": "object"},
}

_OF_TYPES: Final[dict[Any, Schema]] = {
    int: _TYPES["int"],
    float: _TYPES["number"],
    str: _TYPES["text"],
    bool: _TYPES["bool"],
}

PARTS: Final[dict[str, Schema]] = {}
"""The named schemas, for the components of the document."""


def object_of(members: Members, description: str) -> Schema:
    properties = {
        name: {**(_TYPES[kind] if isinstance(kind, str) else kind), **({"description": text} if text else {})}
        for name, (kind, text) in members.items()
    }
    return {"type": "object", "description": description, "properties": properties}


def list_of(part: Schema) -> Schema:
    return {"type": "array", "items": part}


def _part(name: str, description: str, members: Members) -> Schema:
    """Returns a reference to the schema, which gets this name."""
    PARTS[name] = {"title": name, **object_of(members, description)}
    return {"$ref": f"#/components/schemas/{name}"}


def members_of(part: type[Struct]) -> Members:
    """Returns the members of a type of `jobs.kinds`."""
    return {name: (schema_of(hint), "") for name, hint in get_type_hints(part, include_extras=True).items()}


def schema_of(hint: Any) -> Schema:
    """Returns the schema of a type; of an object a reference to it. A member that may be unset may be missing."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _part(hint.__name__, cleandoc(hint.__doc__ or ""), members_of(hint))
    if hint is Problem:
        return REASON
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        specs = (each.bounds() for each in arguments[1:] if isinstance(each, Spec))
        return {**schema_of(arguments[0]), **{name: value for spec in specs for name, value in spec.items()}}
    if origin is tuple:
        return list_of(schema_of(arguments[0]))
    if origin in (Union, UnionType):
        (some,) = (each for each in arguments if each not in (NoneType, UnsetType))
        found = schema_of(some)
        return {**found, "type": [found["type"], "null"]} if NoneType in arguments else found
    return dict(_OF_TYPES[hint])


def _or_null(part: Schema) -> Schema:
    return {"anyOf": [part, {"type": "null"}]}


_REASON: Final[Members] = {
    "type": ("text", "Type of the problem"),
    "title": ("text", "What it is"),
    "detail": ("text", "This case"),
    "hint": ("text", "What to do"),
    "retriable": ("bool", "Whether it may pass by itself"),
}
REASON: Final = _part("ResultReason", "A reason against something, as a problem", _REASON)
WITHHELD_PLAN: Final = _part(
    "WithheldPlan", "A plan that was not executed, with the reason", {"instant": ("instant", "The plan"), **_REASON}
)
CURE: Final = _part(
    "Cure",
    "A job that cures a damage",
    {"kind": ({"type": "string", "examples": ["repair"]}, "Kind of the job"), "params": ("object", "Its parameters")},
)
OF_FINDING: Final[Members] = {
    "type": ("text", "Type of the damage"),
    "title": ("text", "What is damaged"),
    "detail": ("text", "Where"),
    "effect": ("text", "What it does to readers, writers or services"),
    "hint": ("text", "What to do"),
    "check": ("text", "The check that found it"),
    "cure": (_or_null(CURE), "The job that cures it; null where none can"),
}
FINDING: Final = _part("DamageFound", "A damage that was found", OF_FINDING)
UNCHECKED: Final = _part(
    "CheckNotMade",
    "A check that could not be made",
    {"check": ("text", "The check"), "reason": (REASON, "Why it could not be made")},
)
OF_EXAMINATION: Final[Members] = {
    "findings": (list_of(FINDING), "Damages that were found"),
    "checked": ("texts", "Checks that were made"),
    "unchecked": (list_of(UNCHECKED), "Checks that could not be made"),
}
EXAMINATION: Final = _part("Examination", "The checks of an audit that read no rows", OF_EXAMINATION)
READERS: Final = _part(
    "RowsOfReaders",
    "The rows of a partition by both kinds of readers",
    {
        "partition": ("text", "Partition path"),
        "rows_by_metadata_table": ("int", "Rows that readers with the metadata table find"),
        "rows_by_listing": ("int", "Rows that readers find who list the storage"),
        "same_keys": ("bool", "Whether both find the same keys"),
    },
)
FILE_GROUP_NUMBERS: Final = _part(
    "FileGroupNumbers",
    "Numbers of file groups before and after a job",
    {"before": ("int", "Before the job"), "after": ("int?", "After it; null if not known")},
)
RULES_CHANGE: Final = _part(
    "BucketRulesChange",
    "Rules of the hashing config before and after a job",
    {"before": ("text", "Before the job"), "after": ("text", "After it")},
)
LEFT: Final = schema_of(WorkLeft)
PROOF: Final = _part(
    "KeyProof",
    "The comparison of the record keys before and after",
    {
        "rows_before": ("int", "Rows in the base files before"),
        "key_digest_before": ("text", "Digest of their keys"),
        "inserted": ("int", "Keys that only the logs have"),
        "deleted": ("int", "Keys that the logs delete"),
        "corrupt_log_blocks": ("int", "Blocks of logs that were skipped as Hudi does"),
        "seconds": ("number", "Time of the comparison"),
        "left_out": ("texts", "File groups that were not compared"),
    },
)
MERGED: Final = _part(
    "SlicesMerged",
    "Who merged file slices with logs",
    {
        "arrow": ("int", "File slices with logs that Arrow merged, those that were done again included"),
        "hudi": ("int", "Those that Hudi's readers merged"),
        "reasons": (list_of(REASON), "Why Hudi's readers merged some"),
    },
)
ENGINE: Final = _part(
    "EngineOfPlan",
    "Who executed a plan",
    {
        "instant": ("instant", "The plan"),
        "engine": ({"type": "string", "examples": ["arrow"]}, "Who executed it: arrow or hudi"),
        "reasons": (list_of(REASON), "Why it was Hudi's executor"),
    },
)
CONSUMER: Final = _part(
    "ConsumerSeen",
    "A consumer of the table for which more is kept",
    {"name": ("text", "Its name"), "instant": ("instant", "The last commit that it has seen")},
)
STALE_WRITE: Final = _part(
    "StaleWrite",
    "A commit that wrote rows to replaced file groups",
    {
        "instant": ("instant", "The commit"),
        "operation": ("text?", "Hudi's WriteOperationType of that commit"),
        "file_groups": ("int", "Replaced file groups that it wrote to"),
        "doubt": (
            "text?",
            "Why nothing proves that it is one: `overwritten` by the owner's overwrite or deletion, `order` of"
            " completion not known, `clocks` that disagree",
        ),
    },
)
LOCK: Final = _part(
    "LockFound",
    "The table's lock as a dry run found it",
    {
        "provider": ("text", "The lock's provider"),
        "reachable": ("bool", "Whether it can be reached"),
        "held": ("bool", "Whether somebody holds it"),
        "holder": ("text?", "Who holds it, as far as its provider tells"),
    },
)
BESIDE: Final = _part(
    "FoundBeside",
    "Work of others on the table",
    {
        "dead_writers": ("texts", "Instants of dead writers"),
        "writers": ("texts", "Instants that writers have in flight"),
        "plans": ("texts", "Plans that are pending"),
    },
)
COST: Final = _part(
    "EstimatedCost",
    "What the work would cost",
    {
        "bytes_read": ("int", "Bytes to read"),
        "bytes_written": ("int", "Bytes to write, at most"),
        "tasks": ("int", "Tasks of Spark"),
        "requests": ("int", "Requests to the storage"),
        "deletes": ("int", "Files to delete"),
    },
)
INCIDENT_DETAILS: Final = _part(
    "IncidentDetails",
    "Figures of an incident; which of them it has depends on its kind",
    {
        "rows": ("int?", "Rows that are astray; null if not known"),
        "file_groups": ("int", "Replaced file groups that the commit wrote to"),
        "partitions": ("int", "Number of partitions that it wrote to"),
        "groups": (
            list_of(
                _part(
                    "GroupWrittenTo",
                    "A replaced file group that a stale write wrote to",
                    {
                        "partition": ("text", "Path of its partition"),
                        "file_id": ("text", "Its id"),
                        "replaced_by": ("instant", "The instant that had replaced it"),
                    },
                )
            ),
            "The first of these file groups",
        ),
        "doubt": ("text", "Why nothing proves that the commit came after the replacement; absent on proof"),
        "by_partition": (
            list_of(
                _part(
                    "SuspectedPartition",
                    "A partition that a writer with the old number of buckets may have written to",
                    {
                        "partition": ("text", "Its path"),
                        "rows": ("int", "Rows that the commit wrote there"),
                        "buckets": (
                            {"type": "array", "items": {"type": "integer"}},
                            "The numbers of buckets before and after the change",
                        ),
                        "since": ("instant", "The instant that changed the number"),
                    },
                )
            ),
            "The first of the partitions",
        ),
        "job_id": ("text", "The job that found it, or fenced the write"),
        "job_kind": ("text", "Kind of the job that fenced the write"),
        **OF_FINDING,
    },
)
