"""The bundle of each version of Hudi reads the options that the service prints for it."""

from __future__ import annotations

import struct
import zipfile
from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex, WriterEngine
from jobs.format.index_definitions import Indexes
from service.lake.table import TableType
from service.writer_options.known_options import name_in
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target
from tests.integration.old_writer import bundle

if TYPE_CHECKING:
    from collections.abc import Iterator

_INDEXES = {
    name: {"sourceFields": ["a"], "indexOptions": {"isPartitioned": "true"}}
    for name in ("files", "column_stats", "partition_stats", "bloom_filters", "record_index")
}
_UTF8, _WIDE, _REFERENCES = 1, (5, 6), {7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_a_bundle_reads_every_option_that_is_printed_for_its_version(version: str) -> None:
    known = set(_texts(bundle(version)))
    printed: set[str] = set()
    for engine in (WriterEngine.SPARK, WriterEngine.SPARK_SQL):
        for index in (None, BucketIndex(4, ("id",))):
            for exists in (True, False):
                target = Target(
                    "/lake/t",
                    "t",
                    TableType.MERGE_ON_READ,
                    table_version=6,
                    record_key_fields=("id",),
                    ordering_fields=("ts",),
                    partition_fields=("dt",),
                    index=index,
                    num_buckets=4,
                    has_flink=True,
                    hudi_version=version,
                    exists=exists,
                    index_options=Indexes(frozenset(_INDEXES), _INDEXES).keeping(),
                )
                callback = Callback("http://gk", key="k", headers="h")
                printed |= writer_options(target, engine, callback=callback, manager="http://gk").options.keys()
    assert {name for name in printed if name.startswith("hoodie.")} <= known
    latest = {"hoodie.clean.failed.writes.policy", "hoodie.table.ordering.fields", "hoodie.write.table.version"}
    assert {name for name in latest if name_in(name, version) == name} == latest & known


def _texts(jar: str) -> Iterator[str]:
    """Returns all constants of Hudi's own classes."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("org/apache/hudi/") and name.endswith(".class"):
                yield from _constants(archive.read(name))


def _constants(content: bytes) -> Iterator[str]:
    """Returns the texts of a class file's constant pool (Java Virtual Machine Specification, 4.4)."""
    (count,) = struct.unpack_from(">H", content, 8)
    at, number = 10, 1
    while number < count:
        kind = content[at]
        if kind == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            yield content[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            at += 9 if kind in _WIDE else _REFERENCES.get(kind, 5)
        number += 2 if kind in _WIDE else 1
