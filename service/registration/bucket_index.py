"""Verifies or detects the simple bucket index of a table and its number of buckets. Hudi does not record these in the
table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

from jobs.contract import BucketIndex
from jobs.format.bucket_hash import RecordKeyError, hash_codes
from jobs.format.file_names import is_fixed
from jobs.format.hashing_config import HashingConfig
from service.lake.file_slices import FileSlice
from service.lake.table import BucketIndexKind, BucketLayout
from service.model.table_errors import BucketIndexContradictedError
from service.registration.key_sample import KeySample

if TYPE_CHECKING:
    from numpy.typing import NDArray


CONSISTENT_HASHING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"

# If no index is claimed, this many different hash codes must agree with one number of buckets. A table with two buckets
# passes by chance in one of 2^32 cases.
ENOUGH_KEYS = 32
# If a record key has more fields, only all fields together are tried, because each field doubles the number of choices.
MOST_FIELDS = 5
# The limit is far above any table's number of buckets. A random file id that looks like that of a bucket most likely
# has a greater number.
MOST_BUCKETS = 1_000_000


@dataclass(frozen=True)
class Evidence:
    """The data of a table that shows its bucket index."""

    slices: Sequence[FileSlice]
    samples: Sequence[KeySample]
    record_key_fields: tuple[str, ...]
    hashing_config: HashingConfig | None = None
    has_consistent_hashing: bool = False


@dataclass(frozen=True)
class Finding:
    """The result. `index` is None if there is no simple bucket index, or if the keys do not prove it; `warnings` then
    say why."""

    layout: BucketLayout
    index: BucketIndex | None = None
    warnings: tuple[str, ...] = field(default=())


def verify(claimed: BucketIndex, evidence: Evidence) -> Finding:
    """Returns the claim if nothing in the table contradicts it.

    If there is a hashing config, its numbers are checked instead of the claimed number, because the number in the
    writers' options is then expected to be out of date. Raises BucketIndexContradictedError with the members `checked`,
    `mismatched`, `claimed` and, if exactly one number fits the keys, `suggested_num_buckets`.
    """
    layout = _layout(evidence)
    if claimed.num_buckets < 1:
        raise _contradicted(claimed, len(evidence.slices), len(evidence.slices), "a table has at least one bucket")
    if layout.kind is BucketIndexKind.CONSISTENT_HASHING:
        raise _contradicted(
            claimed, len(evidence.slices), len(evidence.slices), "the table has a consistent-hashing bucket index"
        )
    unknown_fields = [
        f for f in claimed.hash_fields if evidence.record_key_fields and f not in evidence.record_key_fields
    ]
    if unknown_fields:
        reason = f"hash fields are not among the record key fields ({', '.join(evidence.record_key_fields)})"
        raise _contradicted(claimed, len(claimed.hash_fields), len(unknown_fields), reason)
    outside = [s for s in evidence.slices if s.bucket is None]
    if outside:
        raise _contradicted(claimed, len(evidence.slices), len(outside), "file groups have file ids without a bucket")
    repeated = _repeated(evidence.slices)
    if repeated:
        raise _contradicted(claimed, len(evidence.slices), repeated, "file groups share their bucket with another one")

    def num_buckets(partition_path: str) -> int:
        config = evidence.hashing_config
        return config.num_buckets_for(partition_path) if config else claimed.num_buckets

    checked, mismatched = _check(evidence.samples, claimed.hash_fields, num_buckets)
    if mismatched:
        suggested = None if evidence.hashing_config else _suggestion(evidence, claimed.hash_fields)
        raise _contradicted(claimed, checked, mismatched, "sampled record keys lie in another bucket", suggested)
    too_high = [s for s in evidence.slices if s.bucket is not None and s.bucket >= num_buckets(s.partition_path)]
    if too_high:
        suggested = None if evidence.hashing_config else _suggestion(evidence, claimed.hash_fields)
        reason = "file groups belong to buckets beyond the last one"
        raise _contradicted(claimed, len(evidence.slices), len(too_high), reason, suggested)
    warnings = () if checked else ("The claimed bucket index is not verified: no base file contains record keys yet.",)
    kind = BucketIndexKind.SIMPLE if evidence.slices else BucketIndexKind.UNKNOWN
    return Finding(replace(layout, kind=kind, keys_checked=checked), claimed, warnings)


def detect(evidence: Evidence) -> Finding:
    """Returns the simple bucket index that the keys prove. The hash fields may be all record key fields, which is
    Hudi's default, or some of them. If several choices of fields fit the sampled keys, none is proved."""
    layout = _layout(evidence)
    if layout.kind is not BucketIndexKind.SIMPLE:
        return Finding(layout)
    every = evidence.record_key_fields
    smallest = 1 if len(every) <= MOST_FIELDS else len(every)
    choices = chain.from_iterable(combinations(every, number) for number in range(len(every), smallest - 1, -1))
    fitting = [fields for fields in choices if _may_be(fields, evidence)]
    if len(fitting) > 1:
        named = "; ".join(", ".join(fields) for fields in fitting)
        return _unproven(layout, f"several choices of hash fields fit the sampled keys ({named})")
    return _detect(layout, evidence, fitting[0] if fitting else every)


