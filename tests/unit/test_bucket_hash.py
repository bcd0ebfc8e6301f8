"""Compares the vectorised hash with Java's algorithm, which processes single characters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.format.bucket_hash import RecordKeyError, bucket_ids, hash_codes, string_hash_codes


class LoopsForEver(Exception):  # noqa: N818  (it says what Hudi does)
    pass


def java_string_hash(text: str) -> int:
    units = np.frombuffer(text.encode("utf-16-le"), "<u2")
    code = 0
    for unit in units:
        code = (31 * code + int(unit)) % 2**32
    return code


def java_list_hash(values: list[str | None]) -> int:
    code = 1
    for value in values:
        code = (31 * code + (0 if value is None else java_string_hash(value))) % 2**32
    return code - 2**32 if code >= 2**31 else code


def hudi_values(key: str, fields: list[str]) -> list[str | None]:
    """Splits a key step by step, as `KeyGenUtils.extractRecordKeysByFields` (Hudi 1.2.0) does."""
    if "," not in key or ":" not in key:
        return [key]
    every_field = fields in ([], [""])
    values: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.index(":", at)
        wanted = every_field or key[at:colon] in fields
        next_colon = key.find(":", colon + 1)
        end, at_next = len(key), len(key)
        while next_colon >= 0:
            comma = key.rfind(",", 0, next_colon)
            if comma > colon:
                end, at_next = comma, comma + 1
                break
            next_colon = key.find(":", next_colon + 1)
            if next_colon < 0 and not wanted:
                raise LoopsForEver(key)  # Java searches from the key's first colon on, and never finds the separator
        if wanted:
            value = key[colon + 1 : end]
            values.append({"__null__": None, "__empty__": ""}.get(value, value))
        at = at_next
    return values or [key]


def codes(keys: list[str], fields: list[str]) -> list[int]:
    return hash_codes(pa.array(keys, pa.string()), fields).tolist()


letters = st.text(st.sampled_from("ab,:é€\U0001f600_ "), max_size=12)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.one_of(letters, any_text, st.sampled_from(["__null__", "__empty__", "", "2024-01-01 10:00:00", "a,b"]))
composite = st.lists(
    st.tuples(st.sampled_from(["a", "b", "id", "ïd", "\U0001f600"]), values), min_size=1, max_size=4
).map(lambda parts: ",".join(f"{field}:{value}" for field, value in parts))
keys_of_all_kinds = st.lists(st.one_of(letters, any_text, composite), max_size=30)
fields_of_all_kinds = st.lists(st.sampled_from(["a", "b", "id", "ïd", "\U0001f600", "", "other"]), max_size=3)


@pytest.mark.slow
@settings(max_examples=500)
@given(keys_of_all_kinds, fields_of_all_kinds)
def test_every_key_hashes_as_java_does_and_fails_where_java_never_returns(keys: list[str], fields: list[str]) -> None:
    expected, endless = {}, set()
    for key in keys:
        try:
            expected[key] = java_list_hash(hudi_values(key, fields))
        except LoopsForEver:
            endless.add(key)
    hashable = [key for key in keys if key in expected]
    assert codes(hashable, fields) == [expected[key] for key in hashable]
    for key in endless:
        with pytest.raises(RecordKeyError, match="for ever"):
            codes([*hashable, key], fields)


@settings(max_examples=100)
@given(st.lists(st.one_of(any_text, composite), min_size=1), st.data())
def test_the_arrow_layout_of_the_keys_does_not_matter(keys: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(keys)))
    end = data.draw(st.integers(begin, len(keys)))
    expected = hash_codes(pa.array(keys, pa.string()), []).tolist()[begin:end]
    for layout in (pa.string(), pa.large_string(), pa.string_view()):
        assert hash_codes(pa.array(keys, layout)[begin:end], []).tolist() == expected
    assert hash_codes(pa.array(keys).dictionary_encode()[begin:end], []).tolist() == expected
    chunked = pa.chunked_array([keys[begin:], []], pa.string()).slice(0, end - begin)
    assert hash_codes(chunked, []).tolist() == expected


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        ("plain", ["id"], ["plain"]),
        ("", ["id"], [""]),
        ("id:5", ["id"], ["id:5"]),
        ("a,b", ["id"], ["a,b"]),
        ("id:1,ts:2", ["id"], ["1"]),
        ("id:1,ts:2", ["ts", "id"], ["1", "2"]),
        ("id:1,ts:2", [], ["1", "2"]),
        ("id:1,ts:2", ["other"], ["id:1,ts:2"]),
        ("id:a,b,ts:2", ["id"], ["a,b"]),
        ("id:1,ts:2024-01-01 10:00:00", ["ts"], ["2024-01-01 10:00:00"]),
        ("ts:10:00:00,id:1", ["id"], ["1"]),
        ("id:__null__,ts:2", ["id"], [None]),
        ("id:__empty__,ts:2", ["id"], [""]),
        ("__null__", ["id"], ["__null__"]),
        ("a,b:1", ["a,b"], ["1"]),
        (",:", [], [""]),
        (":,", [""], [","]),
    ],
)
def test_composite_keys_are_hashed_with_hudis_quirks(key: str, fields: list[str], values: list[str | None]) -> None:
    assert hudi_values(key, fields) == values
    assert codes([key], fields) == [java_list_hash(values)]


def test_known_texts_have_javas_hash_codes() -> None:
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00
    assert codes(["hello"], []) == [31 + 99162322]


@pytest.mark.slow
def test_one_very_long_key_among_many_blocks_of_short_keys_is_hashed_right() -> None:
    keys = [f"k{i}" for i in range(30_000)] + ["x" * 300_000, "é" * 200_000] + [f"a:{i},b:é" for i in range(30_000)]
    expected = [java_list_hash(hudi_values(key, ["a"])) for key in keys]
    assert codes(keys, ["a"]) == expected


def test_a_bucket_id_is_the_hash_code_without_its_sign_modulo_the_number_of_buckets() -> None:
    keys = pa.array([f"key-{i}" for i in range(1000)])
    hashed = hash_codes(keys, [])
    assert (hashed < 0).any()
    for num_buckets in (1, 4, 7, 2**31 - 1):
        expected = [(int(code) & 0x7FFFFFFF) % num_buckets for code in hashed]
        ids = bucket_ids(keys, [], num_buckets)
        assert ids.dtype == np.int32
        assert ids.tolist() == expected


def test_no_keys_make_no_buckets() -> None:
    for nothing in (pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.nulls(0)):
        assert bucket_ids(nothing, ["id"], 4).tolist() == []


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["a", None]),
        pa.nulls(1),
        pa.array(["a", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None])),
        pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]),
    ],
)
def test_a_null_or_broken_key_is_refused(keys: pa.Array) -> None:
    with pytest.raises(RecordKeyError):
        bucket_ids(keys, [], 4)


def test_dictionary_values_that_no_row_uses_are_not_hashed() -> None:
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["id:1,ts:10:00", "id:1,ts:2", None]))
    assert bucket_ids(unused, ["id"], 100).tolist() == bucket_ids(pa.array(["id:1,ts:2"] * 2), ["id"], 100).tolist()


def test_less_than_one_bucket_or_a_bare_string_of_fields_is_refused() -> None:
    keys = pa.array(["a"])
    with pytest.raises(ValueError, match="at least one bucket"):
        bucket_ids(keys, ["id"], 0)
    with pytest.raises(TypeError, match="sequence"):
        bucket_ids(keys, "id", 4)
    with pytest.raises(TypeError, match="strings"):
        bucket_ids(pa.array([1]), ["id"], 4)


@pytest.mark.parametrize("length", [1, 2, 15, 36, 64, 65, 200])
@pytest.mark.parametrize("letters_of_keys", ["abc019-", "aé€", "a:,b"])
def test_keys_of_one_length_hash_as_those_of_different_lengths(length: int, letters_of_keys: str) -> None:
    generator = np.random.default_rng(length)
    some = ["".join(generator.choice(list(letters_of_keys), length)) for _ in range(300)]
    alike = pa.array(["other", *some, "other"]).slice(1, len(some))
    expected = [java_string_hash(key) for key in some]
    assert string_hash_codes(alike).tolist() == expected
    assert string_hash_codes(pa.array([*some, "other"])).tolist()[:-1] == expected
    if ":" not in letters_of_keys:
        assert hash_codes(alike, []).view(np.uint32).tolist() == [(31 + code) % 2**32 for code in expected]
