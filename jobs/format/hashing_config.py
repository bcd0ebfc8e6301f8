"""Hashing configs: the files in which Hudi (1.1 and later) keeps the number of buckets of each partition.

`<folder>/<instant>.hashing_config` is the JSON of `PartitionBucketIndexHashingConfig` (1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from jobs.format.bucket_rules import BucketRules, BucketRulesError

FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
SUFFIX = ".hashing_config"
BASELINE = "00000000000000"
"""`HoodieTimeline.INIT_INSTANT_TS`: the instant of the config before any expansion."""


class DamagedConfigError(ValueError):
    """The file is not the JSON that Hudi writes."""


@dataclass(frozen=True)
class HashingConfig:
    """The rules of one instant, and their text."""

    instant: str
    expressions: str
    rules: BucketRules

    @classmethod
    def of(cls, instant: str, expressions: str, default_num_buckets: int, rule: str = "regex") -> HashingConfig:
        """Raises `BucketRulesError` for rules that Hudi refuses."""
        if rule.lower() != "regex":
            raise BucketRulesError(f"the hashing config {instant} has the rule {rule!r}")
        try:
            return cls(instant, expressions, BucketRules.parse(expressions, default_num_buckets))
        except BucketRulesError as error:
            raise BucketRulesError(f"the hashing config {instant}: {error}") from error

    @classmethod
    def from_json(cls, instant: str, content: bytes) -> HashingConfig:
        """Raises `DamagedConfigError`, or `BucketRulesError` for rules that Hudi refuses."""
        try:
            found = json.loads(content)
            expressions, default = str(found["expressions"]), int(found["defaultBucketNumber"])
            rule = str(found.get("rule", "regex"))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise DamagedConfigError(str(error)) from error
        return cls.of(instant, expressions, default, rule)

    @property
    def default_num_buckets(self) -> int:
        return self.rules.default

    def num_buckets_for(self, partition_path: str) -> int:
        return self.rules.buckets_of(partition_path)


def file_name(instant: str) -> str:
    return f"{instant}{SUFFIX}"
