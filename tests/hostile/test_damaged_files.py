"""Damages real files of tables at random: each reader must return a value or a declared error, in time."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from service.lake import reader_pool
from service.lake.reader_pool import ReaderLimits, ReaderPool
from service.model.errors import GroundskeeperError
from tests.hostile import reading
from tests.hostile.avro import number
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

EXAMPLES, MANY_EXAMPLES = 100, 5_000
"""Number of damaged files for each reader."""

_LENGTHS = [number(value) for value in (-1, 2**20, 2**31, 2**40, 2**62)] + [b"\xff" * 8, b"\x7f" * 4, b"\x00" * 4]


@st.composite
def damaged(draw: st.DrawFn, files: Sequence[bytes]) -> bytes:
    """Returns one of the files with flipped bits, removed or foreign pieces, or huge lengths."""
    content = bytearray(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        match draw(st.sampled_from(["flip", "flip", "cut", "end", "copy", "length", "bytes"])):
            case "flip":
                content[at : at + 1] = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in content[at : at + 1])
            case "cut":
                del content[at : at + draw(st.integers(1, 64))]
            case "end":
                del content[at:]
            case "copy":
                other = draw(st.sampled_from(files))
                start = draw(st.integers(0, len(other)))
                content[at:at] = other[start : start + draw(st.integers(1, 200))]
            case "length":
                blown = draw(st.sampled_from(_LENGTHS))
                content[at : at + len(blown)] = blown
            case "bytes":
                content[at : at + 8] = draw(st.binary(max_size=16))
    return bytes(content)


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderPool]:
    """Readers like those of the service, but with less time."""
    reader_pool.preload("tests.hostile.reading")
    with ReaderPool(1, ReaderLimits(seconds=10.0)) as pool:
        yield pool


@pytest.fixture(params=[EXAMPLES, pytest.param(MANY_EXAMPLES, marks=pytest.mark.exhaustive)])
def attempt(readers: ReaderPool, request: pytest.FixtureRequest) -> Callable[..., None]:
    def attempt(reader: Callable[..., None], files: Sequence[bytes], *rest: Any) -> None:
        readers.run(reader, files[0], *rest)  # The reader accepts the undamaged file.

        @settings(
            max_examples=request.param,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(damaged(files))
        def check(content: bytes) -> None:
            problem = _problem(readers, reader, content, *rest)
            # The reader process reports an exception of any other type by these words.
            assert not problem.startswith("The table could not be read"), problem

        check()

    return attempt


def _problem(readers: ReaderPool, reader: Callable[..., None], *args: Any) -> str:
    try:
        readers.run(reader, *args)
    except GroundskeeperError as error:
        return error.detail
    return ""


@pytest.fixture
def table(tmp_path: Path) -> SmallTable:
    return SmallTable(tmp_path / "t")


def instants(folder: Path) -> list[bytes]:
    """Returns the content of timeline files of every kind, in both layouts."""
    found = []
    for version in (9, 6):
        table = SmallTable(folder / f"v{version}", version=version)
        files = {base_file(bucket_id(0), "001"): 100, log_file(bucket_id(1), "001"): 30}
        extra = {"groundskeeper.repaired": "001,003", "flink_checkpoint_id": "7"}
        table.commit("001", {"p=1": files, "p=2": files}, replaced={"p=3": ["old-0"]}, extra=extra)
        table.clean("003", ("p=1", "p=2"))
        table.rollback("005", "004", ("p=1",))
        if version == 9:
            table.restore("007", "006", partitions=("p=2",))
        found += [path.read_bytes() for path in sorted(table.timeline.iterdir()) if path.stat().st_size > 10]
    return [content for content in found if content[:1] in (b"O", b"{")]


def parquet(rows: dict[str, list[Any]], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(rows), out, **options)
    return out.getvalue()


def test_damaged_metadata_give_a_value_or_a_declared_error(attempt: Callable[..., None], tmp_path: Path) -> None:
    attempt(reading.metadata, instants(tmp_path))


def test_damaged_properties_give_a_value_or_a_declared_error(attempt: Callable[..., None], table: SmallTable) -> None:
    content = (table.base / ".hoodie" / "hoodie.properties").read_bytes()
    odd = content + b"hoodie.table.recordkey.fields=a,b\\u00e9\nhoodie.table.name: t\\\n  x\n!c\nk\\=1 v\\u\n"
    attempt(reading.properties, [content, odd], str(table.base))


def test_damaged_names_in_the_timeline_give_a_value_or_a_declared_error(attempt: Callable[..., None]) -> None:
    times = "20260101120000000", "20260101120001000"
    names = [f"{times[0]}_{times[1]}.deltacommit", f"{times[0]}.commit.requested", f"{times[0]}.inflight"]
    attempt(reading.timeline_name, [name.encode() for name in names])


def test_damaged_names_of_files_give_a_value_or_a_declared_error(attempt: Callable[..., None]) -> None:
    names = [base_file(bucket_id(7), "20260101120000000"), log_file(bucket_id(7), "20260101120000000")]
    attempt(reading.file_name, [name.encode() for name in names])


def test_damaged_hashing_configs_give_a_value_or_a_declared_error(attempt: Callable[..., None]) -> None:
    rules = ["city=Berlin/.*,8;.*,4", r"^day=\d{4}-(0[1-9]|1[012])$,16", ""]
    configs = [{"rule": "regex", "expressions": each, "defaultBucketNumber": 4} for each in rules]
    attempt(reading.hashing_config, [json.dumps(config).encode() for config in configs])


def test_damaged_record_keys_give_a_value_or_a_declared_error(attempt: Callable[..., None]) -> None:
    attempt(reading.record_keys, [b"id:1,city:Berlin", b"id:__null__,city:__empty__", b"4711"])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "zstd"])
def test_damaged_base_files_give_a_value_or_a_declared_error(
    attempt: Callable[..., None], table: SmallTable, codec: str
) -> None:
    name = base_file(bucket_id(0), "001")
    table.commit("001", {"p": {name: 0}})
    keys = [f"id:{number}" for number in range(100)]
    rows = {"_hoodie_record_key": keys, "city": ["Berlin"] * 100, "items": [[{"a": 1}]] * 100}
    files = [parquet(rows, compression=codec), parquet(rows, compression=codec, use_dictionary=False)]
    attempt(reading.base_file, files, str(table.base), f"p/{name}")


def test_damaged_archives_give_a_value_or_a_declared_error(attempt: Callable[..., None], table: SmallTable) -> None:
    table.commit("001")
    table.commit("003")
    table.archive("001", "003")
    [path] = (table.timeline / "history").glob("*.parquet")
    attempt(reading.history, [path.read_bytes()], str(table.base), str(path.relative_to(table.base)))
