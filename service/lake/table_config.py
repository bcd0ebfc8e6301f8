"""A table's `hoodie.properties`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.format.properties import parse_properties
from service.lake.table import TableType
from service.model.errors import NotAHudiTableError, PathNotFoundError, TableUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.lake.storage import Storage

SUPPORTED_VERSIONS = (6, 8, 9)
META_FOLDER = ".hoodie"
_FILE = f"{META_FOLDER}/hoodie.properties"


@dataclass(frozen=True)
class TableConfig:
    """What Hudi's `HoodieTableConfig` (1.2) reads from a table, of a table that Groundskeeper serves."""

    properties: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.properties.get("hoodie.table.name", "")

    @property
    def table_type(self) -> TableType:
        return TableType(self.properties.get("hoodie.table.type", TableType.COPY_ON_WRITE).upper())

    @property
    def version(self) -> int:
        return int(self.properties["hoodie.table.version"])

    @property
    def timeline_layout(self) -> int:
        """1: completion times are not in the file names. 2: they are (table version 8 and later)."""
        default = "2" if self.version >= 8 else "1"
        return int(self.properties.get("hoodie.timeline.layout.version") or default)

    @property
    def timeline_path(self) -> str:
        """Relative to the base path."""
        if self.timeline_layout < 2:
            return META_FOLDER
        return f"{META_FOLDER}/{self.properties.get('hoodie.timeline.path') or 'timeline'}".rstrip("/")

    @property
    def history_path(self) -> str:
        """Where the LSM timeline lies, relative to the base path. Layout 2 only."""
        return f"{self.timeline_path}/{self.properties.get('hoodie.timeline.history.path') or 'history'}"

    @property
    def archive_path(self) -> str:
        """Where archived instants lie before table version 8, relative to the base path. Layout 1 only."""
        return f"{META_FOLDER}/{self.properties.get('hoodie.archivelog.folder') or 'archived'}"

    @property
    def base_file_format(self) -> str:
        return self.properties.get("hoodie.table.base.file.format", "PARQUET").upper()

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Without the types that a custom key generator adds to them (`dt:TIMESTAMP`)."""
        return tuple(field.partition(":")[0] for field in self.fields("hoodie.table.partition.fields"))

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return self.fields("hoodie.table.ordering.fields") or self.fields("hoodie.table.precombine.field")

    @property
    def key_generator(self) -> str | None:
        """The class, or its type from table version 8 on, such as `SIMPLE`."""
        properties = self.properties
        return properties.get("hoodie.table.keygenerator.class") or properties.get("hoodie.table.keygenerator.type")

    def fields(self, name: str) -> tuple[str, ...]:
        return tuple(field.strip() for field in self.properties.get(name, "").split(",") if field.strip())

    def flag(self, name: str, default: bool = False) -> bool:
        return self.properties.get(name, str(default)).lower() == "true"


def read_table_config(storage: Storage) -> TableConfig:
    """Raises PathNotFoundError, NotAHudiTableError, and TableUnsupportedError for kinds of tables not served."""
    try:
        content = storage.read(_FILE)
    except PathNotFoundError:
        if not storage.exists():
            raise PathNotFoundError(f"{storage.base_path} does not exist") from None
        raise NotAHudiTableError(f"{storage.base_path} has no readable {_FILE}") from None
    config = TableConfig(parse_properties(content))
    _check_supported(config)
    return config


def _check_supported(config: TableConfig) -> None:
    properties = config.properties
    version = properties.get("hoodie.table.version", "")
    if not version.isdecimal() or int(version) not in SUPPORTED_VERSIONS:
        raise TableUnsupportedError(f"its table version is {version or 'not stated'}")
    if properties.get("hoodie.table.type", TableType.COPY_ON_WRITE).upper() not in list(TableType):
        raise TableUnsupportedError(f"its type is {properties['hoodie.table.type']}")
    if not (properties.get("hoodie.timeline.layout.version") or "2").isdecimal():
        raise TableUnsupportedError("its timeline layout version is not a number")
    if config.base_file_format != "PARQUET" or config.flag("hoodie.table.multiple.base.file.formats.enable"):
        raise TableUnsupportedError(f"its base files are {config.base_file_format}, or of several formats")
    if properties.get("hoodie.table.format", "native") != "native":
        raise TableUnsupportedError(f"its table format is {properties['hoodie.table.format']}")
    if properties.get("hoodie.bootstrap.base.path"):
        raise TableUnsupportedError("it is bootstrapped from files that are not Hudi's")
