"""Tests the warnings of a registration about a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.model.table_errors import NotAHudiTableError
from service.registration.bucket_index import CONSISTENT_HASHING_FOLDER
from service.registration.detection import examine
from service.registration.discovery import summary_of
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path


def warnings(base: Path) -> tuple[str, ...]:
    return examine(str(base), allowed_roots=None, claimed=None, storage_options={}).profile.warnings


def test_a_table_without_meta_fields_is_told_what_works(tmp_path: Path) -> None:
    base = SmallTable(tmp_path / "t").base
    properties = base / ".hoodie" / "hoodie.properties"
    assert warnings(base) == ()
    properties.write_text(f"{properties.read_text()}hoodie.populate.meta.fields=false\n")
    (told,) = warnings(base)
    assert "no meta fields" in told
    assert "Clustering, changes of the number of buckets, partition TTL and repair are refused" in told


def test_a_table_of_consistent_hashing_is_told_what_hudi_does_to_its_ranges(tmp_path: Path) -> None:
    base = SmallTable(tmp_path / "t").base
    (base / CONSISTENT_HASHING_FOLDER).mkdir(parents=True)
    overwriting, statements = warnings(base)
    assert "insert_overwrite" in overwriting
    assert "hoodie.spark.sql.optimized.writes.enable=false" in statements


def test_properties_that_are_there_as_their_backup_are_read_and_told(tmp_path: Path) -> None:
    base = SmallTable(tmp_path / "t").base
    properties = base / ".hoodie" / "hoodie.properties"
    properties.rename(f"{properties}.backup")
    (told,) = warnings(base)
    assert "hoodie.properties.backup" in told
    assert summary_of(str(base), storage_options={}, allowed_roots=None).table_version == 9
    properties.with_name("hoodie.properties.backup").unlink()
    with pytest.raises(NotAHudiTableError):
        warnings(base)
