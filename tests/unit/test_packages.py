"""What a worker's Spark session fetches besides Hudi."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.hudi.session import HUDI_BUNDLE, S3A, _jars
from service.runtime import settings

if TYPE_CHECKING:
    import pytest


def test_without_more_packages_only_hudi_is_fetched() -> None:
    assert _jars([]) == {"spark.jars.packages": HUDI_BUNDLE}


def test_s3a_stands_for_hadoops_s3_without_amazons_big_bundle() -> None:
    jars = _jars([S3A, "org.example:more:1"])
    fetched = jars["spark.jars.packages"].split(",")
    assert fetched[0] == HUDI_BUNDLE
    assert "org.apache.hadoop:hadoop-aws:3.3.4" in fetched
    assert fetched[-1] == "org.example:more:1"
    assert "com.amazonaws:aws-java-sdk-bundle" in jars["spark.jars.excludes"].split(",")


def test_the_setting_is_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_PACKAGES", "s3a, org.example:more:1")
    assert settings.load().packages == ("s3a", "org.example:more:1")
    monkeypatch.delenv("GROUNDSKEEPER_PACKAGES")
    assert settings.load().packages == ()
