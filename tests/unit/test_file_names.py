from __future__ import annotations

import pytest

from jobs.format.file_names import (
    BaseFileName,
    LogFileName,
    bucket_of,
    is_change_log,
    is_fixed,
    parse_base_file_name,
    parse_log_file_name,
)

BUCKET = "00000003-7b54-4480-a1cc-9ab6421b14fc-0"


def test_a_base_file_name_has_a_file_id_a_token_and_an_instant() -> None:
    assert parse_base_file_name(f"{BUCKET}_8-13-23_20261121082913705.parquet") == BaseFileName(
        BUCKET, "8-13-23", "20261121082913705", "parquet"
    )


def test_the_token_of_flink_counts_the_batches_of_a_checkpoint() -> None:
    assert parse_base_file_name(f"{BUCKET}_0-1-0-12_2026.parquet") == BaseFileName(
        BUCKET, "0-1-0-12", "2026", "parquet"
    )


@pytest.mark.parametrize(
    "name", [".hoodie_partition_metadata", "part-0.parquet", f".{BUCKET}_8-13-23_2026.parquet.crc"]
)
def test_other_files_are_no_base_files(name: str) -> None:
    assert parse_base_file_name(name) is None


def test_a_log_name_has_a_version_and_perhaps_a_token() -> None:
    assert parse_log_file_name(f".{BUCKET}_2026.log.12_8-28-56") == LogFileName(BUCKET, "2026", 12, "8-28-56")
    assert parse_log_file_name(f".{BUCKET}_2026.log.1") == LogFileName(BUCKET, "2026", 1, "")


@pytest.mark.parametrize(
    "name", [f".{BUCKET}_2026.log.1_1-0-1.cdc", f".{BUCKET}_2026.log.1_1-0-1.crc", f"{BUCKET}.log.1"]
)
def test_change_data_and_other_files_are_no_logs(name: str) -> None:
    assert parse_log_file_name(name) is None
    assert is_change_log(name) == name.endswith(".cdc")
    assert not is_change_log(f".{BUCKET}_2026.log.1_1-0-1")


@pytest.mark.parametrize(
    ("file_id", "bucket"),
    [
        (BUCKET, 3),
        ("00000010-0000-0000-0000-000000000000-0", 10),
        ("48213377-0aaa-4bbb-8ccc-000000000001-0", 48213377),
        ("4a671051-5158-47c1-8ae5-c3bb11c6f6d0-0", None),
        ("00000003-7b54-4480-a1cc-9ab6421b14fc", 3),  # Hudi's bulk insert with its row writer
        ("00000003-7b54-4480-a1cc-9ab6421b14fc-", None),
        ("files-0000-0", None),
        ("٠٠٠٠٠٠٠٣-7b54-4480-a1cc-9ab6421b14fc-0", None),
    ],
)
def test_a_bucket_is_eight_digits_in_front_of_the_rest_of_a_uuid(file_id: str, bucket: int | None) -> None:
    assert bucket_of(file_id) == bucket


def test_the_file_ids_of_non_blocking_writers_are_fixed() -> None:
    assert is_fixed("00000010-0000-0000-0000-000000000000-0")
    assert not is_fixed(BUCKET)
    assert not is_fixed("4a671051-0000-0000-0000-000000000000-0")
