"""Schemas of the results of jobs by kind, as `jobs.services` makes them; a dry run has those of the plan.

Every member may be missing: some belong to dry runs, some to work that was done. Workers of other versions may report
more.
"""

from __future__ import annotations

from typing import Any, Final

from jobs.contract import JobKind

Schema = dict[str, Any]

_TYPES: Final[dict[str, Schema]] = {
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "text?": {"type": ["string", "null"]},
    "int?": {"type": ["integer", "null"]},
    "bool": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string"}},
}


def _object(members: dict[str, tuple[str | Schema, str]]) -> Schema:
    properties = {
        name: {**(_TYPES[kind] if isinstance(kind, str) else kind), "description": text}
        for name, (kind, text) in members.items()
    }
    return {"type": "object", "properties": properties}


def _list(members: dict[str, tuple[str | Schema, str]]) -> Schema:
    return {"type": "array", "items": _object(members)}


_REASON: Final[dict[str, tuple[str | Schema, str]]] = {
    "type": ("text", "Type of the problem"),
    "title": ("text", "What it is"),
    "detail": ("text", "This case"),
    "hint": ("text", "What to do"),
    "retriable": ("bool", "Whether it may pass by itself"),
}
_FINDING: Final[dict[str, tuple[str | Schema, str]]] = {
    "type": ("text", "Type of the damage"),
    "title": ("text", "What is damaged"),
    "detail": ("text", "Where"),
    "effect": ("text", "What it does to readers, writers or services"),
    "hint": ("text", "What to do"),
    "check": ("text", "The check that found it"),
    "cure": (
        {
            **_object({"kind": ("text", "Kind of the job"), "params": ({"type": "object"}, "Its parameters")}),
            "type": ["object", "null"],
        },
        "The job that cures it; null where none can",
    ),
}
_FIRST_AND_NOW = _object(
    {
        "before": ({"type": ["integer", "number", "string", "object", "null"]}, "Before the job"),
        "after": ({"type": ["integer", "number", "string", "object", "null"]}, "After it; null if not known"),
    }
)
_LEFT = _object(
    {
        "file_groups": ("int", "File groups that are left to the next job"),
        "partitions": ("int", "Partitions that are left to the next job"),
        "bytes": ("int", "Their size in bytes"),
        "plans": ("texts", "Plans that are left"),
    }
)
_PROOF = _object(
    {
        "rows_before": ("int", "Rows in the base files before"),
        "key_digest_before": ("text", "Digest of their keys"),
        "inserted": ("int", "Keys that only the logs have"),
        "deleted": ("int", "Keys that the logs delete"),
        "corrupt_log_blocks": ("int", "Blocks of logs that were skipped as Hudi does"),
        "seconds": ("number", "Time of the comparison"),
        "left_out": ("texts", "File groups that were not compared"),
    }
)
_SAVEPOINTS = _list(
    {
        "instant": ("text", "The commit whose files are kept"),
        "by": ("text?", "Who created it"),
        "comment": ("text?", "Why"),
        "files": ("int", "Number of files that are kept"),
    }
)
_MERGED = _object(
    {
        "arrow": ("int", "File slices with logs that Arrow merged, those that were done again included"),
        "hudi": ("int", "Those that Hudi's readers merged"),
        "reasons": (_list(_REASON), "Why Hudi's readers merged some"),
    }
)
_ENGINES = _list(
    {
        "instant": ("text", "The plan"),
        "engine": ("text", "Who executed it: arrow or hudi"),
        "reasons": (_list(_REASON), "Why it was Hudi's executor"),
    }
)
_PLANNED: Final[dict[str, tuple[str | Schema, str]]] = {
    "refusals": (_list(_REASON), "Every reason for which the job would be refused; only of a dry run"),
    "warnings": ("texts", "What to see to; only of a dry run"),
    "lock": (
        _object({"provider": ("text", "The lock's provider"), "reachable": ("bool", "Whether it can be reached")}),
        "The table's lock; only of a dry run",
    ),
    "estimated_cost": (
        _object(
            {
                "bytes_read": ("int", "Bytes to read"),
                "bytes_written": ("int", "Bytes to write, at most"),
                "tasks": ("int", "Tasks of Spark"),
                "requests": ("int", "Requests to the storage"),
            }
        ),
        "What the work would cost; only of a dry run",
    ),
    "found_completed": ("text", "The instant of an earlier attempt, which had completed: nothing was left to do"),
}
_SIZES: Final[dict[str, tuple[str | Schema, str]]] = {
    "files": ("int", "Number of files"),
    "bytes": ("int", "Their size in bytes"),
    "rows": ("int", "Number of rows"),
    "key_digest": ("text", "Digest of all record keys: equal for equal sets of keys"),
}
_GIVEN: Final[dict[str, tuple[str | Schema, str]]] = {
    "plans": ("texts", "Plans that were executed"),
    "completed_before": ("texts", "Plans that had completed before"),
    "gone": ("texts", "Plans that do not exist any more"),
    "scheduled": ("bool", "Always false: none is scheduled with `plans`"),
}
_REPLACED: Final[dict[str, tuple[str | Schema, str]]] = {
    **_SIZES,
    "file_groups": (_FIRST_AND_NOW, "Number of file groups"),
    "files_read": ("int", "Files that were read"),
    "files_written": ("int", "Files that were written"),
    "files_copied": ("int", "Those of them that were written by copying row groups, without decoding rows"),
    "merged": (_MERGED, "Who merged file slices with logs"),
    "engine": ("text", "Who would merge them, as far as is known before; only of a dry run"),
    "engine_reasons": (_list(_REASON), "Why it would be Hudi's readers; only of a dry run"),
    "bytes_read": ("int", "Bytes that were read"),
    "bytes_written": ("int", "Bytes that were written"),
    "rounds": ("int", "Rounds in which changed slices were done again"),
    "rewritten_again": ("int", "Slices that were done again"),
    "left_out": ("int", "Slices that were left out since writers changed them"),
    "waited_seconds": ("number", "Wait for a moment without writes in flight"),
    "locked_seconds": ("number", "Time for which the table's lock was held"),
    "fenced": ("texts", "Instants of writers that were rolled back"),
    "lock_lost": ("bool", "Whether the lock was lost after the commit"),
    "repaired": ("texts", "Stale writes that were repaired afterwards"),
}
_RESCALED: Final[dict[str, tuple[str | Schema, str]]] = {
    **_REPLACED,
    "buckets": ({"type": ["object", "string", "integer"]}, "Numbers of buckets before and after"),
    "partitions": ("int", "Partitions that were rewritten"),
    "rules": ({"type": ["string", "object"]}, "Rules of the hashing config; of a dry run before and after"),
}
_COMPACTED: Final[dict[str, tuple[str | Schema, str]]] = {
    **_SIZES,
    **_GIVEN,
    "file_groups": ("int", "File groups with logs"),
    "log_files": ("int", "Log files"),
    "log_bytes": ("int", "Their size in bytes"),
    "pending_plans": ("texts", "Plans that were pending"),
    "left": (_LEFT, "What is left to the next job"),
    "withheld_plans": (_list(_REASON), "Why plans of others were not executed"),
    "proof": (_PROOF, "The comparison of the rows before and after"),
    "engines": (_ENGINES, "Who executed each plan"),
    "engine": ("text", "Who would execute a plan, as far as is known before; only of a dry run"),
    "engine_reasons": (_list(_REASON), "Why it would be Hudi's executor; only of a dry run"),
}

