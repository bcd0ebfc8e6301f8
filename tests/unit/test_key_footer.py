"""Tests the footer entries of a base file that begins with all rows of another one and extends its Bloom filter."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest

from jobs.dataplane import bloom_filter
from jobs.dataplane.bloom_filter import DYNAMIC, SIMPLE, BloomFilter, FilterKind, UnknownFilterError
from jobs.dataplane.key_footer import KeyFooter
from jobs.errors import NotProvedError

# The filter has at most two rows of 500 keys each, so that some tables have more keys than that.
KIND = FilterKind(DYNAMIC, 21_568, 30, 500, 2)


@pytest.fixture(autouse=True)
def _small_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the filters that are read the same size. A footer does not say how many rows its filter may have."""
    monkeypatch.setattr(bloom_filter, "_DEFAULT_MOST_KEYS", 1000)


def keys(first: int, last: int) -> pa.Array:
    return pa.array([f"key:{number},ä{number % 7}" for number in range(first, last)])


def entries(footer: KeyFooter, *parts: pa.Array) -> dict[bytes, bytes]:
    for part in parts:
        footer.add(part)
    return footer.entries()


@pytest.mark.parametrize("bytes_per_bit", [True, False])
@pytest.mark.parametrize("old", [0, 1, 499, 500, 501, 999, 1000, 1001, 1002, 1700])
@pytest.mark.parametrize("inserted", [0, 1, 700])
@pytest.mark.parametrize("few", [0, 1000])
def test_an_extended_filter_equals_a_new_filter_of_all_keys(
    monkeypatch: pytest.MonkeyPatch, old: int, inserted: int, few: int, *, bytes_per_bit: bool
) -> None:
    monkeypatch.setattr(bloom_filter, "_FEW_KEYS", few)
    if not bytes_per_bit:
        monkeypatch.setattr(bloom_filter, "_BYTE_PER_BIT", 0)
    before = entries(KeyFooter(KIND), keys(0, old))
    footer = KeyFooter.beginning_with(before, old, KIND)
    assert footer._known == old
    # A batch may hold the last old key and the first new one.
    parts = [keys(first, min(first + 300, old + inserted)) for first in range(0, old + inserted, 300)]
    assert entries(footer, *parts) == entries(KeyFooter(KIND), keys(0, old + inserted))


@pytest.mark.parametrize(
    "change",
    [
        lambda footer: {},
        lambda footer: {**footer, b"hoodie_bloom_filter_type_code": SIMPLE.encode()},
        lambda footer: {**footer, b"org.apache.hudi.bloomfilter": b""},
        lambda footer: {**footer, b"org.apache.hudi.bloomfilter": b"a"},
        lambda footer: {name: value[:-8] for name, value in footer.items()},
        lambda footer: {name: value[:-6] + b"=" for name, value in footer.items()},
        lambda footer: entries(KeyFooter(FilterKind(DYNAMIC, 21_568, 29, 500, 2)), keys(0, 600)),
        lambda footer: entries(KeyFooter(FilterKind(DYNAMIC, 21_568, 30, 400, 3)), keys(0, 600)),
        lambda footer: entries(KeyFooter(KIND), keys(0, 599)),
        lambda footer: entries(KeyFooter(KIND), keys(0, 601)),
        lambda footer: {**footer, b"org.apache.hudi.bloomfilter": _with_another_row_header(footer)},
    ],
)
def test_a_filter_that_may_be_of_other_keys_is_made_anew(change: object) -> None:
    assert callable(change)
    footer = KeyFooter.beginning_with(change(entries(KeyFooter(KIND), keys(0, 600))), 600, KIND)
    assert entries(footer, keys(0, 650)) == entries(KeyFooter(KIND), keys(0, 650))


def _with_another_row_header(footer: dict[bytes, bytes]) -> bytes:
    data = bytearray(base64.b64decode(footer[b"org.apache.hudi.bloomfilter"]))
    data[13 + 12 + 7] ^= 1  # This byte has the number of hashes of the first row.
    return base64.b64encode(bytes(data))


def test_a_filter_of_other_keys_is_noticed() -> None:
    footer = KeyFooter.beginning_with(entries(KeyFooter(KIND), keys(1000, 1600)), 600, KIND)
    with pytest.raises(NotProvedError, match="Bloom filter"):
        footer.add(keys(0, 600))


def test_empty_keys_are_in_no_filter_and_are_not_looked_for() -> None:
    some = pa.array(["", *keys(0, 599).to_pylist()])
    footer = KeyFooter.beginning_with(entries(KeyFooter(KIND), some), 600, KIND)
    assert entries(footer, some) == entries(KeyFooter(KIND), some)


def test_only_a_filter_that_counts_its_keys_is_extended() -> None:
    simple = FilterKind(SIMPLE, 1000, 5)
    with pytest.raises(UnknownFilterError):
        BloomFilter.of(entries(KeyFooter(simple), keys(0, 9))[b"org.apache.hudi.bloomfilter"], simple)
