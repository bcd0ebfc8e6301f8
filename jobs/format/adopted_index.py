"""The bucket index in the extra metadata of the commit by which a table adopted it or gave it up. Hudi itself (1.2)
stores neither the kind of an index nor its number of buckets in a table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from jobs.contract import BucketIndex

ADOPTED_KEY = "groundskeeper.bucket_index"
"""Key in the extra metadata of an adoption, and, with `_NONE`, of the commit by which a table gives its index up."""

_NONE = "null"


def to_metadata(index: BucketIndex | None) -> dict[str, str]:
    return {ADOPTED_KEY: msgspec.json.encode(index).decode()}


def is_given_up(extra: Mapping[str, str]) -> bool:
    return extra.get(ADOPTED_KEY) == _NONE


def of_metadata(extra: Mapping[str, str]) -> BucketIndex | None:
    """Returns the adopted index; None if the commit has adopted none."""
    try:
        return BucketIndex.from_json(msgspec.json.decode(extra.get(ADOPTED_KEY, _NONE)))
    except (msgspec.MsgspecError, ValueError):
        return None
