"""A Hudi table as the JVM has opened it: its properties, its schema and the instants on its timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from jobs import contract
from jobs.errors import CommitLostError, FileMissingError, HudiError, TableUpgradedError
from jobs.format.meta_columns import OPERATION
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import azure_instants
from jobs.hudi.boundaries import check_folders
from jobs.hudi.file_listing import ListedFile, listed
from jobs.hudi.jvm import Jvm, reread, translated
from jobs.hudi.kerberos import require_tokens_of_executors
from jobs.hudi.own_account import require_own_account
from jobs.hudi.records import Instant, Touched, touched_of
from jobs.hudi.table_properties import TableProperties
from jobs.table_errors import TableGoneError

T = TypeVar("T")

_LOG_OF_HISTORY = ".commits_.archive."


class OpenedTable(TableProperties):
    """One table, for the modules that `HudiTable` imports: the clock, the listing of slices, the indexes. The timeline
    is always current, the rest as of the last `reload()`. `path` is the base path and `timeline_path` the path of the
    timeline, as Hudi spells them; `storage` is Hudi's storage of both. `ignores_metadata_table`: partitions, files and
    rows are found by listing the storage, because the metadata table is damaged. `may_merge` is the member of the job's
    kind with this name (`jobs.kinds.kind`)."""

    def __init__(self, jvm: Jvm, table: contract.Table) -> None:
        self.jvm = jvm
        self.declared = table
        self.base_path = table.base_path
        self.ignores_metadata_table = False
        self.may_merge = True
        self._known_version: int | None = None
        self._properties: dict[str, str] = {}
        self.storage: Any = None
        self._resolver: Any = None
        self._resolver_of = ""  # The instants that had completed when the resolver was made.
        self._schemas: dict[bool, str] = {}  # The schemas without and with the meta fields.
        self._seen: dict[tuple[str, ...], Any] | None = None
        require_own_account(jvm, self.base_path)
        require_tokens_of_executors(jvm, self.base_path)
        self.reload()

    @property
    def hash_fields_not_in_key(self) -> list[str]:
        """The declared hash fields that are not fields of the record key: somebody has made the table anew with another
        key."""
        index = self.declared.index
        return sorted(({*index.hash_fields} if index else set()) - {"", *self.record_key_fields})

    @contextmanager
    def unchanged(self, *, reload: bool = True) -> Iterator[None]:
        """Takes the table as unchanged until the end of the context or the next `reload`: timeline and folders are read
        once. `reload` is False if the table has just been opened. The context is for callers that only look, and that
        look again before they trust what they have seen."""
        before, self._seen = self._seen, {}
        try:
            if reload:
                self.reload()
            yield
        finally:
            self._seen = before

    @property
    def is_taken_as_unchanged(self) -> bool:
        return self._seen is not None

    def once(self, read: Callable[[], T], *name: str) -> T:
        """Returns what `read` returns; in the context of `unchanged` what it returned first under this name."""
        if self._seen is None:
            return read()
        if name not in self._seen:
            self._seen[name] = read()
        found: T = self._seen[name]
        return found

    def reload(self) -> None:
        self._seen = None if self._seen is None else {}
        try:
            with translated("opening the table"):
                if self.base_path.startswith(f"{azure_instants.SCHEME}:"):
                    azure_instants.complete_at_once(self.jvm)
                self.meta = self.jvm.reads.opened(self.base_path, self.jvm.storage_conf())
                # A storage has no state of the table, so the first one is used again.
                self.storage = self.meta.getStorage() if self.storage is None else self.storage
                described: dict[str, Any] = json.loads(self.jvm.reads.described(self.meta))
        except HudiError as error:
            if type(error) is not HudiError or self._has_properties():
                raise
            raise TableGoneError(error.detail) from error
        # Writers may have changed properties.
        properties = {key: str(value) for key, value in described["properties"].items()}
        if properties != self._properties:
            self._resolver = None
        self._properties = properties
        self._metadata_partitions = frozenset(described["metadata partitions"])
        self.path: str = described["path"]
        self.timeline_path: str = described["timeline"]
        self._require_known_version()
        check_folders(self.base_path, described["folders"])

    def reopen(self) -> None:
        """Reloads a table whose version this job has changed."""
        self._known_version = None
        self.reload()

    def _require_known_version(self) -> None:
        """Raises TableUpgradedError if the version has changed since the last reload, because the timeline is elsewhere
        then."""
        known, self._known_version = self._known_version, self.version
        if known not in (None, self.version):
            raise TableUpgradedError(f"table version {known} became {self.version}")

    def lost(self, detail: str) -> CommitLostError:
        """Returns the error for an instant that others have changed. Raises TableUpgradedError if an upgrade is the
        reason."""
        self.reload()
        return CommitLostError(detail)

    def _has_properties(self) -> bool:
        """Returns whether the table has a file of properties, or its backup."""
        with translated("looking for hoodie.properties"):
            path = self.jvm.hudi.storage.StoragePath
            storage = self.jvm.hudi.storage.HoodieStorageUtils.getStorage(path(self.base_path), self.jvm.storage_conf())
            names = ("hoodie.properties", "hoodie.properties.backup")
            return any(storage.exists(path(f"{self.base_path.rstrip('/')}/.hoodie/{name}")) for name in names)

    @property
    def scheme(self) -> str:
        """The scheme of the storage, such as `s3a`, also if the base path has none. Hudi wraps Hadoop's file systems
        in its own, with schemes such as `hoodie-s3a`."""
        return str(self.storage.getScheme()).removeprefix("hoodie-")

    @property
    def properties(self) -> dict[str, str]:
        return self._properties

    @property
    def metadata_partitions(self) -> frozenset[str]:
        """The metadata partitions as of the last reload; writers may add some at any time."""
        return self._metadata_partitions

    @property
    def is_listed_by_metadata(self) -> bool:
        """Whether partitions and files are read from the metadata table, not by listing."""
        return "files" in self.metadata_partitions and not self.ignores_metadata_table

    def schema(self, *, with_meta_fields: bool = False) -> str:
        """Returns the table's latest schema as Avro JSON, with or without Hudi's meta fields."""
        resolver = self.schema_resolver()
        if with_meta_fields not in self._schemas:
            with translated("reading the table's schema"):
                self._schemas[with_meta_fields] = str(resolver.getTableSchema(with_meta_fields).toString())
        return self._schemas[with_meta_fields]

    @property
    def records_operations(self) -> bool:
        """Whether files have the change that made each row (`_hoodie_operation`), as Flink writes them with
        `changelog.enabled`. Hudi looks at the newest file only (`TableSchemaResolver.hasOperationField`)."""
        return OPERATION in self.schema(with_meta_fields=True)

    def schema_resolver(self) -> Any:
        """Returns Hudi's `TableSchemaResolver` for the instants that have completed. Hudi finds the schema in the
        properties or in the completed commits, and may read most of these; a resolver reads each once."""
        with translated("reading the table's schema"):
            completed = str(self.jvm.reads.completed(self.meta))
            if self._resolver is None or completed != self._resolver_of:
                self._resolver = self.jvm.hudi.common.table.TableSchemaResolver(self.meta)
                self._resolver_of, self._schemas = completed, {}
            return self._resolver

    # -- timeline

    def instants(self) -> list[Instant]:
        return [
            Instant(item["requestedTime"], item["action"], item["state"], item.get("completionTime") or "")
            for item in self._timeline()
        ]

    def timeline_files(self) -> dict[str, ListedFile]:
        """Returns the files of the active timeline by their names."""
        with translated("listing the timeline"):
            return self.once(lambda: listed(self.jvm, self.storage, self.timeline_path), "timeline files")

    def state_of(self, requested: str) -> str | None:
        """Returns REQUESTED, INFLIGHT or COMPLETED; None when the active timeline no longer has the instant."""
        return next((instant.state for instant in self.instants() if instant.requested == requested), None)

    def archived(self) -> frozenset[tuple[str, str]]:
        """Returns requested time and action of all completed instants that have left the active timeline."""
        with translated("reading the archived timeline"):
            found = json.loads(self.jvm.reads.archived(self.meta))
        completed = (item for item in found["instants"] if item["state"] == "COMPLETED")
        return frozenset((item["requestedTime"], item["action"]) for item in completed)

    def was_archived(self, requested: str) -> bool:
        """Returns whether the instant completed so long ago that it has left the active timeline."""
        with translated("reading the archived timeline"):
            return bool(self.meta.getArchivedTimeline(requested).containsInstant(requested))

    def archived_writes_after(self, requested: str) -> set[str]:
        """Returns the requested times of the completed writes of the history that are later than this one. Hudi
        reads only files that have such instants, from table version 8 on."""
        with translated("reading the archived timeline"):
            # Hudi would keep what it has read in the meta client.
            found = self.meta.getArchivedTimeline(requested, False).findInstantsAfter(requested)
            completed = found.getCommitsTimeline().filterCompletedInstants()
            return {str(item.requestedTime()) for item in self.jvm.items(completed.getInstantsAsStream())}

    def damage_of_history(self) -> str:
        """Returns which log of the history ends in the midst of a block; "" if none does. Only tables before version 8
        have such logs, and Hudi skips such a block. An archival that failed has left it, or the file is damaged."""
        if self.version >= WITH_COMPLETION_TIMES:
            return ""
        with translated("reading the archived timeline"):
            log, path_of = self.jvm.hudi.common.table.log.HoodieLogFormat, self.jvm.hudi.common.model.HoodieLogFile
            for entry in self.jvm.items(self.storage.listDirectEntries(self.meta.getArchivePath()).stream()):
                if not str(entry.getPath().getName()).startswith(_LOG_OF_HISTORY):
                    continue
                reader = log.newReader(self.storage, path_of(entry.getPath()), None)
                try:
                    while reader.hasNext():
                        if str(reader.next().getBlockType().name()) == "CORRUPT_BLOCK":
                            return f"{entry.getPath().getName()} has a block that is cut off"
                finally:
                    reader.close()
        return ""

    @reread
    def touched(self, requested: str) -> Touched | None:
        """Returns the targets of a write by its inflight or completed instant; None if the instant is gone."""
        with translated(f"reading {requested}", expected=FileMissingError):
            timeline = self.meta.reloadActiveTimeline()
            items = self.jvm.items(timeline.getInstantsAsStream())
            found = [item for item in items if item.requestedTime() == requested]
            return touched_of(self.jvm.read(timeline.readCommitMetadata(found[0]))) if found else None

    def _timeline(self) -> list[dict[str, str]]:
        """Returns the current active timeline, each instant as an `InstantDTO`."""
        with translated("reading the timeline"):
            found = self.once(lambda: json.loads(self.jvm.reads.timeline(self.meta)), "timeline")
        return list(found["instants"])
