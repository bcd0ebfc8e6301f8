from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.storage.location import plain
from service.lake.location import canonical, check_allowed
from service.model.storage_errors import PathForbiddenError, PathNotFoundError, StorageUnsupportedError
from service.model.table_errors import NotAHudiTableError, TableUnsupportedError
from service.registration.detection import examine

if TYPE_CHECKING:
    from pathlib import Path


def test_all_spellings_of_one_folder_have_one_base_path(tmp_path: Path) -> None:
    table = tmp_path / "lake" / "trips"
    table.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    spellings = [
        f"{table}",
        f"{table}/",
        f"{table}//",
        f"/{table}",
        f"{table}/../trips/.",
        f"file:{table}",
        f"file://{table}/",
        f"FILE://localhost{table}",
        f"{tmp_path}/link/trips",
        f"file:{tmp_path}/link/trips/",
    ]
    assert {canonical(spelling) for spelling in spellings} == {str(table.resolve())}


@pytest.mark.parametrize("spelling", ["s3://bucket/a/b", "s3a://bucket/a/b/", "S3A://bucket//a/./c/../b"])
def test_both_names_of_s3_have_one_base_path(spelling: str) -> None:
    assert canonical(spelling) == "s3a://bucket/a/b"


@pytest.mark.parametrize("spelling", ["hdfs://nn/a/b", "HDFS://NN:8020//a/./c/../b/", "hdfs://nn/../a/b"])
def test_all_spellings_of_a_cluster_have_one_base_path(spelling: str) -> None:
    assert canonical(spelling) == plain(spelling) == "hdfs://nn/a/b"


def test_googles_buckets_have_one_spelling() -> None:
    assert canonical("GS://bucket//a/./b/") == plain("gs://bucket/a/b/") == "gs://bucket/a/b"


def test_containers_of_azure_have_one_spelling() -> None:
    expected = "abfss://lake@account.dfs.core.windows.net/A/b"
    for spelling in (f"{expected}/", "ABFS://Lake@ACCOUNT.dfs.core.windows.net//A/./c/../b"):
        assert canonical(spelling) == plain(spelling) == expected


def test_only_the_default_port_of_a_cluster_can_be_left_out() -> None:
    assert canonical("hdfs://nn:9000/a") == "hdfs://nn:9000/a"


def test_dots_do_not_lead_out_of_a_bucket() -> None:
    assert canonical("s3://bucket/../../other") == "s3a://bucket/other"
    assert canonical("s3://bucket/") == "s3a://bucket"


def test_percent_signs_stand_for_themselves(tmp_path: Path) -> None:
    assert canonical(f"file:{tmp_path}/dt=2026%2F01") == f"{tmp_path.resolve()}/dt=2026%2F01"


@pytest.mark.parametrize("location", ["adl://a/a", "wasbs://c@a/a", "http://169.254.169.254/", "file://elsewhere/a"])
def test_other_storages_are_refused(location: str) -> None:
    with pytest.raises(StorageUnsupportedError):
        canonical(location)


@pytest.mark.parametrize(
    "location",
    [
        "",
        "trips",
        "./trips",
        "file:trips",
        "file://",
        "/a\0b",
        "s3:/a",
        "s3://",
        "s3://../a",
        "gs:/a",
        "gs:///a",
        "abfss://lake@account/a",
        "abfss://account.dfs.core.windows.net/a",
        "abfss:/a",
        "abfss://lake@account.dfs.core.windows.net.example.org/a",
        "hdfs:/a",
        "hdfs:///a",
        "hdfs://u@nn/a",
    ],
)
def test_a_text_that_cannot_be_an_absolute_path_is_refused(location: str) -> None:
    with pytest.raises(PathNotFoundError):
        canonical(location)


def test_roots_are_compared_by_whole_segments() -> None:
    check_allowed("/data", ("/data",))
    check_allowed("/data/trips", ("/other", "/data/"))
    check_allowed("/data/trips", ("/",))
    check_allowed("s3a://bucket/lake/trips", ("s3://bucket/lake",))
    check_allowed("hdfs://nn/lake/trips", ("hdfs://NN:8020/lake/",))
    for outside in ("hdfs://nn/lake", "/data2", "/data2/trips", "/", "s3a://bucket2/lake", "s3a://bucket/lake2"):
        with pytest.raises(PathForbiddenError):
            check_allowed(outside, ("/data", "s3://bucket/lake"))


def test_no_root_allows_nothing_and_none_allows_all() -> None:
    with pytest.raises(PathForbiddenError):
        check_allowed("/data", ())
    check_allowed("/data", None)


def test_neither_a_link_nor_dots_lead_out_of_an_allowed_root(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    root.mkdir()
    secret.mkdir()
    (root / "link").symlink_to(secret)
    for escape in (f"{root}/link", f"{root}/../secret", f"file:{root}/link/", f"{root}/missing/../../secret"):
        with pytest.raises(PathForbiddenError):
            examine(escape, allowed_roots=(str(root),), claimed=None, storage_options={})


def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    check_allowed(canonical(f"{tmp_path}/root/trips"), (f"{tmp_path}/root/",))


def test_outside_the_roots_nobody_learns_what_exists(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(PathForbiddenError):
            examine(str(path), allowed_roots=("/data",), claimed=None, storage_options={})


def test_a_missing_path_and_a_folder_without_a_table_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError):
        examine(f"{tmp_path}/missing", allowed_roots=None, claimed=None, storage_options={})
    with pytest.raises(NotAHudiTableError):
        examine(str(tmp_path), allowed_roots=None, claimed=None, storage_options={})
    (tmp_path / "file").touch()
    with pytest.raises(NotAHudiTableError):
        examine(f"{tmp_path}/file", allowed_roots=None, claimed=None, storage_options={})


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "hoodie.table.version=5",
        "hoodie.table.version=nine",
        "hoodie.table.version=9\nhoodie.table.base.file.format=ORC",
        "hoodie.table.version=9\nhoodie.table.type=COPY_ON_READ",
        "hoodie.table.version=9\nhoodie.table.format=iceberg",
        "hoodie.table.version=9\nhoodie.bootstrap.base.path=/old",
    ],
)
def test_kinds_of_tables_that_are_not_served_are_refused(tmp_path: Path, properties: str) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(properties)
    with pytest.raises(TableUnsupportedError):
        examine(str(tmp_path), allowed_roots=None, claimed=None, storage_options={})


@pytest.mark.parametrize(
    "location",
    ["/lake/trips", "/lake/trips/", "file:/lake/trips", "file:///lake/trips/", "FILE://localhost/lake/trips"],
)
def test_without_links_the_plain_spelling_is_the_canonical_one(location: str) -> None:
    assert plain(location) == canonical(location) == "/lake/trips"


def test_the_plain_spelling_of_s3_is_the_canonical_one() -> None:
    assert plain("s3://lake/trips/") == canonical("s3://lake/trips/") == "s3a://lake/trips"


@pytest.mark.parametrize("location", ["hdfs:///trips", "abfss://c@a/trips"])
def test_a_text_that_cannot_be_a_base_path_stays_as_it_is(location: str) -> None:
    assert plain(location) == location
