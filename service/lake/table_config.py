"""A table's `hoodie.properties`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from jobs.format.clock_frame import ClockFrame, Stamped, frame_of
from jobs.format.instants import EPOCH, moment
from jobs.format.properties import parse_properties
from jobs.format.table_version import WITH_COMPLETION_TIMES
from service.lake.storage import MAX_CONFIG_BYTES, Entry, Storage
from service.lake.table import TableType
from service.model.storage_errors import PathNotFoundError
from service.model.table_errors import NotAHudiTableError, TableUnsupportedError

SUPPORTED_VERSIONS = (6, 8, 9)
META_FOLDER = ".hoodie"
_FILE = f"{META_FOLDER}/hoodie.properties"
_BACKUP = f"{_FILE}.backup"
_MAX_NAME = 1024
# Parsed properties are kept, because polls read the same properties again and again.
_parsed = lru_cache(64)(parse_properties)


@dataclass(frozen=True)
class TableConfig:
    """The properties of a supported table, as Hudi's `HoodieTableConfig` (1.2) reads them. `frame` is the clock of the
    table's instants, if it was measured. `is_backup` says that the properties come from the copy that Hudi makes while
    it changes them."""

    properties: Mapping[str, str]
    frame: ClockFrame = field(default_factory=ClockFrame)
    is_backup: bool = False

    def in_frame_of(self, timeline: Iterable[Entry]) -> TableConfig:
        """Returns the config with the frame that the files of the active timeline show."""
        files = [
            Stamped(each.name, EPOCH + timedelta(0, 0, each.modified_us))
            for each in timeline
            if each.modified_us is not None
        ]
        ingestion = "deltacommit" if self.table_type is TableType.MERGE_ON_READ else "commit"
        return replace(self, frame=frame_of(files, version=self.version, ingestion=ingestion))

    def moment(self, instant: str) -> datetime | None:
        """Returns the time of an instant in UTC, by the measured clock; None for a text that is no time."""
        return moment(instant, self.properties, self.frame.offset)

    @property
    def name(self) -> str:
        return self.properties.get("hoodie.table.name", "")

    @property
    def table_type(self) -> TableType:
        return TableType(self.properties.get("hoodie.table.type", TableType.COPY_ON_WRITE).upper())

    @property
    def version(self) -> int:
        return int(self.properties["hoodie.table.version"])

    def profile(self, pending_instants: int) -> dict[str, Any]:
        """Returns the members of a `TableProfile` for which no data file has to be read."""
        return {
            "table_type": self.table_type,
            "table_version": self.version,
            "timeline_layout": self.timeline_layout,
            "timeline_path": self.timeline_path,
            "partition_fields": self.partition_fields,
            "record_key_fields": self.fields("hoodie.table.recordkey.fields"),
            "ordering_fields": self.ordering_fields,
            "key_generator": self.key_generator,
            "metadata_partitions": self.metadata_partitions,
            "base_file_format": self.base_file_format,
            "populates_meta_fields": self.flag("hoodie.populate.meta.fields", default=True),
            "drops_partition_columns": self.flag("hoodie.datasource.write.drop.partition.columns"),
            "hive_style_partitioning": self.flag("hoodie.datasource.write.hive_style_partitioning"),
            "url_encoded_partitions": self.flag("hoodie.datasource.write.partitionpath.urlencode"),
            "pending_instants": pending_instants,
        }

    @property
    def timeline_layout(self) -> int:
        """The layout of the timeline: 2 if the file names contain completion times (table version 8 and later), else
        1."""
        default = "2" if self.version >= WITH_COMPLETION_TIMES else "1"
        return int(self.properties.get("hoodie.timeline.layout.version") or default)

    @property
    def timeline_path(self) -> str:
        """The folder of the timeline, relative to the base path."""
        if self.timeline_layout < 2:
            return META_FOLDER
        return f"{META_FOLDER}/{self.properties.get('hoodie.timeline.path') or 'timeline'}".rstrip("/")

    @property
    def history_path(self) -> str:
        """The folder of the LSM timeline, relative to the base path. Layout 2 only."""
        return f"{self.timeline_path}/{self.properties.get('hoodie.timeline.history.path') or 'history'}"

    @property
    def archive_path(self) -> str:
        """The folder of archived instants before table version 8, relative to the base path. Layout 1 only."""
        return f"{META_FOLDER}/{self.properties.get('hoodie.archivelog.folder') or 'archived'}"

    @property
    def base_file_format(self) -> str:
        return self.properties.get("hoodie.table.base.file.format", "PARQUET").upper()

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition fields without the types that a custom key generator appends (`dt:TIMESTAMP`)."""
        return tuple(field.partition(":")[0] for field in self.fields("hoodie.table.partition.fields"))

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return self.fields("hoodie.table.ordering.fields") or self.fields("hoodie.table.precombine.field")

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        return self.fields("hoodie.table.metadata.partitions")

    @property
    def key_generator(self) -> str | None:
        """The class of the key generator. Since table version 8 it may be a type instead, such as `SIMPLE`."""
        properties = self.properties
        return properties.get("hoodie.table.keygenerator.class") or properties.get("hoodie.table.keygenerator.type")

    def fields(self, name: str) -> tuple[str, ...]:
        return tuple(field.strip() for field in self.properties.get(name, "").split(",") if field.strip())

    def flag(self, name: str, default: bool = False) -> bool:
        return self.properties.get(name, str(default)).lower() == "true"


