"""Hudi's own change of a table's version (`UpgradeDowngrade`, 1.2.0), and a rehearsal that shows how the properties
would change."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.errors import HudiError
from jobs.format.properties import parse_properties
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import file_listing
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated

_PARTITIONS, _CHECKSUM = "hoodie.table.metadata.partitions", "hoodie.table.checksum"
# Indexes that table version 6 has (`EightToSevenDowngradeHandler`, 1.2.0).
_OF_VERSION_6 = frozenset({"files", "column_stats", "bloom_filters", "record_index"})
_WITH_INDEX_VERSIONS = 9
# A schema in the history of schema on read, from version 8 on.
_SCHEMA = re.compile(r"(?P<instant>\d{14,17})_\d+\.schemacommit")
_INFLIGHT = ".replacecommit.inflight"
_ARCHIVE, _ARCHIVED = "hoodie.archivelog.folder", "archived"
_PAYLOAD = "hoodie.compaction.payload.class"
# The properties that Hudi 1.2.0 writes into a new table of version 6, by merge mode.
_PAYLOADS = {
    "EVENT_TIME_ORDERING": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "COMMIT_TIME_ORDERING": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
}


class Upgrader(ClientPart):
    """Changes the version of one table."""

    needs_client = False

    def run(self, to_version: int) -> None:
        """Changes the version. The lock must be held. Nothing may be pending and no file slice may have logs, so that
        Hudi's upgrader changes nothing outside of `.hoodie`."""
        with translated(f"changing the table version to {to_version}"):
            self._change(self._table.meta, self._config_for(to_version, {}), to_version)

    def rehearse(self, to_version: int) -> dict[str, tuple[str | None, str | None]]:
        """Returns the properties that would change, each with its value before and after. The method changes
        the version of an empty table with these properties on the driver's disk."""
        properties = {k: v for k, v in self._table.properties.items() if k not in (_PARTITIONS, _CHECKSUM)}
        with tempfile.TemporaryDirectory(prefix="groundskeeper-upgrade-") as folder:
            written = Path(folder) / ".hoodie" / "hoodie.properties"
            (written.parent / "timeline" / "history").mkdir(parents=True)
            (written.parent / "archived").mkdir()
            with translated("rehearsing the change of the table version"):
                self._store(f"file:{folder}", properties)
                stored = parse_properties(written.read_bytes())
                builder = self._jvm.hudi.common.table.HoodieTableMetaClient.builder()
                meta = builder.setBasePath(f"file:{folder}").setConf(self._jvm.storage_conf()).build()
                options = {"hoodie.base.path": f"file:{folder}", "hoodie.metadata.enable": "false"}
                self._change(meta, self._config_for(to_version, options), to_version)
            found = parse_properties(written.read_bytes())
        # Hudi leaves properties out of a new table whose version does not know them, such as the path of the index
        # definitions before version 8. The table itself may have them, and keeps them.
        names = {name for name in stored.keys() | found.keys() if stored.get(name) != found.get(name)} - {_CHECKSUM}
        before_and_after = {name: (properties.get(name), found.get(name)) for name in sorted(names)}
        return {name: values for name, values in before_and_after.items() if values[0] != values[1]}

    def indexes_lost(self, to_version: int, stored: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Returns the partitions of the metadata table that Hudi drops with the change. `stored` has the definitions of
        indexes (`UpgradeDowngradeUtils.dropNonV1IndexPartitions`, `EightToSevenDowngradeHandler`)."""
        if to_version >= self._table.version:
            return []
        have = self._table.metadata_partitions
        lost = set()
        if to_version < _WITH_INDEX_VERSIONS <= self._table.version:
            lost = {name for name in have if (stored.get(name, {}).get("version") or "V1") != "V1"}
            if "column_stats" in lost:
                lost |= have & {"partition_stats"}
        if to_version not in (8, 9):
            lost |= have - _OF_VERSION_6
        return sorted(lost)

    def has_ambiguous_keys(self) -> bool:
        """Returns whether the table has a complex key generator with one field, whose keys depend on the version of
        Hudi that wrote them."""
        keys = self._jvm.hudi.keygen.KeyGenUtils
        with translated("reading the key generator"):
            return bool(keys.isComplexKeyGeneratorWithSingleRecordKeyField(self._table.meta.getTableConfig()))

    def _store(self, base_path: str, properties: Mapping[str, str]) -> None:
        """Writes the properties as Hudi writes them, with their checksum."""
        made = self._jvm.java.java.util.Properties()
        made.putAll(self._jvm.map(properties))
        path = self._jvm.hudi.storage.StoragePath(f"{base_path}/.hoodie")
        storage = self._jvm.hudi.storage.HoodieStorageUtils.getStorage(path, self._jvm.storage_conf())
        self._jvm.hudi.common.table.HoodieTableConfig.create(storage, path, made)

    def _config_for(self, to_version: int, options: Mapping[str, str]) -> Any:
        chosen = {"hoodie.write.table.version": str(to_version), "hoodie.write.auto.upgrade": "true", **options}
        builder = self._jvm.hudi.config.HoodieWriteConfig.newBuilder().withProps(self._config.getProps())
        return builder.withProps(self._jvm.map(chosen)).build()

    def _change(self, meta: Any, config: Any, to_version: int) -> None:
        hudi = self._jvm.hudi
        helper = hudi.table.upgrade.SparkUpgradeDowngradeHelper.getInstance()
        change = hudi.table.upgrade.UpgradeDowngrade(meta, config, self._jvm.engine_context, helper)
        change.run(hudi.common.table.HoodieTableVersion.fromVersionCode(to_version), None)
        if lacking := self._lacking(to_version):
            properties = self._jvm.java.java.util.Properties()
            properties.putAll(self._jvm.map(lacking))
            hudi.common.table.HoodieTableConfig.update(meta.getStorage(), meta.getMetaPath(), properties)
        if to_version < WITH_COMPLETION_TIMES:
            self._rename_schemas(meta)
            self._empty_inflights(meta)

    def _rename_schemas(self, meta: Any) -> None:
        """Takes the completion times out of the names of the stored schemas (schema on read), as before version 8.
        Hudi's change leaves them there, and its older versions then do not find the schemas: they read no values in
        renamed columns (`FileBasedInternalSchemaStorageManager`, 0.15)."""
        folder, path = meta.getSchemaFolderName(), self._jvm.hudi.storage.StoragePath
        for name in file_listing.listed(self._jvm, meta.getStorage(), folder):
            if found := _SCHEMA.fullmatch(name):
                renamed = path(f"{folder}/{found['instant']}.schemacommit")
                if not meta.getStorage().rename(path(f"{folder}/{name}"), renamed):
                    raise HudiError(f"{name} could not be renamed")

    def _empty_inflights(self, meta: Any) -> None:
        """Empties the inflight files of completed replacements, which Hudi's change leaves in Avro. An archival of Hudi
        0.15 reads them as JSON and fails at each attempt; an empty one is what a clustering of 0.15 leaves."""
        folder, path = meta.getMetaPath().toString(), self._jvm.hudi.storage.StoragePath
        for name, each in file_listing.listed(self._jvm, meta.getStorage(), folder).items():
            if name.endswith(_INFLIGHT) and each.bytes:
                meta.getStorage().create(path(f"{folder}/{name}"), True).close()

    def _lacking(self, to_version: int) -> dict[str, str]:
        """Returns properties that Hudi before 1.0 needs and that Hudi's upgrader leaves out. Without the payload class
        of a table that was made in version 9, Hudi 0.15 cannot read logs. The upgrader writes the archived instants to
        the folder `archived`, but the properties of a table that was made in version 8 or 9 name another folder."""
        properties = self._table.properties
        if to_version >= WITH_COMPLETION_TIMES or self._table.version < WITH_COMPLETION_TIMES:
            return {}
        lacking = {} if properties.get(_ARCHIVE, _ARCHIVED) == _ARCHIVED else {_ARCHIVE: _ARCHIVED}
        payload = _PAYLOADS.get(properties.get("hoodie.record.merge.mode", ""))
        if payload and _PAYLOAD not in properties and "hoodie.table.legacy.payload.class" not in properties:
            lacking[_PAYLOAD] = payload
        if fields := self._table.ordering_fields:
            lacking["hoodie.table.precombine.field"] = ",".join(fields)
        return lacking
