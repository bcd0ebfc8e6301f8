from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jobs.format.bucket_rules import BucketRulesError
from jobs.format.hashing_config import FOLDER, HashingConfig
from service.lake.hashing_config import HashingConfigs, read_hashing_configs
from service.lake.storage import open_storage
from service.lake.table_config import TableConfig
from service.lake.timeline import read_timeline
from service.model.storage_errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

BASELINE = "00000000000000"
CONFIG = TableConfig({"hoodie.table.version": "9"})


def read(table: Path, instants: list[str], timeline: list[str]) -> HashingConfigs:
    (table / FOLDER).mkdir(parents=True)
    (table / ".hoodie/timeline").mkdir()
    for number, instant in enumerate(instants, start=1):
        content = {"expressions": f".*,{number}", "defaultBucketNumber": 99, "rule": "regex", "version": 1}
        (table / FOLDER / f"{instant}.hashing_config").write_text(json.dumps({**content, "instant": instant}))
    for name in timeline:
        (table / ".hoodie/timeline" / name).touch()
    storage = open_storage(str(table), {})
    return read_hashing_configs(storage, CONFIG, read_timeline(storage, CONFIG))


def test_the_first_rule_found_in_the_partition_path_wins() -> None:
    config = HashingConfig.of("001", "dt=2026-01,8; ^dt=2026 , 16 ;\\d{4}$,32;;", 4)
    assert config.num_buckets_for("region=a/dt=2026-01-05") == 8
    assert config.num_buckets_for("dt=2026-02-01") == 16
    assert config.num_buckets_for("y=2025") == 32
    assert config.num_buckets_for("y=٢٠٢٥") == 4
    assert config.num_buckets_for("") == 4


def test_a_rule_of_minus_one_means_the_default() -> None:
    assert HashingConfig.of("001", "a,-1;.*,8", 4).num_buckets_for("a") == 4


@pytest.mark.parametrize(
    "expressions", ["", "a", "a,b,4", "a,four", "a,4_0", "(,4", "a,4;;b,4", "a,0", "a,-2", "[a-z&&[^b]],4"]
)
def test_rules_that_hudi_refuses_are_refused(expressions: str) -> None:
    with pytest.raises(BucketRulesError):
        HashingConfig.of("001", expressions, 4)


def test_rules_other_than_regex_are_refused() -> None:
    with pytest.raises(BucketRulesError):
        HashingConfig.of("001", "a,4", 4, "range")


def test_a_table_without_the_folder_has_no_hashing_config(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), {})
    assert read_hashing_configs(storage, CONFIG, read_timeline(storage, CONFIG)) == HashingConfigs()


def test_the_latest_config_of_a_completed_instant_is_in_force(tmp_path: Path) -> None:
    configs = read(tmp_path, [BASELINE, "005", "007"], ["005_006.replacecommit", "007.replacecommit.inflight"])
    assert configs.in_force is not None
    assert (configs.in_force.instant, configs.in_force.num_buckets_for("any")) == ("005", 2)
    assert configs.dangling == ()


def test_a_config_without_a_commit_is_dangling_and_not_in_force(tmp_path: Path) -> None:
    configs = read(tmp_path, [BASELINE, "005"], ["006_007.rollback"])
    assert configs.in_force is not None
    assert configs.in_force.instant == BASELINE
    assert configs.dangling == ("005",)


def test_a_config_from_before_the_active_timeline_is_in_force_if_no_history_reaches_back_to_it(tmp_path: Path) -> None:
    configs = read(tmp_path, [BASELINE, "005"], ["006_007.deltacommit"])
    assert configs.in_force is not None
    assert (configs.in_force.instant, configs.dangling) == ("005", ())


def test_a_folder_without_a_committed_config_is_unusable(tmp_path: Path) -> None:
    assert read(tmp_path, ["005"], ["005.replacecommit.requested"]) == HashingConfigs(unusable=True)


def test_a_damaged_config_is_a_storage_error(tmp_path: Path) -> None:
    read(tmp_path, [], [])
    (tmp_path / FOLDER / f"{BASELINE}.hashing_config").write_text("{}")
    storage = open_storage(str(tmp_path), {})
    with pytest.raises(StorageError, match="damaged"):
        read_hashing_configs(storage, CONFIG, read_timeline(storage, CONFIG))
