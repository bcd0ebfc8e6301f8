"""Adds to the schema in the footer what pyarrow does not write: logical types that it reads as plain bytes or structs,
and the old form of lists and maps (`list_levels`).

Such types are `ENUM` (each enum of Avro, such as the `type` of a BLOB in files of Hudi's Avro writer; its row writer
writes a `STRING` there), `JSON`, `BSON`, `UUID`, `INTERVAL`, `GEOMETRY`, `GEOGRAPHY` and `VARIANT`. Values and physical
types do not depend on these annotations. Source: `SchemaElement` and `LogicalType` in `parquet.thrift` of Parquet's
format 2.12.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.dataplane import list_levels
from jobs.format.compact_thrift import Struct, Wanted, read_struct, write_struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq

_TAIL = 8  # the footer's length and the magic bytes
_SCHEMA = 2  # of FileMetaData
_TYPE, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 4, 5, 6, 10  # of SchemaElement
_BYTES = frozenset({6, 7})  # the types BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY
# `ConvertedType` and `LogicalType` of leaves of bytes that pyarrow writes itself (STRING, DECIMAL, FLOAT16), and of the
# groups of lists and maps, which it writes in its own way.
_WRITTEN_LEAVES = (frozenset({0, 5}), frozenset({1, 5, 15}))
_WRITTEN_GROUPS = (frozenset({1, 2, 3}), frozenset({2, 3}))
# Types whose values are ordered as plain bytes (ENUM, JSON, BSON, UUID), as pyarrow's statistics assume. The other
# types have no such order.
_ORDERED = (frozenset({4, 19, 20}), frozenset({4, 12, 13, 14}))
# The names that pyarrow prints for the logical types that it writes itself.
_PLAIN_LEAVES = frozenset({"NONE", "STRING", "DECIMAL", "FLOAT16"})
_PLAIN_GROUPS = ("(List) {", "(Map) {")

_Place = tuple[int, int, bytes]
"""The number of an element's first leaf, the number after its last leaf, and the name if the element is a group."""


@dataclass(frozen=True)
class Annotations:
    """What pyarrow does not write of one schema. `places` has the annotations, each with its place, as the bytes of a
    struct of its fields. `are_lists_old` says that lists and maps have the old form."""

    places: tuple[tuple[_Place, bytes], ...] = ()
    are_lists_old: bool = False

    def __bool__(self) -> bool:
        return bool(self.places or self.are_lists_old)

    @classmethod
    def of(cls, reader: pq.ParquetFile) -> Annotations:
        """Returns what pyarrow does not write, except types that it does not know at all."""
        if not _may_have(reader.schema):
            return cls()
        copy = io.BytesIO()
        reader.metadata.write_metadata_file(copy)
        found = []
        fields, _, _ = _begin_of_footer(copy.getvalue())
        elements = fields[_SCHEMA].value.values
        for place, element in _placed(elements):
            own = {field: element[field] for field in (_CONVERTED, _LOGICAL) if field in element}
            if _TYPE in element:
                is_carried = element[_TYPE].value in _BYTES and not _is_one_of(own, _WRITTEN_LEAVES)
            else:
                is_carried = not _is_one_of(own, _WRITTEN_GROUPS)
            if is_carried and _kind(own) != (None, None):
                found.append((place, write_struct(own)))
        return cls(tuple(found), list_levels.are_old(elements))

    @property
    def unordered(self) -> frozenset[int]:
        """The numbers of the leaves whose values have no order that statistics could use."""
        return frozenset(
            first
            for (first, _, name), annotation in self.places
            if not name and not _is_one_of(read_struct(annotation)[0], _ORDERED)
        )

    def applied(self, content: bytes) -> bytes:
        """Returns the end of a Parquet file with these annotations and lists in the schema; it may begin at any byte
        before the footer."""
        is_whole = self.are_lists_old
        fields, begin, end = _footer(content, list_levels.WANTED) if is_whole else _begin_of_footer(content)
        if self.are_lists_old:
            list_levels.restore(fields)
        wanted = dict(self.places)
        for place, element in _placed(fields[_SCHEMA].value.values):
            own = wanted.get(place)
            if own is not None and not (place[2] and _CONVERTED in element):
                element.pop(_CONVERTED, None)
                element.pop(_LOGICAL, None)
                element.update(read_struct(own)[0])
        # The bytes of later fields stay as they are, because a field's number is stored as its distance to the field
        # before. If all fields were read, only the byte that ends the struct is left.
        footer = write_struct(fields)[:-1] + content[end - is_whole : -_TAIL]
        return content[:begin] + footer + len(footer).to_bytes(4, "little") + content[-4:]


NO_ANNOTATIONS = Annotations()


def annotated_groups(schema: Any) -> list[str]:
    """Returns the groups of a Parquet schema that have annotations and are neither lists nor maps, as pyarrow prints
    them, because only its printed schema shows them."""
    lines = [line.strip() for line in str(schema).splitlines()]
    return [line for line in lines if line.endswith(") {") and not line.endswith(_PLAIN_GROUPS)]


def _may_have(schema: Any) -> bool:
    columns = [schema.column(number) for number in range(len(schema))]
    return (
        bool(annotated_groups(schema))
        or "(List) {" in str(schema)
        or any(
            "BYTE_ARRAY" in column.physical_type and column.logical_type.type not in _PLAIN_LEAVES for column in columns
        )
    )


def _begin_of_footer(content: bytes) -> tuple[Struct, int, int]:
    """Returns the fields of a file's footer up to the schema, and where they begin and end."""
    return _footer(content, last=_SCHEMA)


def _footer(content: bytes, wanted: Wanted | None = None, last: int | None = None) -> tuple[Struct, int, int]:
    begin = len(content) - _TAIL - int.from_bytes(content[-_TAIL:-4], "little")
    fields, end = read_struct(content, begin, last=last, wanted=wanted)
    return fields, begin, end


def _placed(elements: Sequence[Struct]) -> Iterator[tuple[_Place, Struct]]:
    """Yields all elements below the root, in depth-first order, so that each element comes before its
    children."""
    found: list[tuple[_Place, Struct]] = []

    def walk(at: int, leaf: int) -> tuple[int, int]:
        element, first, mine = elements[at], leaf, len(found)
        if _TYPE in element:
            found.append(((leaf, leaf + 1, b""), element))
            return at + 1, leaf + 1
        found.append(((first, first, b""), element))
        at += 1
        for _ in range(element[_CHILDREN].value):
            at, leaf = walk(at, leaf)
        found[mine] = (first, leaf, element[_NAME].value), element
        return at, leaf

    walk(0, 0)
    yield from found[1:]


def _kind(annotation: Struct) -> tuple[int | None, int | None]:
    """Returns the number of the `ConvertedType` and that of the `LogicalType`, which is a union of structs."""
    converted, logical = annotation.get(_CONVERTED), annotation.get(_LOGICAL)
    return (
        None if converted is None else int(converted.value),
        next(iter(logical.value), None) if logical else None,
    )


def _is_one_of(annotation: Struct, kinds: tuple[frozenset[int], frozenset[int]]) -> bool:
    converted, logical = _kind(annotation)
    return converted in kinds[0] if logical is None else logical in kinds[1]
