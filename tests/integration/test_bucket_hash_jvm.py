"""Tests that `jobs.format` agrees with Hudi on the buckets of thousands of keys of every kind (`BucketIdentifier`), and
on the numbers of buckets of partitions."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from jobs.format.bucket_hash import RecordKeyError, bucket_ids
from jobs.format.bucket_rules import BucketRules, BucketRulesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PIECES = [
    "",
    "a",
    "k1",
    "é",
    "日本",
    "\U0001f600",
    "\U0010ffff",
    ",",
    ":",
    " ",
    "2024-01-01 10:00:00",
    "x,y",
    "=",
    "\x00",
]
VALUES = ["__null__", "__empty__"]
FIELDS = ["id", "ts", "ïd", "\U0001f600"]


def key_of_any_kind(dice: random.Random) -> str:
    def value() -> str:
        return dice.choice(VALUES) if dice.random() < 0.1 else "".join(dice.choices(PIECES, k=dice.randint(0, 4)))

    kind = dice.random()
    if kind < 0.2:
        return f"key-{dice.randint(0, 10**9)}"
    if kind < 0.4:
        return value()
    fields = dice.sample(FIELDS, k=dice.randint(1, len(FIELDS)))
    return ",".join(f"{field}:{value()}" for field in fields)


def keys_with(hash_fields: str, count: int, dice: random.Random) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        key = key_of_any_kind(dice)
        # Hudi never returns on other keys.
        with suppress(RecordKeyError):
            bucket_ids(pa.array([key]), hash_fields.split(","), 1)
            found.append(key)
    return found


@pytest.mark.parametrize("count", [1_000, pytest.param(4_000, marks=pytest.mark.exhaustive)])
def test_bucket_ids_are_those_of_hudi(spark: SparkSession, count: int) -> None:
    dice = random.Random(35)
    keys = {
        fields: keys_with(fields, count, dice) for fields in ("id", "ts,id", "id,ts,ïd,\U0001f600", "", "\U0001f600")
    }
    num_buckets = {fields: dice.randint(2, 10_000) for fields in keys}
    asked = [(fields, key, num_buckets[fields]) for fields, some in keys.items() for key in some]
    frame = pd.DataFrame(asked, columns=["fields", "key", "num_buckets"]).reset_index(names="n")
    spark.createDataFrame(frame).createOrReplaceTempView("keys")
    rows = spark.sql(
        "SELECT fields, reflect('org.apache.hudi.index.bucket.BucketIdentifier', 'getBucketId', key, fields,"
        " cast(num_buckets as int)) AS bucket FROM keys ORDER BY n"
    ).collect()
    for fields, some in keys.items():
        of_hudi = [int(row.bucket) for row in rows if row.fields == fields]
        assert bucket_ids(pa.array(some), fields.split(","), num_buckets[fields]).tolist() == of_hudi, fields


PIECES_OF_PATHS = [
    "a",
    "dt=",
    "\\d",
    "\\w+",
    "\\s",
    ".*",
    "^",
    "$",
    "[a-c]",
    "(?:eu|us)/",
    "é",
    "2026",
    "-01",
    "{2}",
    "(?=a)",
    "",
]
NUMBERS = ["4", " 8 ", "+16", "-1", "0", "-2", "4_0", "x", "", "9999999999", "٤"]
SEPARATORS = [";", ";", ";", "; ", ";;"]
PATHS = ["", "a", "dt=2026-01-01", "eu/de", "us/a", "é", "aaa", "b c", "٢٠٢٦", "_", "2026", "a\u2028b"]
DEFAULT = 3
ROUNDS, MANY_ROUNDS = 200, 1000


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=pytest.mark.exhaustive)])
def test_rules_are_read_as_hudi_reads_them(spark: SparkSession, rounds: int) -> None:
    engine = spark._jvm.org.apache.hudi.index.bucket.partition.RegexRuleEngine
    dice = random.Random(7)
    accepted = 0
    for _ in range(rounds):
        text = "".join(
            "".join(dice.choices(PIECES_OF_PATHS, k=dice.randint(0, 3)))
            + dice.choice([",", ",", ",", ",", ", ", ",,", ""])
            + dice.choice(NUMBERS[:4] if dice.random() < 0.8 else NUMBERS)
            + dice.choice(SEPARATORS)
            for _ in range(dice.randint(1, 3))
        )
        if dice.random() < 0.5:
            text = text.rstrip(";")
        try:
            ours = BucketRules.parse(text, DEFAULT)
        except BucketRulesError as error:
            # Only these two checks are stricter than those of Hudi.
            if "at least one bucket" not in str(error) and "the regex" not in str(error):
                with pytest.raises(Py4JJavaError):
                    engine(text)
            continue
        accepted += 1
        theirs = engine(text)
        for path in PATHS:
            number = theirs.calculateNumBuckets(path)
            assert ours.buckets_of(path) == (DEFAULT if number == -1 else number), (text, path)
    assert accepted > rounds / 4