def read_table_config(storage: Storage) -> TableConfig:
    """Reads the properties. If they are missing, reads their backup, as Hudi does. Raises PathNotFoundError,
    NotAHudiTableError, TableUnsupportedError."""
    content, is_backup = _read(storage)
    try:
        config = TableConfig(_parsed(content), is_backup=is_backup)
        _check_texts(config.properties)
    except ValueError as error:
        raise NotAHudiTableError(f"{storage.base_path}/{_FILE} is damaged: {error}") from error
    _check_supported(config)
    return config


def _read(storage: Storage) -> tuple[bytes, bool]:
    """Returns the bytes of the properties, and whether they are those of the backup."""
    # A writer that changes the properties first writes the file and then deletes the backup. So if neither was found,
    # the file may be there by now.
    for path in (_FILE, _BACKUP, _FILE):
        try:
            return storage.read(path, most=MAX_CONFIG_BYTES), path == _BACKUP
        except PathNotFoundError:
            if not storage.exists():
                raise PathNotFoundError(f"{storage.base_path} does not exist") from None
    raise NotAHudiTableError(f"{storage.base_path} has no readable {_FILE}")


def _check_texts(properties: Mapping[str, str]) -> None:
    """Raises ValueError for texts that the database cannot store. Escapes in the file can stand for any character."""
    for value in properties.values():
        value.encode()
        if "\0" in value:
            raise ValueError("it contains a NUL character")
    if len(properties.get("hoodie.table.name", "")) > _MAX_NAME:
        raise ValueError(f"the table's name has more than {_MAX_NAME} characters")


def _check_supported(config: TableConfig) -> None:
    properties = config.properties
    version = properties.get("hoodie.table.version", "")
    if not version.isdecimal() or int(version) not in SUPPORTED_VERSIONS:
        raise TableUnsupportedError(f"The table version is {version or 'not stated'}")
    if properties.get("hoodie.table.type", TableType.COPY_ON_WRITE).upper() not in list(TableType):
        raise TableUnsupportedError(f"The table type is {properties['hoodie.table.type']}")
    if not (properties.get("hoodie.timeline.layout.version") or "2").isdecimal():
        raise TableUnsupportedError("The timeline layout version is not a number")
    if config.base_file_format != "PARQUET" or config.flag("hoodie.table.multiple.base.file.formats.enable"):
        raise TableUnsupportedError(f"The base files have the format {config.base_file_format}, or several formats")
    if properties.get("hoodie.table.format", "native") != "native":
        raise TableUnsupportedError(f"The table format is {properties['hoodie.table.format']}")
    if properties.get("hoodie.bootstrap.base.path"):
        raise TableUnsupportedError("The table was bootstrapped from files that Hudi did not write")
