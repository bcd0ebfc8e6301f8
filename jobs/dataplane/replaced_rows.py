"""Puts the newest records of the logs into batches of a base file, and leaves out the rows that they delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.dataplane import table_types
from jobs.format.meta_columns import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Places = NDArray[np.int64]

# The limit is low because each batch holds the whole dictionary.
_LARGEST_DICTIONARY = 4096


class Replacement:
    """The newest records of the logs. Columns of text are also kept as dictionaries, in case the base file has
    dictionaries.

    `varied` are the columns that stay plain: those with too many different texts for a dictionary, and those in
    `plain`. All batches have the schema of the first.
    """

    def __init__(self, rows: pa.Table, schema: pa.Schema, plain: Sequence[str] = ()) -> None:
        self._rows = rows
        self._ends = np.cumsum([len(chunk) for chunk in rows.column(0).chunks], dtype=np.int64)
        self._schema = schema
        self._encoded: dict[str, pa.DictionaryArray] = {}
        varied = list(plain)
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if name not in plain and column.type in (pa.string(), pa.binary()):
                if len(pc.unique(column.slice(0, 4 * _LARGEST_DICTIONARY))) > _LARGEST_DICTIONARY:
                    varied.append(name)
                    continue
                encoded = column.dictionary_encode().combine_chunks()
                if len(encoded.dictionary) > _LARGEST_DICTIONARY:
                    varied.append(name)
                else:
                    self._encoded[name] = encoded
        self.varied = tuple(varied)
        self._dictionaries: set[str] = set()

    def rows_at(self, places: Places) -> pa.RecordBatch:
        """Returns some of the records as rows."""
        taken = self._taken(places)
        columns = [taken.of_column(column) for column in self._rows.columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._rows.schema)
        for name in self._dictionaries:
            place = batch.schema.get_field_index(name)
            column = self._encoded[name].take(pa.array(places))
            batch = batch.set_column(place, batch.schema.field(place).with_type(column.type), column)
        return self._with_file_name(batch)

    def apply(self, batch: pa.RecordBatch, changed: Places, places: Places, deleted: Places) -> pa.RecordBatch:
        """Returns the batch with the records at `places` in the rows `changed`, and without the rows `deleted`."""
        batch = table_types.conformed(batch, self._rows.schema)
        self._dictionaries.update(each.name for each in batch.schema if pa.types.is_dictionary(each.type))
        if len(changed):
            rows = np.arange(batch.num_rows, dtype=np.int32)
            rows[changed] = np.arange(batch.num_rows, batch.num_rows + len(changed), dtype=np.int32)
            if len(deleted):
                rows = np.delete(rows, deleted)
            taken, chosen = self._taken(places), pa.array(rows)
            columns = [
                self._replaced(name, column, taken, chosen)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        elif len(deleted):
            kept = np.ones(batch.num_rows, np.bool_)
            kept[deleted] = False
            batch = batch.filter(pa.array(kept))
        return self._with_file_name(batch)

    def changed(self, name: str, column: pa.Array, rows: Places, places: Places) -> pa.Array | None:
        """Returns a column of the base file with the records at `places` in its `rows`; None if these values are there
        already."""
        taken = self._taken(places)
        newer, older = taken.of_column(self._rows.column(name)), column.take(pa.array(rows))
        if pa.types.is_dictionary(older.type):
            older = older.dictionary_decode()
        if not _may_hold_zeros(older.type) and _bits(older).equals(_bits(newer)):
            return None
        chosen = np.arange(len(column), dtype=np.int32)
        chosen[rows] = np.arange(len(column), len(column) + len(rows), dtype=np.int32)
        return self._replaced(name, column, taken, pa.array(chosen))

    def _taken(self, places: Places) -> _Taken:
        return _Taken.of(places, self._ends)

    def _replaced(self, name: str, column: pa.Array, taken: _Taken, chosen: pa.Array) -> pa.Array:
        if not pa.types.is_dictionary(column.type):
            return pa.concat_arrays([column, taken.of_column(self._rows.column(name))]).take(chosen)
        # Values of the logs that the base file's dictionary lacks are appended to it.
        newer, values = self._encoded[name], column.dictionary
        known = pc.index_in(newer.dictionary, value_set=values)
        missing = newer.dictionary.filter(known.is_null())
        values = pa.concat_arrays([values, missing])
        translated = pc.index_in(newer.dictionary, value_set=values).take(newer.indices.take(pa.array(taken.places)))
        indices = pa.concat_arrays([column.indices, translated.cast(column.indices.type)]).take(chosen)
        return pa.DictionaryArray.from_arrays(indices, values)

    def _with_file_name(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        place = self._schema.get_field_index(FILE_NAME)
        if place < 0:
            return batch
        names = pa.nulls(batch.num_rows, self._schema.field(place).type)
        return batch.add_column(place, self._schema.field(place), names)


def _bits(values: pa.Array) -> pa.Array:
    """Returns values that are equal only if they have the same bits, because Arrow takes 0.0 and -0.0 for equal."""
    if pa.types.is_floating(values.type):
        return values.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[values.type.bit_width])
    return values


def _may_hold_zeros(kind: pa.DataType) -> bool:
    """Returns whether there are floating-point numbers in a nested type, which cannot be compared bit for bit."""
    below = [kind.field(number).type for number in range(kind.num_fields)]
    return any(pa.types.is_floating(each) or _may_hold_zeros(each) for each in below)


@dataclass(frozen=True)
class _Taken:
    """Places in columns of several chunks, prepared to be taken chunk by chunk. `ChunkedArray.take` would join all
    chunks of a column at each call."""

    places: Places
    parts: tuple[tuple[int, pa.Array], ...]  # Numbers of chunks, and places in them.
    order: pa.Array | None  # Brings the values of all parts into the order of the places.

    @classmethod
    def of(cls, places: Places, ends: Places) -> _Taken:
        """`ends` are the numbers of rows up to the end of each chunk."""
        if len(ends) <= 1:
            return cls(places, ((0, pa.array(places)),) if len(ends) else (), None)
        chunks = np.searchsorted(ends, places, side="right")
        sorting = np.argsort(chunks, kind="stable")
        numbers, firsts = np.unique(chunks[sorting], return_index=True)
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        parts = tuple(
            (number, pa.array(places[members] - starts[number]))
            for number, members in zip(numbers.tolist(), np.split(sorting, firsts[1:]), strict=False)
        )
        order = np.empty(len(places), np.int64)
        order[sorting] = np.arange(len(places))
        return cls(places, parts, pa.array(order))

    def of_column(self, column: pa.ChunkedArray) -> pa.Array:
        taken = [column.chunk(number).take(places) for number, places in self.parts]
        if not taken:
            return pa.nulls(0, column.type)
        return taken[0] if self.order is None else pa.concat_arrays(taken).take(self.order)
