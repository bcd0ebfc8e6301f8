"""Tests the values of partitions, and the missing and additional partitions of a metastore."""

from __future__ import annotations

import pytest

from jobs.format.partition_values import PartitionChanges, changes, extractor_for, misfit, values_of
from jobs.job_params import PartitionExtractor

NONE, PARTS, WHOLE, DAY, HOUR = PartitionExtractor


@pytest.mark.parametrize(
    ("fields", "paths", "extractor"),
    [
        ([], [""], NONE),
        (["dt"], ["2026-01-01", "__HIVE_DEFAULT_PARTITION__"], PARTS),
        (["dt"], [], PARTS),
        (["a", "b"], ["a=1/b=2"], PARTS),
        (["dt"], ["2026/01/01", "2026/01/02"], DAY),
        (["dt"], ["dt=2026/01/01"], DAY),
        (["dt"], ["2026/01/01/23"], HOUR),
        (["dt"], ["2026/01/01", "default"], WHOLE),
        (["dt"], ["eu/berlin"], WHOLE),
    ],
)
def test_the_extractor_fits_the_paths(fields: list[str], paths: list[str], extractor: PartitionExtractor) -> None:
    assert extractor_for(fields, paths) is extractor


@pytest.mark.parametrize(
    ("extractor", "path", "values"),
    [
        (NONE, "", ()),
        (PARTS, "2026-01-01", ("2026-01-01",)),
        (PARTS, "region=eu/dt=2026-01-01", ("eu", "2026-01-01")),
        (PARTS, "eu/dt=2026-01-01", ("eu", "2026-01-01")),
        (WHOLE, "eu/berlin", ("eu-berlin",)),
        (DAY, "2026/01/31", ("2026-01-31",)),
        (DAY, "year=2026/month=01/day=31", ("2026-01-31",)),
        (HOUR, "2026/01/31/07", ("2026-01-31-07",)),
    ],
)
def test_the_values_are_those_that_hudi_takes(
    extractor: PartitionExtractor, path: str, values: tuple[str, ...]
) -> None:
    assert values_of(extractor, path) == values


@pytest.mark.parametrize(("extractor", "path"), [(DAY, "2026-01-31"), (HOUR, "2026/01/31"), (PARTS, "a=b=c")])
def test_a_path_of_another_form_has_no_values(extractor: PartitionExtractor, path: str) -> None:
    with pytest.raises(ValueError, match=path):
        values_of(extractor, path)


@pytest.mark.parametrize(
    ("values", "types", "reason"),
    [
        (("7", "2026-01-31"), ("int", "date"), None),
        (("__HIVE_DEFAULT_PARTITION__",), ("bigint",), None),
        (("-7",), ("bigint",), None),
        (("anything",), ("string",), None),
        (("2026-01-31",), ("bigint",), "'2026-01-31' for the type bigint"),
        (("20454",), ("date",), "'20454' for the type date"),
    ],
)
def test_a_value_must_be_one_of_its_column(values: tuple[str], types: tuple[str], reason: str | None) -> None:
    assert misfit(values, types) == reason


def test_only_different_partitions_are_changed() -> None:
    there = {
        ("1",): "file:/lake/trips/dt=1",
        ("2",): "hdfs://nameservice/lake/trips/dt=2/",
        ("3",): "/lake/old/dt=3",
        ("4",): "/lake/trips/dt=4",
    }
    wanted = {"dt=1": ("1",), "dt=2": ("2",), "dt=3": ("3",), "dt=5": ("5",)}
    found = changes("file:///lake/trips/", wanted, there)
    assert found == PartitionChanges(added=("dt=5",), moved=("dt=3",), dropped=(("4",),))
    assert not changes("/lake/trips", {"dt=1": ("1",)}, {("1",): "file:/lake/trips/dt=1"})
