"""Lists of two levels and annotated maps in Parquet's schema, which Hudi's Avro writer makes and pyarrow cannot write.

Two levels are a list whose repeated group, `array`, is the element; with three levels, the repeated group has an
`element`. A required element adds no level to the values, so the pages are the same, and only names in the footer
differ. Hive fails at a struct in a list of three levels with Hudi's input formats before 1.2 ("Avro field ... not
found", `HoodieAvroParquetReader` of hudi-hadoop-mr 0.15). Source: "Lists" in `LogicalTypes.md` of Parquet's format
2.12, whose rules for older files pyarrow follows, too.

A file has either the old form everywhere or nowhere. Hudi's Avro reader (`HoodieAvroReadSupport.checkLegacyMode`, 0.15
to 1.2) looks for lists of three levels in the whole file if a single list has another inner group than `array`, or a
single map an inner group without `MAP_KEY_VALUE`. Then it reads the lists of two levels as null, and a writer that
merges rows with that file loses their values.
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
_MAP, _LOGICAL_MAP, _MAP_KEY_VALUE = 1, 2, 2  # as ConvertedType, as LogicalType, and of the inner group of a map
_ARRAY = b"array"
_COLUMNS, _META, _PATH = 1, 3, 3  # of RowGroup, ColumnChunk and ColumnMetaData

WANTED: Wanted = {_SCHEMA: {_LOGICAL: {}}, _ROW_GROUPS: {_COLUMNS: {_META: {_PATH: {}}}}}
"""The parts of a footer that `restore` reads."""


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
        return self._is(_LIST, _LIST)

    @property
    def is_map(self) -> bool:
        return self._is(_MAP, _LOGICAL_MAP)

    @property
    def inner(self) -> _Node | None:
        """The repeated group of a list or map."""
        (inner,) = self.children if len(self.children) == 1 else (None,)
        return inner if inner is not None and inner.repetition == _REPEATED else None

    @property
    def repetition(self) -> int:
        return int(self.element[_REPETITION].value)

    @property
    def converted(self) -> int | None:
        return int(self.element[_CONVERTED].value) if _CONVERTED in self.element else None

    def _is(self, converted: int, logical: int) -> bool:
        stored = self.element.get(_LOGICAL)
        return logical in stored.value if stored is not None else self.converted == converted

    def nodes(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child.nodes()

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


def are_old(elements: Sequence[Struct]) -> bool:
    """Returns whether a schema, whose elements come in the order of depth first, has lists, and all of its lists and
    maps have the old form."""
    nodes = [node for column in _columns(elements) for node in column.nodes()]
    lists, maps = [node for node in nodes if node.is_list], [node for node in nodes if node.is_map]
    return bool(lists) and all(map(_has_two_levels, lists)) and all(map(_is_annotated, maps))


def restore(footer: Struct) -> None:
    """Gives the lists and maps of a footer, which pyarrow has written in the new form, the old one, if all of them can
    have it."""
    elements = footer[_SCHEMA].value.values
    columns = _columns(elements)
    nodes = [node for column in columns for node in column.nodes()]
    lists = [node for node in nodes if node.is_list]
    if not all(map(_can_have_two_levels, lists)):
        return
    for node in nodes:
        if node.is_map and node.inner:
            node.inner.element[_CONVERTED] = Field(thrift.I32, _MAP_KEY_VALUE)
    for node in lists:
        (wrapper,) = node.children
        (element,) = wrapper.children
        element.element[_NAME] = Field(BINARY, _ARRAY)
        element.element[_REPETITION] = Field(thrift.I32, _REPEATED)
        node.children = [element]
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


def _has_two_levels(node: _Node) -> bool:
    inner = node.inner
    return inner is not None and inner.name == _ARRAY and _can_be_repeated(inner)


def _can_have_two_levels(node: _Node) -> bool:
    """Returns whether a list of three levels can have two, because no element may be null."""
    if node.inner is None or len(node.inner.children) != 1:
        return False
    (element,) = node.inner.children
    return element.repetition == _REQUIRED and _can_be_repeated(element)


def _can_be_repeated(element: _Node) -> bool:
    """parquet-avro before 1.14, which is in Spark 3.5, cannot read a struct of one field in a list of two levels (Hudi
    #19782)."""
    is_struct = _TYPE not in element.element and not element.is_list and not element.is_map
    return not is_struct or len(element.children) > 1


def _is_annotated(node: _Node) -> bool:
    return node.inner is not None and node.inner.converted == _MAP_KEY_VALUE
