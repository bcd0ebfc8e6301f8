"""Makes Hudi complete its instants on Azure at once, by a rename.

Hudi 1.2.0 creates the file of a completed instant under its final name and fills it afterwards. Only on `file`, `hdfs`
and `viewfs` it fills a temporary file and renames it (`HoodieStorage.needCreateTempFile`). On `abfss` creating,
appending and flushing are three requests. An empty replacecommit replaces nothing, so a reader finds the rows of both
the old and the new file groups in between; and if the driver is killed there, this is permanent.
"""

from __future__ import annotations

from jobs.hudi.jvm import Jvm

SCHEME = "abfss"


def complete_at_once(jvm: Jvm) -> None:
    """Replaces `viewfs`, which is not supported, by `abfss` in this JVM's list of schemes with temporary files.
    `StorageSchemes` (1.2.0) has `ABFSS` before `VIEWFS`, so the other properties of `abfss` do not change."""
    view = jvm.hudi.storage.StorageSchemes.VIEWFS
    if str(view.getScheme()) == SCHEME:
        return
    field = view.getDeclaringClass().getDeclaredField("scheme")
    field.setAccessible(True)
    field.set(view, SCHEME)
