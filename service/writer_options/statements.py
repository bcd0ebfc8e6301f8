"""The SQL statements that create a table in the catalog of an engine, over existing files."""

from __future__ import annotations

import re

from jobs.contract import WriterEngine
from service.writer_options.written_table import Target

_TYPES = {
    "bool": "BOOLEAN",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "binary": "BYTES",
    "date32[day]": "DATE",
}
"""Flink's types by Arrow's types. Types of times are left out, because their type in Flink depends on Hudi's version
and options."""

_DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)")


def creating(target: Target, engine: WriterEngine, with_clause: str) -> str | None:
    """Returns the statement `CREATE TABLE`. The user has to replace words in angle brackets. Returns None for
    DataFrames, for a table that does not exist yet, and for Flink if the table's columns are not known."""
    if not target.exists or engine is WriterEngine.SPARK:
        return None
    name = _name(target.name or target.base_path.rpartition("/")[2])
    if engine is WriterEngine.SPARK_SQL:
        # Hudi reads the columns from the table.
        location = target.base_path.replace("\\", "\\\\").replace("'", "\\'")
        return f"CREATE TABLE IF NOT EXISTS {name} USING hudi LOCATION '{location}';"
    if not target.columns:
        return None
    known = {column: _type(kind) for column, kind in target.columns}
    columns = known | {column: "<its type>" for column in target.partition_fields if column not in known}
    lines = [f"{_name(column)} {kind}" for column, kind in columns.items()]
    if target.record_key_fields:
        lines.append(f"PRIMARY KEY ({_names(target.record_key_fields)}) NOT ENFORCED")
    partitioned = f" PARTITIONED BY ({_names(target.partition_fields)})" if target.partition_fields else ""
    listed = ",\n".join(f"  {line}" for line in lines)
    return f"CREATE TABLE {name} (\n{listed}\n){partitioned} {with_clause};"


def _type(arrow: str) -> str:
    if (decimal := _DECIMAL.fullmatch(arrow)) is not None:
        return f"DECIMAL({decimal[1]}, {decimal[2]})"
    return _TYPES.get(arrow, f"<{arrow}>")


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(map(_name, columns))


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"
