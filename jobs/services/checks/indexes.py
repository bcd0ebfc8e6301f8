"""Compares indexes with the rows to which they should lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.index_definitions import BLOOM_FILTERS, COLUMN_STATISTICS, EXPRESSION, RECORDS
from jobs.hudi import file_indexes, index_entries
from jobs.hudi.indexes import definitions
from jobs.kinds.results import Cure
from jobs.protocol import index_refusals
from jobs.services.checks import file_values
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


_EFFECT_OF_RECORDS = (
    "A writer that looks rows up in this index writes updates where no reader sees them, or adds a second row. A query"
    " of a record key may miss its row."
)
_REBUILD = (
    "A service without the index's options committed, or a key exists twice. Stop the writers, and build the metadata"
    " table anew.",
    Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
)
_OF_NEW_KEYS = (
    "Writers of a bucket index put new rows into logs, and Hudi 1.2 takes no new keys from logs, so every write leaves"
    " new keys out, and a rebuild does not last. Drop the index by an `index` job, and from the options of all"
    " writers. The bucket index finds the file of a key without it.",
    Cure(kind=JobKind.INDEX, params={"action": "drop", "index": "record"}),
)
_OF_TIMES = frozenset({"year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "hour", "minute", "second"})

_EFFECT_OF_VALUES = "A query that uses this index misses rows, or fails."


def entries(examined: Examined) -> Iterator[Finding]:
    """Compares the entries of the record index and of secondary indexes with the keys of the rows. Compares Bloom
    filters and expression indexes with the values in some files."""
    table, slices = examined.table, examined.slices
    loses_new_keys = index_refusals.loses_new_keys(table)
    for found in (*index_entries.compare(table, slices), *file_values.compare(table, slices)):
        items = {f"{found.index}: {each}": f"{each} is not in {found.index}" for each in found.missing}
        items |= {
            f"{found.index} beyond: {each}": f"{found.index} has {each}, which is not there" for each in found.beyond
        }
        hint, cure = _OF_NEW_KEYS if found.index == RECORDS and loses_new_keys else _REBUILD
        effect = _EFFECT_OF_RECORDS if found.index in (RECORDS, BLOOM_FILTERS) else _EFFECT_OF_VALUES
        yield Finding("index-differs-from-rows", "An index does not agree with the rows", items, effect, hint, cure)


def expressions(examined: Examined) -> Iterator[Finding]:
    """Finds expression indexes by which queries with another expression over the same column miss rows.

    Hudi 1.2.0 uses such an index for every filter on the column, whatever its expression (`ExpressionIndexSupport`). So
    with an index on `upper(region)` the filter `region = 'r3'` finds nothing, and with an index on `region` the filter
    `upper(region) = 'R3'` finds nothing. Indexes on numbers computed from a date, such as its year, did not show this
    in tests.
    """
    misleading = {
        definition.name: f"{definition.name} of {definition.function}({', '.join(definition.columns)})"
        for name, definition in definitions(examined.table).items()
        if name.startswith(EXPRESSION) and definition.function.lower() not in _OF_TIMES
    }
    if misleading:
        yield Finding(
            "expression-index-misleads",
            "Queries use an expression index for filters on other expressions",
            misleading,
            "A query with data skipping that filters the index's column by another expression, or by none, leaves out"
            " files that have its rows.",
            "Hudi 1.2 looks up the values of all filters of a column in its expression index. Read with"
            " `hoodie.enable.data.skipping=false`, or drop the index: `DROP INDEX <name> ON <table>`.",
        )


def mixed(examined: Examined) -> Iterator[Finding]:
    """Finds indexes whose partition of the metadata table also has files of an expression index."""
    partitions = sorted(examined.table.metadata_partitions & {BLOOM_FILTERS, COLUMN_STATISTICS})
    found = {name: file_indexes.mixed_in(examined.table, name) for name in partitions}
    if items := {name: f"{name} has {len(files)}, such as {files[0]}" for name, files in found.items() if files}:
        yield Finding(
            "expression-index-mixed-in",
            "Another index has files of an expression index",
            items,
            "Almost every write fails (`mismatched partition path`), and lookups miss entries. Queries find all rows.",
            "A clean by Hudi 1.2 writes entries of an expression index into `column_stats` or `bloom_filters`. Drop the"
            " expression index (`DROP INDEX`), or switch cleaning off in all writers. Then stop the writers, roll back"
            " those that failed, and build the metadata table anew.",
            Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
        )
