"""Cleanings beside an expression index, which a worker would refuse, are not started by policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from jobs.format.index_definitions import DEFINITIONS_FILE
from service.catalog import table_store
from service.db.engine import writing
from tests.integration.control_plane.operated import HOUR, Operated, Table, operating
from tests.support.small_table import base_file, bucket_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

A = bucket_id(0)
EXPRESSION = {"indexType": "COLUMN_STATS", "indexFunction": "year", "sourceFields": ["day"], "indexOptions": {}}


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[Operated]:
    with operating(tmp_path) as found:
        yield found


def indexed(table: Table, partitions: str, kind: str = "COLUMN_STATS") -> None:
    """Gives the table these partitions of the metadata table, and an expression index of this type."""
    file = table.files.base / DEFINITIONS_FILE
    file.parent.mkdir(exist_ok=True)
    definitions = {"expr_index_day": {**EXPRESSION, "indexType": kind}}
    file.write_text(json.dumps({"indexDefinitions": definitions}))
    with (table.files.base / ".hoodie/hoodie.properties").open("a") as properties:
        properties.write(f"hoodie.table.metadata.partitions={partitions}\n")


def old_versions(table: Table, number: int) -> None:
    for _ in range(number):
        instant = table.instant()
        table.commit({base_file(A, instant): 10}, instant=instant)


def decision_of(operated: Operated, table: Table) -> tuple[str, str, str]:
    operated.poll()
    operated.service.plan()
    every = operated.call("GET", f"/v1/tables/{table.id}/decisions", 200)["items"]
    found: dict[str, Any] = next(each for each in every if each["kind"] == "cleaning")
    return found["verdict"], found["code"], found["because"]


def test_a_policy_starts_no_cleaning_beside_an_expression_index_until_it_is_dropped(operated: Operated) -> None:
    table = operated.table()
    with writing(operated.engine) as connection:
        table_store.set_profile(connection, table.id, {"table_version": 9})
    indexed(table, "files,column_stats,expr_index_day")
    old_versions(table, 30)
    dead = table.instant()
    table.files.begin(dead, heartbeat=operated.clock().timestamp())
    verdict, code, because = decision_of(operated, table)
    assert (verdict, code) == ("skip", "expression-index")
    assert "expr_index_day in column_stats" in because
    assert "drop the expression index" in because
    assert operated.call("GET", f"/v1/jobs?table_id={table.id}&kind=cleaning", 200)["items"] == []
    # The problems do not advise what would be refused.
    found = operated.one("policy-cannot-act")
    assert (found["evidence"]["service"], found["evidence"]["code"]) == ("cleaning", "expression-index")
    assert operated.problems(kind="cleaning-behind") == []
    operated.poll(2 * HOUR)
    operated.service.plan()
    action = operated.one("dead-writer")["action"]["body"]
    assert (action["kind"], action["params"]) == ("rollback", {"instant": dead})

    # A definition of another type, under the same name, harms nothing.
    indexed(table, "files,column_stats,expr_index_day", kind="BLOOM_FILTERS")
    old_versions(table, 1)
    assert decision_of(operated, table)[0] in ("run", "wait")
    indexed(table, "files,bloom_filters,expr_index_day", kind="BLOOM_FILTERS")
    old_versions(table, 1)
    profile = operated.call("GET", f"/v1/tables/{table.id}", 200)["profile"]
    operated.poll()
    assert profile["indexes_mixed_by_cleans"] == []
    profile = operated.call("GET", f"/v1/tables/{table.id}", 200)["profile"]
    assert profile["indexes_mixed_by_cleans"] == ["expr_index_day in bloom_filters"]
    indexed(table, "files,bloom_filters")
    old_versions(table, 1)
    operated.poll()
    profile = operated.call("GET", f"/v1/tables/{table.id}", 200)["profile"]
    assert profile["indexes_mixed_by_cleans"] == []
