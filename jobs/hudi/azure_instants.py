"""Makes Hudi complete its instants on Azure at once, by a rename.

Hudi 1.2.0 creates a completed instant under its own name and fills it afterwards, except on the schemes of which
`HoodieStorage.needCreateTempFile` knows that others would see the empty file: `file`, `hdfs` and `viewfs`. On `abfss`
creating, appending and flushing are three requests. An empty replacecommit replaces nothing, so whoever reads between
them finds the rows of the old and of the new file groups; and if the driver is killed there, this stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.hudi.jvm import Jvm

SCHEME = "abfss"


def complete_at_once(jvm: Jvm) -> None:
    """Adds `abfss` to the schemes with temporary files, for this JVM, in the place of `viewfs`, which is not supported.

    `StorageSchemes` (1.2.0) has `ABFSS` before `VIEWFS`, so whatever else Hudi asks of the scheme has the same answer.
    """
    view = jvm.hudi.storage.StorageSchemes.VIEWFS
    if str(view.getScheme()) == SCHEME:
        return
    field = view.getDeclaringClass().getDeclaredField("scheme")
    field.setAccessible(True)
    field.set(view, SCHEME)