def _may_be(fields: tuple[str, ...], evidence: Evidence) -> bool:
    """Returns whether there are enough keys, and whether they fit at least one number of buckets: each key must lie in
    the bucket that its hash by these fields gives."""
    codes = _codes(evidence.samples, fields)
    if codes is None or not _are_enough(codes):
        return False
    if (config := evidence.hashing_config) is not None:
        return not _check(evidence.samples, fields, config.num_buckets_for)[1]
    return bool(_candidates(codes, evidence))


def _are_enough(codes: Sequence[NDArray[np.int32]]) -> bool:
    return np.unique(np.concatenate([np.empty(0, np.int32), *codes])).size >= ENOUGH_KEYS


def _detect(layout: BucketLayout, evidence: Evidence, fields: tuple[str, ...]) -> Finding:
    codes = _codes(evidence.samples, fields)
    if codes is None or not _are_enough(codes):
        return _unproven(layout, "there are too few record keys to prove one")
    if evidence.hashing_config is not None:
        return _detect_by_config(layout, evidence, evidence.hashing_config, fields)
    candidates = _candidates(codes, evidence)
    if not candidates:
        return _unproven(layout, f"no number of buckets fits the sampled keys hashed by {', '.join(fields)}")
    if len(candidates) > 1:
        fitting = ", ".join(map(str, candidates[:10]))
        return _unproven(layout, f"several numbers of buckets fit the sampled keys ({fitting})")
    if candidates == [1] and len(evidence.record_key_fields) > 1:
        return _unproven(layout, "with one bucket the keys do not show which of their fields are hashed")
    index = BucketIndex(candidates[0], fields)
    return Finding(replace(layout, keys_checked=sum(map(len, codes))), index)


def _detect_by_config(
    layout: BucketLayout, evidence: Evidence, config: HashingConfig, fields: tuple[str, ...]
) -> Finding:
    checked, mismatched = _check(evidence.samples, fields, config.num_buckets_for)
    if mismatched:
        return _unproven(layout, f"{mismatched} of {checked} sampled keys are not where the hashing config puts them")
    numbers = {config.num_buckets_for(sample.slice.partition_path) for sample in evidence.samples}
    if numbers == {1} and len(evidence.record_key_fields) > 1:
        return _unproven(layout, "with one bucket the keys do not show which of their fields are hashed")
    index = BucketIndex(config.default_num_buckets, fields)
    return Finding(replace(layout, keys_checked=checked), index)


def _unproven(layout: BucketLayout, because: str) -> Finding:
    return Finding(
        replace(layout, kind=BucketIndexKind.UNKNOWN),
        warnings=(
            f"The file ids look like those of a bucket index, but {because}."
            " If the table has one, register it with `index`: the writers' number of buckets and hash fields.",
        ),
    )


