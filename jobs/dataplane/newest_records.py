"""Finds the newest of several records of a key by the rules of Hudi 1.2.0 (`BufferedRecordMergerFactory`), vectorised.

Under event time ordering a record replaces an older one unless its ordering value is smaller. A delete whose ordering
value is Hudi's default (`OrderingValues.isDefault`: Integer 0, also for null) replaces everything before it. Any record
after it replaces that delete; deletes of later delete blocks are ignored until such a record comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.errors import NotProvedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Places = NDArray[np.int64]

# Spark's rows hold both types as Integers. Hudi turns a null into an Integer 0, which can be compared with them.
_INTEGERS = (pa.int32(), pa.date32())
# The Java class of a delete's ordering value that can be compared with a column's. A delete of another class always
# wins, and Hudi then fails at the next record of the key.
_CLASSES = {
    pa.bool_(): "Boolean",
    pa.int32(): "Int",
    pa.int64(): "Long",
    pa.float32(): "Float",
    pa.float64(): "Double",
    pa.string(): "String",
    pa.timestamp("us", "UTC"): "Long",
    pa.timestamp("us"): "Long",
}


@dataclass(frozen=True)
class Versions:
    """Versions of records in the order in which Hudi reads them; all fields have one entry for each version."""

    keys: Places  # The number of the version's key.
    ordering: tuple[pa.Array, ...]  # The columns of ordering fields.
    deletes: Mask  # Whether the version deletes.
    blocks: Mask  # Whether the version is one of a delete block.
    resets: Mask  # Whether the version is a delete with the default ordering value.


def newest(versions: Versions, count: int, *, by_event_time: bool) -> Places:
    """Returns the place of the newest version of each of `count` keys. Raises NotProvedError."""
    keys = versions.keys
    found = np.full(count, -1, np.int64)
    if not by_event_time:
        found[keys] = np.arange(len(keys))  # of several versions the last one stays
        return found
    places = _candidates(versions, count)
    found[keys[places]] = places
    if len(places) == count:
        return found
    several = places[np.bincount(keys[places], minlength=count)[keys[places]] > 1]
    values = [_sortable(column.take(pa.array(several))) for column in versions.ordering]
    nulls = [null for _, null in values if null.any()]
    if nulls and (len(values) > 1 or _mixed(keys[several], nulls[0])):
        raise NotProvedError("the ordering value of some versions of a record is null, and of others not")
    order = np.lexsort([*(value for value, _ in reversed(values)), keys[several]])
    found[keys[several[order]]] = several[order]
    return found


def require_order(versions: Versions, count: int, *, by_event_time: bool) -> None:
    """Raises NotProvedError if Hudi before 1.0 would keep another version of a record than Hudi 1.2.

    Hudi before 1.0 keeps the record with the greater ordering value, or the later one of equal values, whatever the
    table's order. A record after a delete block replaces the delete, and the delete replaces records of smaller or
    equal ordering values; a delete with the default value replaces all records (`HoodieMergedLogRecordScanner`,
    `OverwriteWithLatestAvroPayload`, 0.15). So both keep the last version if ordering values never decrease. Under
    event time ordering they can differ only where a delete has a value.
    """
    takes_all = versions.blocks & versions.resets
    order = np.argsort(versions.keys, kind="stable")
    older, newer = order[:-1], order[1:]
    in_question = versions.keys[older] == versions.keys[newer]
    if by_event_time:
        has_valued = np.zeros(count, np.bool_)
        has_valued[versions.keys[versions.deletes & ~takes_all]] = True
        in_question &= has_valued[versions.keys[newer]] & ~takes_all[older]
    else:
        in_question &= ~versions.blocks[older]
    older, newer = older[in_question], newer[in_question]
    values = [(column.take(pa.array(older)), column.take(pa.array(newer))) for column in versions.ordering]
    kept = keeps_newer([each for each, _ in values], [each for _, each in values], takes_all[newer])
    if not kept.all():
        raise NotProvedError(
            "a later version of a record has a smaller ordering value, which an older Hudi merges otherwise"
        )


def resets(ordering: Sequence[pa.Array], deletes: Mask) -> Mask:
    """Returns which data records are deletes with Hudi's default ordering value. Raises NotProvedError."""
    if len(ordering) != 1 or not deletes.any():
        if len(ordering) > 1 and any(column.null_count for column in ordering):
            raise NotProvedError("one of several ordering fields is null")
        return np.zeros(len(deletes), np.bool_) if len(ordering) else deletes.copy()
    column = ordering[0]
    null = np.asarray(column.is_null())
    if column.type in _INTEGERS:
        null = null | (np.asarray(column.cast(pa.int32()).fill_null(0)) == 0)
    found: Mask = deletes & null
    return found


