"""Tests which rows lie in the folder of a partition that they do not name, by the partitions of all file groups."""

from __future__ import annotations

import pickle

import pyarrow as pa

from jobs.services.checks.places import Places

FILES = ["a-0_1-2-3_001.parquet", "a-0_1-2-3_001.parquet", "b-0", "c-0", ""]


def test_a_row_is_elsewhere_if_its_file_group_is_in_other_partitions_only() -> None:
    places = Places.of([("dt=1", "a-0"), ("dt=2", "b-0"), ("dt=3", "b-0")])
    partitions = pa.array(["dt=1", "dt=2", "dt=3", "dt=9", "dt=1"])
    assert places.elsewhere(partitions, pa.array(FILES)).to_pylist() == [False, True, False, False, False]


def test_without_file_groups_no_row_is_elsewhere() -> None:
    assert Places.of([]).elsewhere(pa.array(["dt=1"]), pa.array(["a-0"])).to_pylist() == [False]


def test_each_of_many_file_groups_takes_16_bytes() -> None:
    places = Places.of((f"dt={number % 7}", f"{number:08d}-0") for number in range(200_000))
    names = [f"{number:08d}-0" for number in (0, 99_999, 100_001, 199_999)]
    there = [f"dt={int(name[:8]) % 7}" for name in names]
    assert not any(places.elsewhere(pa.array(there), pa.array(names)).to_pylist())
    assert all(places.elsewhere(pa.array(["dt=8"] * 4), pa.array(names)).to_pylist())
    assert len(pickle.dumps(places)) < 200_000 * 16 + 1000
