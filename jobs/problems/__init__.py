"""The types of problems that jobs report, by subject. Each has the texts that users see; nothing else does."""

from jobs.problems import (
    arrow_merges,
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
