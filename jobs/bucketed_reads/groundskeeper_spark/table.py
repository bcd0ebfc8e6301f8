"""A Hudi table with a simple bucket index, as its reader declares it, and what its storage says about the buckets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import gcd
from typing import Any

_BASELINE = "00000000000000"


class NotColocatedError(Exception):
    """No proof exists that equal keys are in equal buckets; the text says why."""


@dataclass(frozen=True)
class Table:
    """Hudi stores neither the number of buckets nor the hash fields in a table, so the reader declares them.

    A hashing config of the table takes precedence over `buckets`. Each row that is read is checked against the
    declaration.
    """

    path: str
    hash_fields: tuple[str, ...]
    buckets: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """The last completed instant, the number of completed ones, and a number of buckets that divides the number of each
    partition. The number of completed instants also grows when a commit completes after a later instant. `is_declared`
    says that the number of buckets is the reader's, because the table has none."""

    instant: str
    commits: int
    modulus: int
    is_declared: bool


def snapshot(plan: Any, table: Table) -> Snapshot:
    """Asks `plan`, the object of `java_plan`. Raises `NotColocatedError` if the table's storage has no provable simple
    buckets."""
    found = json.loads(plan.snapshot(table.path))
    if found["is_consistent"]:
        raise NotColocatedError(f"{table.path} has a consistent hashing index, whose buckets are ranges")
    if "instant" not in found:
        raise NotColocatedError(f"{table.path} has no completed commit")
    for instant, is_committed in found["configs"]:
        if not is_committed and instant != _BASELINE:
            raise NotColocatedError(f"{table.path} has an uncommitted expansion, the instant {instant}")
    is_declared = "config" not in found
    numbers = ([table.buckets] if table.buckets else []) if is_declared else numbers_of_config(found["config"])
    if not numbers:
        raise NotColocatedError(f"the number of buckets of {table.path} is not known: declare it")
    if min(numbers) < 1:
        raise NotColocatedError(f"{table.path} has at least one bucket, not {min(numbers)}")
    return Snapshot(found["instant"], found["commits"], gcd(*numbers), is_declared)


def numbers_of_config(config: str) -> list[int]:
    """Returns all numbers of a `PartitionBucketIndexHashingConfig`. Each partition has one of these numbers."""
    try:
        found = json.loads(config)
        rules = [rule for rule in str(found["expressions"]).split(";") if rule]
        return [int(found["defaultBucketNumber"]), *(int(rule.rsplit(",", 1)[1]) for rule in rules)]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise NotColocatedError(f"the hashing config is damaged: {error}") from error


def bucket_of_file(path: str) -> int:
    """Returns the bucket that the name of a base file or log file begins with."""
    name = path.rsplit("/", 1)[-1]
    found = re.match(r"\.?(\d{8})-", name)
    if not found:
        raise NotColocatedError(f"the file {name} does not belong to a simple bucket")
    return int(found[1])


def java_hash(values: tuple[object, ...]) -> int:
    """Returns `Arrays.asList(values as texts).hashCode()` of Java without its sign, as `BucketIdentifier` takes it."""
    of_list = 1
    for value in values:
        code = 0
        units = ("" if value is None else str(value)).encode("utf-16-le", "surrogatepass")
        for at in range(0, len(units), 2):
            code = (31 * code + units[at] + (units[at + 1] << 8)) & 0xFFFFFFFF
        of_list = (31 * of_list + code) & 0xFFFFFFFF
    return of_list & 0x7FFFFFFF
