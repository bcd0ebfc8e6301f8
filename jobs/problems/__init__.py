"""The types of problems that jobs report, by subject. Each has the texts that users see; nothing else does."""

from jobs.problems import (
    arrow_merges,
    bucket_resizes,
    indexes,
    permissions,
    plans,
    rescales,
    syncs,
    tables,
    undoing,
    upgrades,
    worker_starts,
)

__all__ = [
    "arrow_merges",
    "bucket_resizes",
    "indexes",
    "permissions",
    "plans",
    "rescales",
    "syncs",
    "tables",
    "undoing",
    "upgrades",
    "worker_starts",
]
