"""Lists of two levels in Parquet's schema, which Hudi's Avro writer makes and pyarrow cannot write.

Two levels are a list whose repeated group, `array`, is the element; with three levels, the repeated group has an
`element`. A required element adds no level to the values, so the pages are the same, and only names in the footer
differ. Hive fails at a struct in a list of three levels with Hudi's input formats before 1.2 ("Avro field ... not
found", `HoodieAvroParquetReader` of hudi-hadoop-mr 0.15). Source: "Lists" in `LogicalTypes.md` of Parquet's format
2.12, whose rules for older files pyarrow follows, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.format import compact_thrift as thrift
from jobs.format.compact_thrift import BINARY, Field, Items, Struct, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCHEMA, _ROW_GROUPS = 2, 4  # of FileMetaData
_TYPE, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _LOGICAL = 1, 3, 4, 5, 6, 10  # of SchemaElement
_REQUIRED, _REPEATED = 0, 2
_LIST = 3  # as ConvertedType and as LogicalType
_COLUMNS, _META, _PATH = 1, 3, 3  # of RowGroup, ColumnChunk and ColumnMetaData

WANTED: Wanted = {_SCHEMA: {_LOGICAL: {}}, _ROW_GROUPS: {_COLUMNS: {_META: {_PATH: {}}}}}
"""The parts of a footer that `restore` reads."""

Lists = tuple[tuple[bytes, tuple[bytes | None, ...]], ...]
"""The columns with lists of two levels. Each has, for all of its lists in depth-first order, the name of the
repeated element, or None for a list that is written with three levels."""


@dataclass
class _Node:
    """An element of a schema with those below it."""

    element: Struct
    children: list[_Node] = field(default_factory=list)

    @property
    def name(self) -> bytes:
        return bytes(self.element[_NAME].value)

    @property
    def is_list(self) -> bool:
        logical = self.element.get(_LOGICAL)
        if logical is not None:
            return _LIST in logical.value
        return _CONVERTED in self.element and self.element[_CONVERTED].value == _LIST

    def lists(self) -> Iterator[_Node]:
        if self.is_list:
            yield self
        for child in self.children:
            yield from child.lists()

    def elements(self) -> Iterator[Struct]:
        yield self.element
        for child in self.children:
            yield from child.elements()

    def paths(self, above: tuple[bytes, ...] = ()) -> Iterator[list[bytes]]:
        """Yields the path of each leaf."""
        path = *above, self.name
        if not self.children:
            yield list(path)
        for child in self.children:
            yield from child.paths(path)


def of_schema(elements: Sequence[Struct]) -> Lists:
    """Returns the lists of a schema, whose elements come in depth-first order."""
    found = ((column.name, tuple(map(_of_two_levels, column.lists()))) for column in _columns(elements))
    return tuple((column, names) for column, names in found if any(names))


def restore(footer: Struct, lists: Lists) -> None:
    """Gives these lists of a footer two levels, which pyarrow has written with three. Other columns stay."""
    elements = footer[_SCHEMA].value.values
    columns = _columns(elements)
    wanted = dict(lists)
    for column in columns:
        of_column = list(column.lists())
        names = wanted.get(column.name, ())
        for each, name in zip(of_column, names if len(names) == len(of_column) else (), strict=False):
            if name is not None:
                _restore(each, name)
    new = [elements[0], *(element for column in columns for element in column.elements())]
    footer[_SCHEMA] = Field(thrift.LIST, Items(thrift.STRUCT, new))
    paths = [path for column in columns for path in column.paths()]
    for group in footer[_ROW_GROUPS].value.values:
        for chunk, path in zip(group[_COLUMNS].value.values, paths, strict=True):
            chunk[_META].value[_PATH] = Field(thrift.LIST, Items(BINARY, path))


def _columns(elements: Sequence[Struct]) -> list[_Node]:
    rest = iter(elements)

    def node() -> _Node:
        element = next(rest)
        count = element[_CHILDREN].value if _TYPE not in element else 0
        return _Node(element, [node() for _ in range(count)])

    return node().children


def _of_two_levels(node: _Node) -> bytes | None:
    """Returns the name of a list's repeated element; None for a list that is to have three levels.

    parquet-avro before 1.14, which is in Spark 3.5, cannot read a struct of one field in a list of two levels (Hudi
    #19782).
    """
    (repeated,) = node.children if len(node.children) == 1 else (None,)
    if repeated is None or repeated.element[_REPETITION].value != _REPEATED:
        return None
    if not repeated.children or len(repeated.children) > 1:
        return repeated.name
    is_element = repeated.name == b"array" or repeated.name.endswith(b"_tuple")
    is_struct = _CONVERTED not in repeated.element and _LOGICAL not in repeated.element
    return repeated.name if is_element and not is_struct else None


def _restore(node: _Node, name: bytes) -> None:
    (wrapper,) = node.children
    (element,) = wrapper.children if len(wrapper.children) == 1 else (None,)
    if element is not None and element.element[_REPETITION].value == _REQUIRED:
        element.element[_NAME] = Field(BINARY, name)
        element.element[_REPETITION] = Field(thrift.I32, _REPEATED)
        node.children = [element]
