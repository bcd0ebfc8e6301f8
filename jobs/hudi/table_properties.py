"""The properties of a table (`hoodie.properties`), by the names of Hudi 1.2 and older ones."""

from __future__ import annotations

from abc import abstractmethod

from jobs.format.table_version import WITH_COMPLETION_TIMES


class TableProperties:
    """Typed access to one table's properties."""

    @property
    @abstractmethod
    def properties(self) -> dict[str, str]: ...

    @property
    def name(self) -> str:
        return self.properties["hoodie.table.name"]

    @property
    def version(self) -> int:
        return int(self.properties.get("hoodie.table.version", "0"))

    @property
    def has_logs_named_by_slice(self) -> bool:
        """Whether names of logs may have the instant of their file slice instead of their writer's: before table
        version 8, and in file slices that an upgrade has left uncompacted (`SevenToEightUpgradeHandler`, 1.2)."""
        initial = int(self.properties.get("hoodie.table.initial.version", self.version))
        return min(initial, self.version) < WITH_COMPLETION_TIMES

    @property
    def is_merge_on_read(self) -> bool:
        return self.properties.get("hoodie.table.type") == "MERGE_ON_READ"

    @property
    def has_meta_fields(self) -> bool:
        """Whether files store the key and partition path of each row. If not, Hudi computes them from the row's
        columns."""
        return self._is_set("hoodie.populate.meta.fields", "true")

    @property
    def names_partition_fields(self) -> bool:
        """Whether partition paths have the names of the fields, as Hive's (`dt=2026-01-01`)."""
        return self._is_set("hoodie.datasource.write.hive_style_partitioning")

    @property
    def records_changes(self) -> bool:
        """Whether writers record the changes of rows (CDC), in log files of their own."""
        return self._is_set("hoodie.table.cdc.enabled")

    @property
    def drops_partition_columns(self) -> bool:
        """Whether files lack the partition columns."""
        return self._is_set("hoodie.datasource.write.drop.partition.columns")

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        return tuple(self.properties.get("hoodie.table.recordkey.fields", "").split(","))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition fields, without the types that a custom key generator appends (`dt:TIMESTAMP`)."""
        fields = self.properties.get("hoodie.table.partition.fields", "").split(",")
        return tuple(name for field in fields if (name := field.partition(":")[0].strip()))

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The ordering fields; up to table version 6 called precombine field."""
        found = self.properties.get("hoodie.table.ordering.fields") or self.properties.get(
            "hoodie.table.precombine.field"
        )
        return tuple(filter(None, (found or "").split(",")))

    @property
    def orders_by_field(self) -> bool:
        """Whether a field, and not the time of their commits, orders the rows of one key."""
        mode = self.properties.get("hoodie.record.merge.mode", "").upper()
        payload = self.properties.get("hoodie.compaction.payload.class", "")
        if not self.ordering_fields or mode == "COMMIT_TIME_ORDERING":
            return False
        return not payload.endswith("OverwriteWithLatestAvroPayload")

    def _is_set(self, name: str, default: str = "false") -> bool:
        """Returns whether a property is true, in upper or lower case, as Hudi reads it (`Boolean.parseBoolean`)."""
        return self.properties.get(name, default).lower() == "true"
