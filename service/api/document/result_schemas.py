"""Schemas of the results of jobs by kind, as `jobs.services` makes them; a dry run has those of the plan.

Every member may be missing: some belong to dry runs, some to work that was done. Workers of other versions may report
more.
"""

from __future__ import annotations

from typing import Final

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from service.api.document import result_parts as parts
from service.api.document.result_parts import Members, list_of, members_of, object_of

_PLANNED: Final[Members] = {
    "refusals": (list_of(parts.REASON), "Every reason for which the job would be refused; only of a dry run"),
    "warnings": ("texts", "What to see to; only of a dry run"),
    "lock": (parts.LOCK, "The table's lock; only of a dry run"),
    "beside": (parts.BESIDE, "Work of others on the table; only of a dry run"),
    "would_roll_back": ("texts", "Instants of dead writers that the job would roll back; only of a dry run"),
    "notes": ("texts", "What of it matters to the job, in sentences; only of a dry run"),
    "estimated_cost": (parts.COST, "What the work would cost; only of a dry run"),
    "audit": (parts.EXAMINATION, "What the checks of an audit found after it had replaced file groups"),
    "nothing_to_do": ("bool", "Whether there is, or was, nothing to do"),
    "found_completed": ("instant", "The instant of an earlier attempt, which had completed: nothing was left to do"),
}
_EXAMINED: Final[Members] = parts.OF_EXAMINATION
_SIZES: Final[Members] = {
    "files": ("int", "Number of files"),
    "bytes": ("int", "Their size in bytes"),
    "rows": ("int", "Number of rows"),
    "key_digest": ("text", "Digest of all record keys: equal for equal sets of keys"),
}
_GIVEN: Final[Members] = {
    "plans": ("texts", "Plans that were executed"),
    "completed_before": ("texts", "Plans that had completed before"),
    "gone": ("texts", "Plans that do not exist any more"),
    "scheduled": ("bool", "Always false: none is scheduled with `plans`"),
}
_REPLACED: Final[Members] = {
    **_SIZES,
    "file_groups": (parts.FILE_GROUP_NUMBERS, "Number of file groups"),
    "files_read": ("int", "Files that were read"),
    "files_written": ("int", "Files that were written"),
    "files_copied": ("int", "Those of them that were written by copying row groups, without decoding rows"),
    "merged": (parts.MERGED, "Who merged file slices with logs"),
    "engine": ("text", "Who would merge them, as far as is known before; only of a dry run"),
    "engine_reasons": (list_of(parts.REASON), "Why it would be Hudi's readers; only of a dry run"),
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
_RESCALED: Final[Members] = {
    **_REPLACED,
    "buckets": (
        {"type": "array", "items": {"type": "integer"}},
        "Numbers of buckets before and after, of the partition with the most",
    ),
    "partitions": ("int", "Partitions that were rewritten"),
    "rules": (
        {"anyOf": [{"type": "string"}, parts.RULES_CHANGE]},
        "Rules of the hashing config; of a dry run before and after",
    ),
}
_COMPACTED: Final[Members] = {
    **_SIZES,
    **_GIVEN,
    "file_groups": ("int", "File groups with logs"),
    "log_files": ("int", "Log files"),
    "log_bytes": ("int", "Their size in bytes"),
    "pending_plans": ("texts", "Plans that were pending"),
    "left": (parts.LEFT, "What is left to the next job"),
    "withheld_plans": (list_of(parts.WITHHELD_PLAN), "Why plans of others were not executed"),
    "proof": (parts.PROOF, "The comparison of the rows before and after"),
    "engines": (list_of(parts.ENGINE), "Who executed each plan"),
    "engine": ("text", "Who would execute a plan, as far as is known before; only of a dry run"),
    "engine_reasons": (list_of(parts.REASON), "Why it would be Hudi's executor; only of a dry run"),
}

_MEMBERS: Final[dict[JobKind, Members]] = {
    JobKind.COMPACTION: _COMPACTED,
    JobKind.CLEANING: {
        **_SIZES,
        **_GIVEN,
        "policy": ("text", "The policy that was applied"),
        "retain": ("int", "How much it retains, as asked for"),
        "retained": ("int", "How much it retains, with what else needs it"),
        "consumers": (list_of(parts.CONSUMER), "Consumers for which more was kept"),
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
        "left": (parts.LEFT, "What is left to the next job"),
        "proof": (parts.PROOF, "The comparison of the rows before and after"),
    },
    JobKind.BUCKET_EXPANSION: _RESCALED,
    JobKind.BUCKET_CONTRACTION: _RESCALED,
    JobKind.REPAIR: {
        "repaired": ("texts", "Stale writes whose rows were brought back"),
        "cleared": ("texts", "Suspected writes that had done no harm"),
        "left": ("texts", "Stale writes that nothing proves and nobody named, so they were left alone"),
        "waived": ("texts", "Such writes that are settled now, since `accepted` names them"),
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
    JobKind.METADATA_TABLE: {
        "partitions": ("texts", "Partitions of the metadata table"),
        "findings": (list_of(parts.FINDING), "Differences from the storage"),
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
        "stale_writes": (list_of(parts.STALE_WRITE), "Commits whose rows no reader sees"),
        "keys_hidden_by_statistics": ("int", "Probed keys that a query with a filter does not find"),
        **_EXAMINED,
        "readers": (list_of(parts.READERS), "Partitions whose files differ by the metadata table and by listing"),
        "clean": ("bool", "Whether nothing of this is wrong, and all checks were made"),
        "pending_instants": ("texts", "Instants that have not completed"),
    },
    JobKind.DIAGNOSIS: {
        **_EXAMINED,
        "healthy": ("bool", "All checks were made, and none found anything"),
    },
}

_TYPED: Final = {kind: members_of(declared.result) for kind, declared in KINDS.items() if declared.result}
RESULTS: Final = {
    kind: object_of({**members, **_PLANNED}, f"The result of a job of kind `{kind.value}`")
    for kind, members in ((each, _TYPED.get(each) or _MEMBERS[each]) for each in JobKind)
}


def name_of(kind: JobKind) -> str:
    """Returns the name of the schema: `BucketExpansionResult`."""
    return f"{KINDS[kind].type_name}Result"