def _layout(evidence: Evidence) -> BucketLayout:
    """Returns the layout according to the file ids alone. A random id may look like that of a bucket, so `SIMPLE` is a
    guess until keys prove it."""
    slices = evidence.slices
    buckets = [s.bucket for s in slices if s.bucket is not None]
    if evidence.has_consistent_hashing:
        kind = BucketIndexKind.CONSISTENT_HASHING
    elif not slices:
        kind = BucketIndexKind.UNKNOWN
    elif len(buckets) == len(slices) and max(buckets) < MOST_BUCKETS and not _repeated(slices):
        kind = BucketIndexKind.SIMPLE
    else:
        kind = BucketIndexKind.NONE
    return BucketLayout(
        kind=kind,
        file_groups=len(slices),
        highest_bucket=max(buckets) if kind is BucketIndexKind.SIMPLE else None,
        fixed_file_ids=bool(slices) and all(is_fixed(s.file_id) for s in slices),
        hashing_config=evidence.hashing_config.instant if evidence.hashing_config else None,
    )


def _repeated(slices: Sequence[FileSlice]) -> int:
    """Returns how many file groups there are beyond one for each partition and bucket."""
    return sum(count - 1 for count in Counter((s.partition_path, s.bucket) for s in slices).values())


def _codes(samples: Sequence[KeySample], fields: tuple[str, ...]) -> list[NDArray[np.int32]] | None:
    """Returns the hash codes of each sample without their sign; None if Hudi could not hash a key by these fields."""
    try:
        return [hash_codes(sample.keys, fields) & np.int32(0x7FFFFFFF) for sample in samples]
    except RecordKeyError:
        return None


def _check(samples: Sequence[KeySample], fields: tuple[str, ...], num_buckets: Callable[[str], int]) -> tuple[int, int]:
    """Returns how many keys were checked, and how many of them do not lie in the computed bucket."""
    checked = sum(len(sample.keys) for sample in samples)
    codes = _codes(samples, fields)
    if codes is None:
        return checked, checked
    mismatched = 0
    for sample, code in zip(samples, codes, strict=True):
        mismatched += int(np.count_nonzero(code % num_buckets(sample.slice.partition_path) != sample.slice.bucket))
    return checked, mismatched


def _candidates(codes: Sequence[NDArray[np.int32]], evidence: Evidence) -> list[int]:
    """Returns every number of buckets that puts each sampled key into the bucket of its file, in ascending order.

    A number N fits if it exceeds every bucket id of the table, and divides (code - bucket) of every key. The second
    condition means that N divides the greatest common divisor of these differences. The true number always fits, so if
    only one number fits, it is the true one.
    """
    divisor = 0
    for sample, code in zip(evidence.samples, codes, strict=True):
        bucket = sample.slice.bucket
        assert bucket is not None  # Callers have checked that all slices are buckets.
        offsets = np.abs(code.astype(np.int64) - bucket)
        divisor = int(np.gcd.reduce(np.append(offsets, divisor)))
    lowest = 1 + max((s.bucket for s in evidence.slices if s.bucket is not None), default=0)
    if divisor == 0:
        # Every larger number fits too. Callers only need to know that there is more than one.
        return [lowest, lowest + 1]
    numbers = np.arange(lowest, min(divisor, MOST_BUCKETS) + 1)
    return [int(number) for number in numbers[divisor % numbers == 0]]


def _suggestion(evidence: Evidence, fields: tuple[str, ...]) -> int | None:
    codes = _codes(evidence.samples, fields)
    candidates = _candidates(codes, evidence) if codes else []
    return candidates[0] if len(candidates) == 1 else None


def _contradicted(
    claimed: BucketIndex, checked: int, mismatched: int, because: str, suggested: int | None = None
) -> BucketIndexContradictedError:
    extensions = {"checked": checked, "mismatched": mismatched, "claimed": claimed.to_json()}
    if suggested is not None:
        extensions["suggested_num_buckets"] = suggested
    return BucketIndexContradictedError(f"{mismatched} of {checked}: {because}", extensions=extensions)
