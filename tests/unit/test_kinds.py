"""Tests the declarations of the kinds of jobs, and that other code does not repeat them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobs.contract import JobKind, Table, WorkOrder
from jobs.kinds.registry import KINDS, typed
from jobs.kinds.sync import SyncParams
from service.cli.client.kinds import complete_param, parameters
from service.cli.main import app

ROOT = Path(__file__).parents[2]


def order(kind: JobKind, params: dict[str, Any]) -> WorkOrder:
    return WorkOrder("job_1", 1, kind, Table("/lake/t", "t"), params)


def test_a_worker_fills_in_what_an_older_service_leaves_out_and_ignores_what_a_newer_one_adds() -> None:
    given = typed(order(JobKind.SYNC, {"metastore_uris": "thrift://m:9083", "catalog": "lake"})).params

    assert given == SyncParams(metastore_uris="thrift://m:9083")
    assert given.create_database


def test_a_worker_refuses_parameters_that_it_cannot_read() -> None:
    with pytest.raises(ValueError, match="metastore_uris"):
        typed(order(JobKind.SYNC, {}))
    with pytest.raises(ValueError, match="exactly one of num_buckets and factor"):
        typed(order(JobKind.BUCKET_EXPANSION, {"factor": 2, "num_buckets": 8}))


@pytest.mark.parametrize("kind", JobKind)
def test_each_kind_is_described_for_people(kind: JobKind) -> None:
    declared = KINDS[kind]
    assert declared.kind is kind
    assert declared.summary.endswith(".")
    assert all(each.description for each in parameters(kind))
    assert not declared.policy or declared.policy.summary


def test_each_kind_has_its_own_letters_and_its_own_rank() -> None:
    assert len({each.letters for each in KINDS.values()}) == len(KINDS)
    turns = [each.policy.turn for each in KINDS.values() if each.policy]
    assert len(set(turns)) == len(turns)


def test_the_command_line_lists_and_completes_the_parameters_of_a_kind() -> None:
    shown = CliRunner().invoke(app, ["jobs", "kinds", "partition_ttl"]).output
    assert re.search(r"^limit_partitions +100 +Maximum number of partitions to drop", shown, re.MULTILINE)
    assert "consumers" not in shown

    class Context:
        params = {"kind": "compaction"}  # noqa: RUF012 - as typer has it

    names = [name for name, _ in complete_param(Context(), "lim")]  # type: ignore[arg-type]
    assert names == ["limit_bytes=", "limit_file_groups="]
    values = [value for value, _ in complete_param(Context(), "codec=")]  # type: ignore[arg-type]
    assert values == ["codec=gzip", "codec=snappy", "codec=zstd"]


NAMES = {
    JobKind.SYNC: r"\bSYNC\b|[\"'`]sync[\"'`]|\bsync:|\.sync\b(?!\(|\.)|\bSync(Params|Settings|Result)|^ +sync,$",
    JobKind.PARTITION_TTL: r"PARTITION_TTL|partition_ttl|[pP]artitionTtl",
}
"""The forms in which a source file names a kind."""

ITS_OWN = ("jobs/kinds/{}.py", "jobs/services/{}.py", "service/scheduling/{}.py")
"""The files of a kind: its declaration, its function and its policy."""

NAMING = {
    "jobs/contract.py": "the registration",
    "service/policies/settings.py": "the settings of its policy",
    "service/policies/policy.py": "the member of a policy that has these settings",
    "service/dashboard/upkeep.js": "the sentence about its policy",
    "service/cli/client/catalogs.py": "the command of this name for catalogs",
    "jobs/hudi/hive_sync.py": "Hudi's tool that it drives, with a method of that name",
    "service/simulation/counted.py": "the kinds that a simulation leaves out",
    "service/lake/avro_file.py": "the marker between blocks of an Avro file",
    "jobs/hudi/client.py": "the part of Hudi's client that it drives",
    "jobs/hudi/partition_ttl.py": "the part of Hudi's client that it drives",
    "jobs/protocol/partition_expiry.py": "which partitions have expired, which the job and Hudi's strategy decide",
}
"""Other files that name a kind, with the reasons."""


@pytest.mark.parametrize("kind", NAMES)
def test_only_the_modules_of_a_kind_name_it(kind: JobKind) -> None:
    """A new kind needs only its declaration, its function, its policy, its test, its guide and one registration."""
    pattern = re.compile(NAMES[kind], re.MULTILINE)
    found = {
        str(path.relative_to(ROOT))
        for folder in ("jobs", "service")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".js") and "generated" not in path.parts and pattern.search(path.read_text())
    }
    own = {each.format(kind.value) for each in ITS_OWN}

    assert own <= found
    assert found - own <= NAMING.keys()
