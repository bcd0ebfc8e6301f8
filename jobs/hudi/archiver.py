"""Hudi's archiver (`TimelineArchiverV1`, `V2`, 1.2.0): moves old instants from the active timeline to the history."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from jobs.errors import HudiError
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.client_part import ClientPart
from jobs.hudi.file_listing import listed
from jobs.hudi.jvm import Jvm, translated
from jobs.hudi.records import COMPLETED_AS, Instant
from jobs.hudi.table import HudiTable

_UNFINISHED = re.compile(r"manifest_\d+\..+", re.ASCII)
_STATES = ("REQUESTED", "INFLIGHT", "COMPLETED")
_OLD_SECONDS, _POLL_SECONDS = 30.0, 0.5  # a living archiver writes a few kilobytes, and renames the file


def keeping(commits: int) -> dict[str, str]:
    """Returns the options of a client whose archiver leaves this many completed commits on the timeline.

    The archiver does nothing unless there are more commits than `hoodie.keep.max.commits`. The archiver also keeps the
    commits that the *configured* cleaner would retain; our own limits use the cleans that the table really had.
    """
    return {
        "hoodie.keep.min.commits": str(commits),
        "hoodie.keep.max.commits": str(commits + 1),
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.commits.retained": "1",
        # Hudi would keep delta commits for the compaction schedule of writers, but the service counts them by itself.
        "hoodie.compact.inline.max.delta.commits": "1",
        # Hudi's default only logs an error of the archival, and deletes the instants nevertheless.
        "hoodie.archive.fail.on.error": "true",
    }


def remove_unfinished(table: HudiTable, checkpoint: Callable[[], None]) -> None:
    """Deletes the manifests of the history that dead archivers have not renamed yet (`HoodieStorage`,
    `createImmutableFileInPath`). While such a manifest is there, each archival of a job or a writer fails, because Hudi
    takes the rest of the name for a number (`LSMTimeline.getManifestVersion`, 1.2.0). A new manifest may belong to a
    living archiver, so the function waits until it is renamed, and calls `checkpoint` meanwhile."""
    if table.version < WITH_COMPLETION_TIMES:
        return
    folder = str(table.meta.getArchivePath().toString())
    while True:
        with translated("looking for unfinished manifests of the history"):
            found = {
                name: each for name, each in listed(table.jvm, table.storage, folder).items() if _UNFINISHED.match(name)
            }
            for name, each in list(found.items()):
                if (table.now() - table.moment(each.modified_ms)).total_seconds() >= _OLD_SECONDS:
                    table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(f"{folder}/{name}"))
                    del found[name]
        if not found:
            return
        checkpoint()
        time.sleep(_POLL_SECONDS)


class Archiver(ClientPart):
    """The archiver of a client, whose options say how many commits stay."""

    needs_client = False

    def candidates(self) -> list[str]:
        """Returns the requested times of the commits that `archive` would archive now. Writes nothing."""
        with translated("planning the archival"):
            archiver = self._open()
            # Hudi has no dry run of an archival.
            method = archiver.getClass().getDeclaredMethod("getCommitInstantsToArchive", self._empty_array("Class"))
            method.setAccessible(True)
            found = method.invoke(archiver, self._empty_array("Object"))
            # The result is a stream before table version 8. Python cannot see this from the object, because py4j
            # accepts any method name.
            stream = found if self._table.version < WITH_COMPLETION_TIMES else found.stream()
            return [str(item.requestedTime()) for item in self._jvm.items(stream)]

    def archive(self) -> None:
        """Archives; the lock must be held. The next archival completes an interrupted one."""
        with translated("archiving the timeline"):
            self._open().archiveIfRequired(self._jvm.engine_context, False)

    def move(self, instants: Collection[Instant]) -> None:
        """Moves completed instants, of any action, to the history of a table of version 8 or later; the lock must be
        held. Raises HudiError unless the history has them."""
        move(self._jvm, self._config, self._table.meta, {item.requested: item.action for item in instants})

    def cleaned_up_to(self) -> str | None:
        """Returns the earliest instant whose files the last clean kept; None if there was no clean."""
        with translated("reading the last clean"):
            timeline = self._table.meta.reloadActiveTimeline().getCleanerTimeline().filterCompletedInstants()
            last = timeline.lastInstant()
            if not last.isPresent():
                return None
            return str(timeline.readCleanMetadata(last.get()).getEarliestCommitToRetain() or "") or None

    def _open(self) -> Any:
        meta = self._table.meta
        meta.reloadActiveTimeline()
        context = self._jvm.engine_context
        table = self._jvm.hudi.table.HoodieSparkTable.create(self._config, context, meta)
        archivers = self._jvm.hudi.client.timeline.TimelineArchivers
        return archivers.getInstance(meta.getTimelineLayoutVersion(), self._config, table)

    def _empty_array(self, kind: str) -> Any:
        """Returns an empty Java array, for reflection."""
        gateway: Any = self._jvm.spark.sparkContext._gateway
        return gateway.new_array(getattr(self._jvm.java.java.lang, kind), 0)


def move(jvm: Jvm, config: Any, meta: Any, instants: Mapping[str, str]) -> None:
    """Does `Archiver.move` on the timeline of a `HoodieTableMetaClient`, also that of a metadata table. `instants` has
    the action of each instant by its requested time."""
    if not instants:
        return
    hudi = jvm.hudi
    with translated("archiving instants"):
        timeline = meta.getTableFormat().getTimelineFactory().createActiveTimeline(meta, False)
        found: dict[str, dict[str, Any]] = {}
        for each in jvm.items(timeline.getInstantsAsStream()):
            requested, action = str(each.requestedTime()), str(each.getAction())
            if instants.get(requested) == COMPLETED_AS.get(action, action):
                found.setdefault(requested, {})[str(each.getState().name())] = each
        groups = [[found[at][state] for state in _STATES if state in found[at]] for at in sorted(found)]
        table = hudi.table.HoodieSparkTable.create(config, jvm.engine_context, meta)
        writer = hudi.client.timeline.versioning.v2.LSMTimelineWriter.getInstance(config, table)
        none, kind = hudi.common.util.Option.empty(), hudi.common.table.timeline.ActiveAction
        writer.write(jvm.objects([kind.fromInstants(jvm.objects(each)) for each in groups]), none, none)
        # The writer only logs an error. Hudi would keep what it has read in the meta client.
        history = meta.getArchivedTimeline(min(instants), False)
        if missing := [at for at in instants if not history.containsInstant(at)]:
            raise HudiError(f"not in the history: {', '.join(missing)}")
        # A completed instant without its plan is harmless; a plan without it would be executed again.
        for group in groups:
            for each in group:
                timeline.deleteInstantFileIfExists(each)
