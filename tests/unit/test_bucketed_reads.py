"""The package for users' sessions repeats facts of the format, because it may not import them: they have to agree."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groundskeeper_client
from groundskeeper_spark.table import NotColocatedError, bucket_of_file, java_hash, numbers_of_config
from jobs.format.bucket_hash import hash_codes
from jobs.format.file_names import bucket_of
from jobs.format.hashing_config import HashingConfig

ROOT = Path(__file__).parents[2]
# A comma or colon splits a composite record key, and a single one with both of them.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=",:"), min_size=1)
# In a composite key these words stand for null and the empty text, so a read of such values does not use the buckets.
PARTS = TEXTS.filter(lambda text: text not in {"__null__", "__empty__"})


@given(TEXTS)
def test_the_hash_of_a_text_is_that_of_the_format(text: str) -> None:
    assert java_hash((text,)) == int(hash_codes(pa.array([text]), ["id"])[0]) & 0x7FFFFFFF


@given(PARTS, st.one_of(PARTS, st.none(), st.just("")))
def test_the_hash_of_a_composite_key_with_null_or_empty_parts_is_that_of_the_format(
    first: str, second: str | None
) -> None:
    written = {None: "__null__", "": "__empty__"}.get(second, second)
    code = int(hash_codes(pa.array([f"a:{first},b:{written}"]), ["a", "b"])[0])
    assert java_hash((first, second)) == code & 0x7FFFFFFF


@given(st.integers(0, 99_999_999), st.uuids())
def test_the_bucket_of_a_file_is_that_of_the_format(bucket: int, tail: object) -> None:
    file_id = f"{bucket:08d}{str(tail)[8:]}-0"
    for name in (f"{file_id}_0-1-2_20260101000000000.parquet", f".{file_id}_20260101000000000.log.1_0-1-2"):
        assert bucket_of_file(f"/table/d=1/{name}") == bucket_of(file_id) == bucket


@given(st.integers(1, 1000), st.lists(st.integers(1, 1000), min_size=1, max_size=4))
def test_the_numbers_of_a_hashing_config_are_those_of_the_format(default: int, numbers: list[int]) -> None:
    expressions = ";".join(f"d{at},{number}" for at, number in enumerate(numbers))
    content = json.dumps({"rule": "regex", "expressions": expressions, "defaultBucketNumber": default})
    config = HashingConfig.from_json("00000000000000", content.encode())
    of_partitions = [config.num_buckets_for(f"d{at}") for at in range(len(numbers))]
    assert numbers_of_config(content) == [config.default_num_buckets, *of_partitions]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"expressions": "a,b", "defaultBucketNumber": 4}'])
def test_a_damaged_hashing_config_is_not_co_located(content: str) -> None:
    with pytest.raises(NotColocatedError, match="damaged"):
        numbers_of_config(content)


def test_the_package_has_the_version_of_the_service() -> None:
    project = tomllib.loads((ROOT / "jobs/bucketed_reads/pyproject.toml").read_text())["project"]
    assert project["version"] == groundskeeper_client.__version__
