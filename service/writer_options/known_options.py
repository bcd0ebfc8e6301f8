"""The options that each version of Hudi knows, and their names there. A writer ignores unknown options."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.format.hudi_versions import release

LATEST = "1.2.0"

# The first version that knows each option, and the option's older name, if there is one. The facts come from the
# classes of the bundles 0.15.0, 1.0.2, 1.1.1 and 1.2.0 (`tests/integration/test_options_of_bundles.py`), and for
# Flink's options from `FlinkOptions` of 1.2.0.
_SINCE: Mapping[str, tuple[tuple[int, int], str | None]] = {
    "hoodie.bucket.index.query.pruning": ((1, 0), None),
    "hoodie.clean.async.enabled": ((1, 0), "hoodie.clean.async"),
    # A writer without this option cleans eagerly, and so rolls back every other inflight instant.
    "hoodie.clean.failed.writes.policy": ((1, 0), "hoodie.cleaner.policy.failed.writes"),
    "hoodie.metadata.index.partition.stats.enable": ((1, 0), None),
    "hoodie.metadata.record.level.index.enable": ((1, 1), None),
    "hoodie.metadata.streaming.write.enabled": ((1, 1), None),
    "hoodie.metadata.table.service.manager.enabled": ((1, 2), None),
    "hoodie.table.ordering.fields": ((1, 1), None),
    "hoodie.write.auto.upgrade": ((1, 0), None),
    "hoodie.write.table.version": ((1, 0), None),
    "ordering.fields": ((1, 1), "precombine.field"),
}


def known(options: Mapping[str, str], version: str) -> dict[str, str]:
    """Returns the options that this version of Hudi knows, under the names that it uses."""
    spelled = {name_in(name, version): value for name, value in options.items()}
    return {name: value for name, value in spelled.items() if name is not None}


def name_in(option: str, version: str) -> str | None:
    """Returns the name of an option in this version of Hudi; None if this version does not know the option."""
    since, before = _SINCE.get(option, ((0, 0), None))
    return option if release(version) >= since else before


def table_version_of(version: str) -> int:
    """Returns the version of the tables that this version of Hudi creates (`HoodieTableVersion.current`)."""
    return next((created for since, created in (((1, 1), 9), ((1, 0), 8)) if release(version) >= since), 6)
