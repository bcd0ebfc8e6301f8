"""Compares `jobs.format.bucket_rules` with Hudi's own `RegexRuleEngine` on rules and partition paths of every kind."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from jobs.format.bucket_rules import BucketRules, BucketRulesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECES = [
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
            "".join(dice.choices(PIECES, k=dice.randint(0, 3)))
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