def of_deletes(values: Sequence[tuple[str, Any] | None], kinds: Sequence[pa.DataType]) -> tuple[list[pa.Array], Mask]:
    """Returns the ordering values of deletes as columns, and which are Hudi's default. Raises NotProvedError.

    Without `kinds`, under commit time ordering, the values are ignored: `CommitTimeRecordMerger` applies every delete
    in its place, although Flink writes a value.
    """
    if not kinds:
        return [], np.ones(len(values), np.bool_)
    default = np.fromiter((value == ("Int", 0) for value in values), np.bool_, len(values))
    rows = [(None,) * len(kinds) if reset else _row(value, kinds) for value, reset in zip(values, default, strict=True)]
    try:
        columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    except (pa.ArrowException, OverflowError):
        raise NotProvedError("a delete's ordering value does not fit the column's type") from None
    return columns, default


def _row(value: tuple[str, Any] | None, kinds: Sequence[pa.DataType]) -> tuple[Any, ...]:
    """Returns the ordering values of one delete."""
    several: Sequence[tuple[str, Any] | None] = (value,)
    if len(kinds) > 1:
        several = () if value is None or value[0] != "Array" else value[1]
    if len(several) != len(kinds):
        raise NotProvedError("a delete has another number of ordering values than the table")
    found = []
    for each, kind in zip(several, kinds, strict=True):
        wanted = "Decimal" if pa.types.is_decimal(kind) else _CLASSES.get(kind)
        if each is None or each[0] != wanted:
            raise NotProvedError(f"a delete's ordering value is not of the column's type, {kind}")
        found.append(each[1])
    return tuple(found)


def keeps_newer(older: Sequence[pa.Array], newer: Sequence[pa.Array], reset: Mask) -> Mask:
    """Returns where the newer record replaces the older one (`shouldKeepNewerRecord`). The older one must not be a
    delete.

    `older` and `newer` are the ordering values by column. Raises NotProvedError.
    """
    smaller, equal = np.zeros(len(reset), np.bool_), np.ones(len(reset), np.bool_)
    for old, new in zip(older, newer, strict=True):
        table = pa.concat_arrays([old, new])
        values, null = _sortable(table)
        half = len(reset)
        odd = null[:half] | null[half:] if len(older) > 1 else null[:half] != null[half:]
        if (odd & ~reset).any():
            raise NotProvedError("the ordering value of some versions of a record is null, and of others not")
        smaller |= equal & (values[half:] < values[:half])
        equal &= values[half:] == values[:half]
    kept: Mask = reset | ~smaller
    return kept


def _candidates(versions: Versions, count: int) -> Places:
    """Returns the places of the versions that count after each key's last delete with the default ordering value."""
    if not versions.resets.any():
        return np.arange(len(versions.keys))
    keys, places = versions.keys, np.arange(len(versions.keys))
    last = np.full(count, -1, np.int64)
    last[keys[versions.resets]] = places[versions.resets]
    reset = last[keys]
    records = np.flatnonzero(~versions.blocks & (places > reset))[::-1]
    first = np.full(count, len(keys), np.int64)
    first[keys[records]] = records  # written from the last to the first, so the first one stays
    # Without such a delete all versions count; else the versions from the first record after the delete on count, or
    # the delete alone.
    kept = (reset < 0) | (places >= first[keys]) | ((places == reset) & (first[keys] == len(keys)))
    return np.flatnonzero(kept)


def _mixed(keys: Places, null: Mask) -> bool:
    return bool(np.isin(keys[null], keys[~null]).any())


def _sortable(column: pa.Array) -> tuple[NDArray[Any], Mask]:
    """Returns numbers that are in the order of the values as Java compares them, and where these are null.

    Raises NotProvedError for types and values that Java may compare differently.
    """
    kind = column.type
    null = np.asarray(column.is_null())
    if kind in _INTEGERS:
        return np.asarray(column.cast(pa.int32()).fill_null(0)), np.zeros(len(null), np.bool_)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.int64()).fill_null(0)), null
    if pa.types.is_floating(kind):
        values = np.asarray(column.fill_null(0.0))
        if np.isnan(values).any() or (np.signbit(values) & (values == 0)).any():
            raise NotProvedError("an ordering value is NaN or minus zero")
        return values, null
    if pa.types.is_string(kind) or pa.types.is_decimal(kind):
        return np.asarray(pc.rank(column, tiebreaker="dense")), null
    raise NotProvedError(f"the ordering field has the type {kind}")
