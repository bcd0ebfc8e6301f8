"""Hashing configs: the files in which Hudi (1.1 and later) keeps the number of buckets of each partition.
`.hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config` is valid if no replacecommit of
that instant is pending (`PartitionBucketIndexHashingConfig.getCommittedHashingConfigInstants`). So a config of an
instant that is neither completed nor archived is valid for Hudi too, and must be removed."""

from __future__ import annotations

import json
from typing import Any

from jobs.errors import HudiError, RefusedError
from jobs.format.bucket_rules import BucketRules, BucketRulesError
from jobs.format.hashing_config import BASELINE, file_name
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.small_file import read_object
from jobs.problems.rescales import BUCKET_RULES_UNSUPPORTED

# Prefix of the name of a folder with retired configs; the instant of the last config follows.
_RETIRED = "retired-"


def rules_of(table: OpenedTable) -> BucketRules | None:
    """Returns the current rules, or None for a table without a simple bucket index."""
    with translated("reading the hashing config"):
        latest = table.jvm.hashing.latest(table.meta)
    if latest is None:
        index = table.declared.index
        return BucketRules.uniform(index.num_buckets) if index else None
    return _parsed(json.loads(latest))


def last_change(table: OpenedTable) -> str | None:
    """Returns the instant of the last change of the number of buckets; None if there was none."""
    with translated("reading the hashing config"):
        latest = table.jvm.hashing.latest(table.meta)
    instant = str(json.loads(latest)["instant"]) if latest is not None else BASELINE
    return None if instant == BASELINE else instant


def rules_before(table: OpenedTable, instant: str) -> tuple[BucketRules, ...]:
    """Returns the rules of all configs before that of `instant`, the latest first. The first rules are those that the
    config of `instant` has replaced."""
    with translated("reading the hashing configs"):
        found = json.loads(table.jvm.hashing.before(table.meta, instant))
    return tuple(map(_parsed, found))


def _parsed(config: dict[str, Any]) -> BucketRules:
    try:
        return BucketRules.parse(config["expressions"], config["defaultBucketNumber"])
    except BucketRulesError as error:
        reason = BUCKET_RULES_UNSUPPORTED.because(str(error))
        raise RefusedError([reason]) from error


def write(table: OpenedTable, current: BucketRules, new: BucketRules, instant: str) -> None:
    """Writes the config of `instant`; for the table's first config also the baseline before it. The table's lock must
    be held. Without the baseline the folder would have no committed config, and every reader and writer would fail
    until the instant completes. A temporary file in the folder, such as Hudi's own `saveHashingConfig` makes, would
    also make them fail. So the config is written elsewhere and moved there."""
    with translated("writing the hashing config"):
        paths = table.jvm.hudi.storage.StoragePath
        folder, unfinished = paths(table.meta.getHashingMetadataConfigPath()), _unfinished(table, instant)
        if not _has_configs(table):
            baseline = paths(unfinished, "baseline")
            _create(table, paths(baseline, file_name(BASELINE)), current, BASELINE)
            _move(table, baseline, folder)
        _create(table, paths(unfinished, file_name(instant)), new, instant)
        _move(table, paths(unfinished, file_name(instant)), paths(folder, file_name(instant)))
        table.storage.deleteDirectory(unfinished)


def _create(table: OpenedTable, path: Any, rules: BucketRules, instant: str) -> None:
    """Writes `PartitionBucketIndexHashingConfig` as JSON, as its `saveHashingConfig` does."""
    configs = _configs(table)
    config = configs(str(rules), rules.default, "regex", configs.CURRENT_VERSION, instant)
    table.jvm.reads.write(table.storage, path.toString(), config.toJsonString())


def _move(table: OpenedTable, source: Any, target: Any) -> None:
    if not table.storage.rename(source, target):
        raise HudiError(f"could not move {source.getName()} to {target}")


def _unfinished(table: OpenedTable, instant: str) -> Any:
    """Returns a path outside of the marker folder: Hudi's rollback ignores all markers if another file is among
    them."""
    paths = table.jvm.hudi.storage.StoragePath
    return paths(paths(table.meta.getHashingMetadataConfigPath()).getParent(), f".unfinished-{instant}")


def remove(table: OpenedTable, instant: str) -> None:
    """Removes the config of an instant that was rolled back, even if it is unfinished. Does nothing if there is
    none."""
    with translated("removing a hashing config"):
        path = _configs(table).getHashingConfigPath(table.path, instant)
        storage = table.storage
        if storage.exists(path):
            storage.deleteFile(path)
        if storage.exists(_unfinished(table, instant)):
            storage.deleteDirectory(_unfinished(table, instant))


def is_in_force(table: OpenedTable) -> bool:
    with translated("looking for a hashing config"):
        return _has_configs(table)


def retired(table: OpenedTable) -> list[str]:
    """Returns the folders of retired configs, the last one at the end."""
    with translated("looking for retired hashing configs"):
        folder, storage = _index_folder(table), table.storage
        if not storage.exists(folder):
            return []
        names = [str(item.getPath().getName()) for item in table.jvm.items(storage.listDirectEntries(folder).stream())]
        return sorted(name for name in names if name.startswith(_RETIRED))


def rules_of_retired(table: OpenedTable) -> BucketRules | None:
    """Returns the rules of the config that was retired last; None if there is none, or if it is damaged."""
    if not (folders := retired(table)):
        return None
    config = file_name(folders[-1].removeprefix(_RETIRED))
    path = f"{_index_folder(table)}/{folders[-1]}/configs/{config}"
    found = read_object(table.jvm, table.storage, path, "a retired hashing config")
    return _parsed(found) if found else None


def retire(table: OpenedTable) -> None:
    """Retires the configs by one rename. The table's lock must be held."""
    with translated("retiring the hashing config"):
        paths = table.jvm.hudi.storage.StoragePath
        latest = _configs(table).loadingLatestHashingConfig(table.meta).getInstant()
        configs = paths(table.meta.getHashingMetadataConfigPath()).getParent()
        _move(table, configs, paths(_index_folder(table), f"{_RETIRED}{latest}"))


def restore(table: OpenedTable) -> None:
    """Restores the configs that were retired last. The table's lock must be held."""
    last = retired(table)[-1]
    with translated("putting the hashing config in force again"):
        paths = table.jvm.hudi.storage.StoragePath
        configs = paths(table.meta.getHashingMetadataConfigPath()).getParent()
        _move(table, paths(_index_folder(table), last), configs)


def _index_folder(table: OpenedTable) -> Any:
    """Returns `.hoodie/.bucket_index`."""
    paths = table.jvm.hudi.storage.StoragePath
    return paths(table.meta.getHashingMetadataConfigPath()).getParent().getParent()


def committed(table: OpenedTable) -> list[str]:
    """Returns the instants of the configs that are valid for Hudi, without the baseline."""
    with translated("listing the hashing configs"):
        if not _has_configs(table):
            return []
        found = table.jvm.read(_configs(table).getCommittedHashingConfigInstants(table.meta))
        return [instant for instant in found if instant != BASELINE]


def _has_configs(table: OpenedTable) -> bool:
    return table.once(lambda: bool(table.jvm.hashing.exist(table.meta)), "hashing configs")


def _configs(table: OpenedTable) -> Any:
    return table.jvm.hudi.common.model.PartitionBucketIndexHashingConfig
