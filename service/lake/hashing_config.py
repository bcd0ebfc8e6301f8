"""The partition-level number of buckets: `.hoodie/.bucket_index/partition_bucket_index_meta/configs`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.lake.history import is_archived
from service.model.errors import StorageError, TableUnsupportedError

if TYPE_CHECKING:
    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline

FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_SUFFIX = ".hashing_config"
_BASELINE = "00000000000000"  # `HoodieTimeline.INIT_INSTANT_TS`: in force before any rescale
_DEFAULT = -1  # the rule engine's "no rule matched", so a rule of -1 means the default number
_JAVA_INT = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class HashingConfig:
    """Hudi's `PartitionBucketIndexHashingConfig` with its `RegexRuleEngine` (1.2)."""

    instant: str
    expressions: str
    default_num_buckets: int
    _rules: tuple[tuple[re.Pattern[str], int], ...] = field(repr=False, compare=False)

    @classmethod
    def of(cls, instant: str, expressions: str, default_num_buckets: int, rule: str = "regex") -> HashingConfig:
        """`expressions` are `<regex>,<buckets>;<regex>,<buckets>;...`; the first regex found in a path wins.

        Raises TableUnsupportedError for a rule that Hudi refuses too, or a Java regex that Python does not know.
        """
        if rule.lower() != "regex":
            raise TableUnsupportedError(f"the hashing config {instant} has the rule {rule!r}")
        rules = tuple(_rule(expression, instant) for expression in _java_split(expressions, ";"))
        if default_num_buckets < 1 or any(number < 1 and number != _DEFAULT for _, number in rules):
            raise TableUnsupportedError(f"the hashing config {instant} gives a partition less than one bucket")
        return cls(instant, expressions, default_num_buckets, rules)

    def num_buckets_for(self, partition_path: str) -> int:
        for pattern, num_buckets in self._rules:
            if pattern.search(partition_path):
                return num_buckets if num_buckets != _DEFAULT else self.default_num_buckets
        return self.default_num_buckets


@dataclass(frozen=True)
class HashingConfigs:
    """The config in force, if any, the instants of those that no commit stands behind, and of those before it."""

    in_force: HashingConfig | None = None
    dangling: tuple[str, ...] = ()
    unusable: bool = False
    earlier: tuple[str, ...] = ()


def read_hashing_configs(storage: Storage, config: TableConfig, timeline: Timeline) -> HashingConfigs:
    """The latest config whose instant has completed, as Hudi's `getHashingConfigToLoad` finds it (1.2), but stricter.

    Hudi takes each config for committed whose instant is not a pending replacecommit. So one left behind by a rollback
    counts for its writers, though no data was ever rescaled to it: those are dangling here, and never in force.
    `unusable`: the folder is there without a committed config, and every Hudi client fails on the table.
    """
    if not storage.exists(FOLDER):
        return HashingConfigs()
    instants = sorted(e.name.removesuffix(_SUFFIX) for e in storage.list(FOLDER) if e.name.endswith(_SUFFIX))
    rescaling = {i.requested_time for i in timeline.pending() if i.action == "replacecommit"}
    committed: list[str] = []
    dangling: list[str] = []
    for instant in instants:
        if instant in rescaling:
            continue
        stands = instant == _BASELINE or timeline.completed(instant) or is_archived(storage, config, timeline, instant)
        (committed if stands else dangling).append(instant)
    in_force = read_hashing_config(storage, committed[-1]) if committed else None
    return HashingConfigs(
        in_force, tuple(dangling), unusable=not committed and not dangling, earlier=tuple(committed[:-1])
    )


def read_hashing_config(storage: Storage, instant: str) -> HashingConfig:
    path = f"{FOLDER}/{instant}{_SUFFIX}"
    try:
        content = json.loads(storage.read(path))
        expressions, default = str(content["expressions"]), int(content["defaultBucketNumber"])
        rule = str(content.get("rule", "regex"))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{storage.base_path}/{path} is damaged: {error}") from error
    return HashingConfig.of(instant, expressions, default, rule)


def _rule(expression: str, instant: str) -> tuple[re.Pattern[str], int]:
    parts = _java_split(expression.strip(), ",")
    if len(parts) != 2 or not _JAVA_INT.fullmatch(parts[1].strip()):
        raise TableUnsupportedError(f"the hashing config {instant} has the rule {expression!r}, not `regex,buckets`")
    try:
        return re.compile(parts[0].strip(), re.ASCII), int(parts[1])  # Java's \d and \w are ASCII
    except re.error as error:
        raise TableUnsupportedError(f"the regex {parts[0]!r} of the hashing config {instant}: {error}") from error


def _java_split(text: str, separator: str) -> list[str]:
    """As Java's `String.split`: empty strings at the end are dropped, unless there is nothing else."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts
