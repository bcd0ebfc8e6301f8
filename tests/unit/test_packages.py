"""Tests which packages are installed, which ones a worker's Spark session fetches besides Hudi, and their sources."""

from __future__ import annotations

import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from jobs.hudi import google_connector
from jobs.hudi.executors import _OF_TASKS
from jobs.hudi.session import ABFS, HUDI_BUNDLE, S3A, BundleMissingError, _jars
from service.model.errors import SettingsError
from service.runtime import settings
from tests.support import packed_environment

ROOT = Path(__file__).parents[2]
# Ivy's file name of the bundle.
BUNDLE = "org.apache.hudi_hudi-spark3.5-bundle_2.12-1.2.0.jar"
HADOOP_AWS = "org.apache.hadoop_hadoop-aws-3.3.4.jar"


def test_pythons_without_distutils_get_it_as_long_as_pyspark_imports_it() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    needs = [need for need in map(Requirement, declared) if need.name == "setuptools"]
    pyspark = find_spec("pyspark")
    assert pyspark
    assert pyspark.origin
    importing = [
        file
        for file in (Path(pyspark.origin).parent / "sql/pandas").glob("*.py")
        if "from distutils" in file.read_text()
    ]
    if importing:
        assert any(not need.marker or need.marker.evaluate({"python_version": "3.12"}) for need in needs), importing
    else:
        assert not needs


def test_tasks_on_executors_import_only_packages_that_the_guide_names(tmp_path: Path) -> None:
    # Executors have these two from Spark.
    python = packed_environment.make(tmp_path, "pyspark", "py4j")
    imports = f"import sys; sys.path.append({str(ROOT)!r}); import {_OF_TASKS}"
    ran = subprocess.run([python, "-I", "-c", imports], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_without_more_packages_only_hudi_is_fetched() -> None:
    assert _jars([]) == {"spark.jars.packages": HUDI_BUNDLE}


def test_s3a_stands_for_hadoops_s3_without_amazons_big_bundle() -> None:
    jars = _jars([S3A, "org.example:more:1"])
    fetched = jars["spark.jars.packages"].split(",")
    assert fetched[0] == HUDI_BUNDLE
    assert "org.apache.hadoop:hadoop-aws:3.3.4" in fetched
    assert fetched[-1] == "org.example:more:1"
    assert "com.amazonaws:aws-java-sdk-bundle" in jars["spark.jars.excludes"].split(",")


def test_abfs_stands_for_hadoops_azure_beside_s3a_too(tmp_path: Path) -> None:
    hadoop_azure = "org.apache.hadoop:hadoop-azure:3.3.4"
    jars = _jars([ABFS])
    assert jars["spark.jars.packages"] == f"{HUDI_BUNDLE},{hadoop_azure}"
    assert "com.google.guava:guava" in jars["spark.jars.excludes"].split(",")
    jars = _jars([S3A, ABFS, "org.example:more:1"])
    fetched = jars["spark.jars.packages"].split(",")
    assert {hadoop_azure, "org.apache.hadoop:hadoop-aws:3.3.4", "org.example:more:1"} < set(fetched)
    assert "com.amazonaws:aws-java-sdk-bundle" in jars["spark.jars.excludes"].split(",")
    # The dependencies of other packages are not excluded.
    assert "com.google.guava:guava" not in _jars([S3A, "org.example:more:1"])["spark.jars.excludes"].split(",")

    (tmp_path / BUNDLE).touch()
    (tmp_path / "hadoop-azure-3.3.4.jar").touch()
    assert "spark.jars.packages" not in _jars([ABFS], tmp_path)


def test_the_setting_is_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_PACKAGES", "s3a, org.example:more:1")
    assert settings.load().packages == ("s3a", "org.example:more:1")
    monkeypatch.delenv("GROUNDSKEEPER_PACKAGES")
    assert settings.load().packages == ()


def test_jars_of_the_folder_are_not_fetched(tmp_path: Path) -> None:
    (tmp_path / BUNDLE).touch()
    (tmp_path / "README").touch()
    assert _jars([], tmp_path) == {"spark.jars": str(tmp_path / BUNDLE)}
    fetched = _jars([S3A, "org.example:more:1"], tmp_path)["spark.jars.packages"].split(",")
    assert HUDI_BUNDLE not in fetched
    assert "org.apache.hadoop:hadoop-aws:3.3.4" in fetched

    (tmp_path / HADOOP_AWS).touch()
    assert _jars([S3A], tmp_path) == {"spark.jars": f"{tmp_path / HADOOP_AWS},{tmp_path / BUNDLE}"}
    assert _jars([S3A, "org.example:more:1"], tmp_path)["spark.jars.packages"] == "org.example:more:1"


def test_jars_without_a_coordinate_are_named_by_their_files(tmp_path: Path) -> None:
    assert _jars([], None, [tmp_path / "x.jar"])["spark.jars"] == str(tmp_path / "x.jar")
    (tmp_path / BUNDLE).touch()
    (tmp_path / google_connector.JAR).touch()
    assert google_connector.fetched(tmp_path, tmp_path / "no java", "") == tmp_path / google_connector.JAR
    assert str(tmp_path / google_connector.JAR) in _jars([], tmp_path)["spark.jars"]


def test_a_folder_without_the_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hudi-spark3.5-bundle_2.12-1.1.0.jar").touch()
    with pytest.raises(BundleMissingError, match=r"bundle_2\.12-1\.2\.0\.jar"):
        _jars([], tmp_path)


def test_the_folder_of_jars_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_JARS", str(tmp_path))
    assert settings.load().jars == tmp_path
    monkeypatch.setenv("GROUNDSKEEPER_JARS", str(tmp_path / "none"))
    with pytest.raises(SettingsError, match=r"GROUNDSKEEPER_JARS: .*none is no folder"):
        settings.load()
