"""The hashing configs of a table: which one is in force, and which have no commit."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.format.bucket_rules import BucketRulesError
from jobs.format.hashing_config import BASELINE, FOLDER, SUFFIX, DamagedConfigError, HashingConfig, file_name
from service.lake.history import is_archived, is_forgotten
from service.lake.storage import MAX_CONFIG_BYTES, Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline
from service.model.storage_errors import FileDamagedError
from service.model.table_errors import TableUnsupportedError

_MAX_CONFIGS = 10_000


@dataclass(frozen=True)
class HashingConfigs:
    """The config in force, if there is one; the instants of dangling configs, which have no commit; and the instants of
    the earlier configs."""

    in_force: HashingConfig | None = None
    dangling: tuple[str, ...] = ()
    unusable: bool = False
    earlier: tuple[str, ...] = ()


def read_hashing_configs(storage: Storage, config: TableConfig, timeline: Timeline) -> HashingConfigs:
    """Finds the latest config whose instant has completed.

    Hudi's `getHashingConfigToLoad` (1.2) is less strict: a config counts as committed unless its instant is a pending
    replacecommit. So Hudi's writers follow a config that a rollback has left behind, although no rows were moved to its
    buckets. Here such a config is dangling, and never in force. `unusable` says that the folder exists, but has no
    config that Hudi would load, so that every Hudi client fails on the table.
    """
    if not storage.exists(FOLDER):
        return HashingConfigs()
    listed = storage.list(FOLDER, most=_MAX_CONFIGS)
    instants = sorted(entry.name.removesuffix(SUFFIX) for entry in listed if entry.name.endswith(SUFFIX))
    rescaling = {i.requested_time for i in timeline.pending() if i.action == "replacecommit"}
    committed: list[str] = []
    dangling: list[str] = []
    for instant in instants:
        if instant in rescaling:
            continue
        stands = instant == BASELINE or timeline.completed(instant) or is_archived(storage, config, timeline, instant)
        # If the history does not reach back to the commit of a config, nobody can look up this commit. Writers follow
        # such a config, and the files have its buckets.
        stands = stands or is_forgotten(storage, config, timeline, instant)
        (committed if stands else dangling).append(instant)
    in_force = read_hashing_config(storage, committed[-1]) if committed else None
    return HashingConfigs(
        in_force, tuple(dangling), unusable=not committed and not dangling, earlier=tuple(committed[:-1])
    )


def read_hashing_config(storage: Storage, instant: str) -> HashingConfig:
    """Raises StorageError for a damaged file, TableUnsupportedError for rules that Hudi refuses."""
    path = f"{FOLDER}/{file_name(instant)}"
    try:
        return HashingConfig.from_json(instant, storage.read(path, most=MAX_CONFIG_BYTES))
    except DamagedConfigError as error:
        raise FileDamagedError(f"{storage.base_path}/{path} is damaged: {error}") from error
    except BucketRulesError as error:
        raise TableUnsupportedError(str(error)) from error