_MEMBERS: Final[dict[JobKind, dict[str, tuple[str | Schema, str]]]] = {
    JobKind.COMPACTION: _COMPACTED,
    JobKind.CLEANING: {
        **_SIZES,
        **_GIVEN,
        "policy": ("text", "The policy that was applied"),
        "retain": ("int", "How much it retains, as asked for"),
        "retained": ("int", "How much it retains, with what else needs it"),
        "consumers": ({"type": "array"}, "Consumers for which more was kept"),
        "partitions": ("int", "Partitions with files to delete"),
        "dropped_partitions": ("texts", "Partitions that are deleted as a whole"),
        "paths": ("texts", "Files that would be deleted; 1000 at most"),
        "rolled_back": ("texts", "Instants of dead writers that were rolled back"),
        "late_files_deleted": ("int", "Files of fenced writers that were removed"),
        "files_deleted": ("int", "Files that were deleted"),
        "failed_deletes": ("int", "Files that could not be deleted"),
    },
    JobKind.CLUSTERING: {
        **_REPLACED,
        **_GIVEN,
        "inside_buckets": ("bool", "Whether rows were ordered inside each bucket"),
        "left": (_LEFT, "What is left to the next job"),
    },
    JobKind.BUCKET_EXPANSION: _RESCALED,
    JobKind.BUCKET_CONTRACTION: _RESCALED,
    JobKind.FINISH_EXPANSION: {
        "num_buckets": ("int?", "Number of buckets by the config; null without one"),
        "retired": ({"type": ["string", "boolean", "null", "array"]}, "The config that is retired"),
        "in_force": ("bool", "Whether a config is in force"),
    },
    JobKind.REPAIR: {
        "repaired": ("texts", "Stale writes whose rows were brought back"),
        "cleared": ("texts", "Suspected writes that had done no harm"),
        "rows": ("int", "Rows that were brought back"),
        "deletes": ("int", "Deletes that were done again"),
        "superseded": ("int", "Rows that were newer in the table"),
        "moved": ("int", "Rows that were moved to their buckets"),
        "stale": ("texts", "Stale writes that would be repaired; only of a dry run"),
        "suspects": ("texts", "Writes that would be checked; only of a dry run"),
        "file_groups": ("int", "File groups of these writes"),
        "late_files": ("int", "Files of fenced writers; with `leftovers`"),
        "markers": ("texts", "Instants whose markers are left behind; with `leftovers`"),
        "hashing_configs": ("texts", "Dangling hashing configs; with `leftovers`"),
    },
    JobKind.ARCHIVAL: {
        "retain": ("int", "Commits to keep at least"),
        "instants": ("int", "Instants on the active timeline"),
        "commits": ("int", "Commits among them"),
        "candidates": ({"type": ["array", "integer"]}, "Instants that can be archived"),
        "limits": ({"type": "array", "items": {"type": "object"}}, "What keeps more of them there"),
        "archived": ("int", "Instants that were archived"),
        "last_archived": ("text?", "The last of them"),
    },
    JobKind.PARTITION_TTL: {
        **_SIZES,
        "strategy": ("text", "How the age of a partition is determined"),
        "days_retain": ({"type": ["integer", "number"]}, "Age at which a partition expires, in days"),
        "partitions": (
            _list(
                {
                    "partition": ("text", "Its path"),
                    "since": ("text?", "The instant from which its age counts"),
                    "modified": ("text?", "The instant that wrote to it last"),
                    "file_groups": ("int", "File groups in it"),
                    "files": ("int", "Files in it"),
                    "rows": ("int?", "Rows in it"),
                    "bytes": ("int", "Their size in bytes"),
                }
            ),
            "Partitions that were, or would be, dropped",
        ),
        "withheld": (
            _list({"partition": ("text", "Its path"), **_REASON}),
            "Partitions that have expired and stay, with the reason",
        ),
        "left": (_LEFT, "What is left to the next job"),
        "kept_unchanged": ({"type": ["array", "integer"]}, "Partitions that were written to meanwhile"),
    },
    JobKind.SAVEPOINT: {
        "savepoint": ("text", "The savepoint that was created"),
        "deleted": ("text", "The savepoint that was deleted"),
        "savepoints": (_SAVEPOINTS, "All savepoints of the table"),
    },
    JobKind.RESTORE: {
        "savepoint": ("text", "The savepoint"),
        "rolled_back": ("texts", "Commits that are undone"),
        "writers_commits": ("int", "Those among them that brought rows"),
    },
    JobKind.ROLLBACK: {
        "instant": ("text", "The instant that is undone"),
        "action": ("text?", "Its action"),
        "state": ("text?", "Its state"),
        "operation": ("text?", "Its operation"),
        "file_groups": ("int?", "File groups that it wrote"),
    },
    JobKind.METADATA_TABLE: {
        "partitions": ("texts", "Partitions of the metadata table"),
        "findings": (_list(_FINDING), "Differences from the storage"),
    },
    JobKind.SYNC: {
        "metastore": ("text", "The metastore"),
        "changed": ("bool", "Whether there was anything to do"),
        "tables": (
            _list(
                {
                    "table": ("text", "Database and name"),
                    "created": ("bool", "Whether it was created"),
                    "columns_added": ("texts", "Columns that were added, with their types"),
                    "columns_changed": ("texts", "Columns that changed, with both types"),
                }
            ),
            "The tables in the metastore",
        ),
        "last_instant": ("text?", "The last instant that it knows"),
    },
    JobKind.AUDIT: {
        **_SIZES,
        "file_groups": ("int", "Number of file groups"),
        "partitions": ("int", "Number of partitions"),
        "misplaced": ("int", "Rows in a bucket that is not theirs"),
        "duplicates": ("int", "Rows whose key exists in another one, too"),
        "buckets_with_several_file_groups": ("int?", "Buckets with more than one file group"),
        "file_groups_without_bucket": ("int?", "File groups whose names have no bucket"),
        "dangling_hashing_configs": ("texts", "Hashing configs without a completed commit"),
        "stale_writes": ({"type": "array"}, "Commits whose rows no reader sees"),
        "pending_instants": ("texts", "Instants that have not completed"),
    },
    JobKind.DIAGNOSIS: {
        "findings": (_list(_FINDING), "Damages that were found"),
        "checked": ("texts", "Checks that were made"),
        "unchecked": (
            _list({"check": ("text", "The check"), "reason": (_object(_REASON), "Why it could not be made")}),
            "Checks that could not be made",
        ),
        "healthy": ("bool", "All checks were made, and none found anything"),
    },
}

RESULTS: Final = {kind: _object({**members, **_PLANNED}) for kind, members in _MEMBERS.items()}


INCIDENT_DETAILS: Final = _object(
    {
        "rows": ("int?", "Rows that are astray; null if not known"),
        "file_groups": ("int", "File groups that the commit wrote to"),
        "partitions": ({"type": ["integer", "array"]}, "Partitions that it wrote to"),
        "job_id": ("text", "The job that found it; of a damage"),
        **{name: _FINDING[name] for name in ("type", "title", "detail", "effect", "hint", "check", "cure")},
    }
)


def name_of(kind: JobKind) -> str:
    """Returns the name of the schema: `BucketExpansionResult`."""
    return "".join(part.capitalize() for part in kind.value.split("_")) + "Result"
