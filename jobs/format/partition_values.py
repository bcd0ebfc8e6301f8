"""Extracts the values of partitions from their paths like Hudi's `PartitionValueExtractor`s (1.2,
`org.apache.hudi.hive`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlsplit

from jobs.job_params import PartitionExtractor

CLASSES = {
    PartitionExtractor.NONE: "NonPartitionedExtractor",
    PartitionExtractor.PARTS: "MultiPartKeysValueExtractor",
    PartitionExtractor.WHOLE: "SinglePartPartitionValueExtractor",
    PartitionExtractor.DAY: "SlashEncodedDayPartitionValueExtractor",
    PartitionExtractor.HOUR: "SlashEncodedHourPartitionValueExtractor",
}
_DAY = re.compile(r"([^/=]+=)?\d{4}/([^/=]+=)?\d{2}/([^/=]+=)?\d{2}", re.ASCII)
_HOUR = re.compile(rf"{_DAY.pattern}/([^/=]+=)?\d{{2}}", re.ASCII)
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# Names for null (`PartitionPathEncodeUtils.DEFAULT_PARTITION_PATH`, and Hudi's older one).
NULL = "__HIVE_DEFAULT_PARTITION__"
_NULLS = frozenset({NULL, "default"})


@dataclass(frozen=True)
class PartitionChanges:
    """Paths of partitions to add and to move, and the values of those to drop."""

    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    dropped: tuple[tuple[str, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.moved or self.dropped)


def extractor_for(fields: Sequence[str], paths: Sequence[str]) -> PartitionExtractor:
    """Returns the extractor that fits these paths."""
    if not fields:
        return PartitionExtractor.NONE
    if len(fields) > 1 or not any("/" in path for path in paths):
        return PartitionExtractor.PARTS
    if all(_DAY.fullmatch(path) for path in paths):
        return PartitionExtractor.DAY
    if all(_HOUR.fullmatch(path) for path in paths):
        return PartitionExtractor.HOUR
    return PartitionExtractor.WHOLE


def values_of(extractor: PartitionExtractor, path: str) -> tuple[str, ...]:
    """Returns the values in a path. Raises ValueError if the extractor does not fit the path."""
    if extractor is PartitionExtractor.NONE:
        return ()
    if extractor is PartitionExtractor.WHOLE:
        return (path.replace("/", "-"),)
    parts = path.split("/")
    values = tuple(part.partition("=")[2] if "=" in part else part for part in parts)
    if extractor is PartitionExtractor.PARTS:
        if any(part.count("=") > 1 for part in parts):
            raise ValueError(f"{path}: a part has two equals signs")
        return values
    pattern = _DAY if extractor is PartitionExtractor.DAY else _HOUR
    if not pattern.fullmatch(path):
        raise ValueError(f"{path} is no {extractor.value}")
    return ("-".join(values),)


def misfit(values: Sequence[str], types: Sequence[str]) -> str | None:
    """Returns the first value that does not fit the type of its column, with that type; None if all fit."""
    for value, kind in zip(values, types, strict=True):
        if value in _NULLS:
            continue
        if kind in _INTEGERS and not re.fullmatch(r"-?\d{1,19}", value, re.ASCII):
            return f"'{value}' for the type {kind}"
        if kind == "date":
            try:
                date.fromisoformat(value)
            except ValueError:
                return f"'{value}' for the type date"
    return None


def without_scheme(location: str) -> str:
    """Returns the path of a location without its scheme, for a comparison like Hudi's
    (`FSUtils.comparePathsWithoutScheme`)."""
    has_scheme = "://" in location or location.startswith("file:")
    return (urlsplit(location).path if has_scheme else location).rstrip("/")


def changes(
    base_path: str, partitions: Mapping[str, tuple[str, ...]], in_metastore: Mapping[tuple[str, ...], str]
) -> PartitionChanges:
    """Compares the partitions of a table (values by path) with those of a metastore (locations by values)."""
    root = without_scheme(base_path)
    wanted = {values: path for path, values in partitions.items()}
    return PartitionChanges(
        added=tuple(path for values, path in wanted.items() if values not in in_metastore),
        moved=tuple(
            path
            for values, path in wanted.items()
            if values in in_metastore and without_scheme(in_metastore[values]) != f"{root}/{path}"
        ),
        dropped=tuple(values for values in in_metastore if values not in wanted),
    )
