"""Computes the record keys that Hudi's key generators make of a row's columns, as far as the table's properties define
them.

A key of one field is its text, or `field:text` by the complex generator (Hudi 1.1 has an option for that); a key of
several fields is `one:text,other:text` (`KeyGenUtils`, 1.2.0). An option of the writers decides whether a timestamp is
a number of microseconds or milliseconds, or a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.meta_columns import RECORD_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.hudi.table import HudiTable

PLAIN, NAMED, OTHER = "plain", "named", "other"
MICROSECONDS, MILLISECONDS, NUMBER, TEXT = "microseconds", "milliseconds", "number", "text"
FORMS = (PLAIN, NAMED, OTHER, MICROSECONDS, MILLISECONDS, NUMBER, TEXT)
_TEXTS = frozenset({"string", "tinyint", "smallint", "int", "bigint", "boolean"})
"""Types whose values become the same text with every key generator."""


def form_of_key(table: HudiTable, frame: DataFrame) -> Column | None:
    """Returns the form of each row's record key: null for a row whose form is unknown, and None instead of a column if
    all forms are unknown. OTHER means that no generator makes this key of the row's columns."""
    fields = [name for name in table.record_key_fields if name]
    if not fields or not set(fields) <= set(frame.columns):
        return None  # The key is generated, or a field of a struct.
    types = dict(frame.dtypes)
    key, first = F.col(RECORD_KEY), F.col(f"`{fields[0]}`")
    if all(types[name] in _TEXTS for name in fields):
        named = F.concat_ws(",", *(F.concat(F.lit(f"{name}:"), _text(name)) for name in fields))
        form = F.when(key == named, NAMED)
        if len(fields) == 1:
            form = form.when(key == first.cast("string"), PLAIN)
        return form.otherwise(OTHER)
    if len(fields) == 1 and types[fields[0]] == "timestamp":
        value = F.regexp_replace(key, "^[A-Za-z_][^:]*:", "")
        number = F.when(value.rlike("^-?[0-9]+$"), value.cast("long"))
        form = F.when(number == 0, None).when(number == F.unix_micros(first), MICROSECONDS)
        form = form.when(number == F.unix_millis(first), MILLISECONDS)
        return form.when(number.isNotNull(), NUMBER).otherwise(TEXT)
    return None


def _text(name: str) -> Column:
    """Returns the text of a field in a key of several fields (`KeyGenUtils.NULL_RECORDKEY_PLACEHOLDER`, 1.2.0)."""
    text = F.col(f"`{name}`").cast("string")
    return F.when(text.isNull(), "__null__").when(text == "", "__empty__").otherwise(text)
