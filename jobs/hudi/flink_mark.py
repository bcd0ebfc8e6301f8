"""The marks that Flink leaves on a table."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.hudi.file_listing import listed
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.records import Commit

_CHECKPOINT, _STARTED = "flink_checkpoint_id", "view_storage_conf"


def flink_mark(table: OpenedTable, commits: Iterable[Commit]) -> str | None:
    """Returns a sentence for users about the mark that Flink has left on this table; None if there is none. Flink's
    commits contain `flink_checkpoint_id` if `write.extra.metadata.enabled` is set. A starting job writes a file with
    the address of its timeline server (`ViewStorageProperties`), which remains after the job's end."""
    named = [commit.write.instant for commit in commits if _CHECKPOINT in commit.extra]
    if named:
        return f"{named[-1]} was committed by Flink (its metadata has a checkpoint id)"
    with translated("reading the marks of Flink"):
        marks = sorted(listed(table.jvm, table.storage, f"{table.base_path}/.hoodie/.aux"))
    found = next((name for name in marks if name.startswith(_STARTED)), None)
    return f"a Flink job has been started on it (.hoodie/.aux/{found})" if found else None
