from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.clustering_refusals import refusal
from jobs.contract import BucketIndex, JobKind, Table, WorkOrder
from jobs.errors import RefusedError
from jobs.kinds.clustering import ClusteringParams
from jobs.kinds.registry import KINDS, typed
from jobs.services import clustering

SCHEMA = json.dumps({"type": "record", "name": "r", "fields": [{"name": "city", "type": "string"}]})


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_table_of_consistent_hashing_that_was_registered_without_an_index_is_not_sorted(dry_run: bool) -> None:
    """The sort in Hudi's clustering would break the table's buckets."""
    declared = Table("/lake/t", "t")
    table: Any = SimpleNamespace(
        file_slices=lambda: [], schema=lambda: SCHEMA, declared=declared, has_consistent_hashing=lambda: True
    )
    plan = WorkOrder("job_1", 1, JobKind.CLUSTERING, declared, ClusteringParams(sort_by=("city",)), dry_run=dry_run)
    report: Any = SimpleNamespace(step=lambda _step: None)
    if dry_run:
        refusals = clustering.run(table, plan, report).details.refusals or ()
        assert [each.type for each in refusals] == ["consistent-hashing"]
    else:
        with pytest.raises(RefusedError) as caught:
            clustering.run(table, plan, report)
        assert caught.value.problem().type == "consistent-hashing"


@pytest.mark.parametrize(
    ("index", "params"),
    [(BucketIndex(4, ("id",)), {"plans": ["001"]}), (None, {"expansion_factor": 2}), (None, {"expansion_factor": 4})],
)
def test_worker_and_service_refuse_the_same_clusterings(index: BucketIndex | None, params: dict[str, Any]) -> None:
    declared = Table("/lake/t", "t", index=index)
    table: Any = SimpleNamespace(
        file_slices=lambda: [],
        schema=lambda: SCHEMA,
        declared=declared,
        has_consistent_hashing=lambda: False,
        instants=lambda: [],
    )
    report: Any = SimpleNamespace(step=lambda _step: None)
    with pytest.raises(RefusedError) as caught:
        clustering.run(table, typed(WorkOrder("job_1", 1, JobKind.CLUSTERING, declared, params)), report)
    assert caught.value.problem() == refusal(KINDS[JobKind.CLUSTERING].read(params), has_index=index is not None)
