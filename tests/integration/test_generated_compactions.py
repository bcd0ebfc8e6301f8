"""Tables of generated schemas, keys, partitions and histories are equal, whether Hudi's readers merge their slices or
Arrow does: in a compaction, and in what rewrites slices with logs.

The next command generates more tables, different ones in each run: GENERATED_TABLES=200 pytest -s --exhaustive
tests/integration/test_generated_compactions.py
"""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.contract import BucketIndex
from tests.integration import tables
from tests.integration.both_engines import compacted, require_equal, require_same_newest_files
from tests.integration.run import run_job
from tests.integration.test_generated_tables import EXAMPLES, History, generated, histories, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_numbers = count()
_taken: dict[str, int] = {}


@st.composite
def with_logs(draw: st.DrawFn) -> History:
    history = draw(histories())
    history.table_type = "MERGE_ON_READ"
    history.version = draw(st.sampled_from([6, 8, 9]))
    history.batches.append(("upsert", draw(st.permutations(history.late))[: draw(st.integers(1, len(history.late)))]))
    history.more["hoodie.logfile.data.block.format"] = draw(st.sampled_from(["avro", "avro", "parquet"]))
    return history


@pytest.mark.exhaustive
@pytest.mark.timeout(0 if EXAMPLES else 600)
@generated
@given(history=with_logs())
def test_a_generated_table_is_compacted_as_by_hudi(spark: SparkSession, tmp_path: Path, history: History) -> None:
    folder = tmp_path / f"g{next(_numbers)}"
    base = folder / "t"
    if write(spark, base, history) is None:
        return
    index = BucketIndex(history.num_buckets, history.keys)
    before = tables.snapshot(spark, base)
    hudi = compacted(spark, base, "hudi", index=index)
    arrow = compacted(spark, base, "auto", index=index)
    [how] = arrow.result.details["engines"]
    for reason in [each["type"] for each in how["reasons"]] or ["equal"]:
        _taken[reason] = _taken.get(reason, 0) + 1
    print(f"{how['engine']} {_taken}", *(each["detail"] for each in how["reasons"]))
    if how["engine"] == "arrow":
        require_equal(spark, hudi, arrow)
    assert tables.snapshot(spark, arrow.base) == before
    assert run_job(spark, arrow.base, "audit", index=index).details["clean"]
    shutil.rmtree(folder)


@pytest.mark.exhaustive
@pytest.mark.timeout(0 if EXAMPLES else 900)
def test_generated_tables_are_rewritten_as_from_the_rows_that_hudi_merges(spark: SparkSession, tmp_path: Path) -> None:
    merged: Counter[str] = Counter()

    @generated
    @given(history=with_logs(), kind=st.sampled_from(["bucket_expansion", "bucket_contraction", "sorted", "prepared"]))
    def require_same_rewrite(history: History, kind: str) -> None:
        base = tmp_path / f"r{next(_numbers)}" / "t"
        if kind == "bucket_contraction":
            history.num_buckets *= history.factor
        if write(spark, base, history) is None:
            return
        index = BucketIndex(history.num_buckets, history.keys)
        before = tables.snapshot(spark, base)
        job, params = {
            "sorted": ("clustering", {"sort_by": ["ts", "id"]}),
            "prepared": ("clustering", {"expansion_factor": history.factor}),
        }.get(kind, (kind, {"factor": history.factor}))
        copies = []
        for engine in ("hudi", "auto"):
            copy = shutil.copytree(base, base.parent / engine / base.name)
            details = run_job(spark, copy, job, {**params, "engine": engine}, index=index).details
            copies.append((copy, details["key_digest"]))
        merged.update({kind: details["merged"]["arrow"] > 0, "arrow": details["merged"]["arrow"]})
        merged.update(reason["type"] for reason in details["merged"]["reasons"])
        print(f"{kind} {details['merged']}, in all {dict(merged)}")
        (theirs, digest), (ours, our_digest) = copies
        assert digest == our_digest
        require_same_newest_files(theirs, ours)
        assert tables.snapshot(spark, ours) == before
        shutil.rmtree(base.parent)

    require_same_rewrite()
    assert merged["arrow"] > 0
