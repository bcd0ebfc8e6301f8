"""The owner and the tags of a table: which texts are allowed, and filters of tables by owner and tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from jobs.redaction import redacted

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?"
_TEXT = r"[^\x00-\x1f\x7f]"

TAG_KEY = rf"^{_KEY}$"
TAG_VALUE = rf"^{_TEXT}{{0,128}}$"
TAG = rf"^{_KEY}(?:={_TEXT}{{0,128}})?$"
"""The form of a tag in a filter: a key, or a key with its value."""
OWNER = rf"^{_TEXT}{{1,200}}$"
MOST_TAGS = 32
MOST_NAMED = 20
"""A filter names at most this many owners, and at most this many tags."""


def fits(value: str, pattern: str) -> bool:
    """Returns whether a value that does not come from a user matches this pattern, and contains no secret."""
    return re.fullmatch(pattern, value) is not None and redacted(value) == value


@dataclass(frozen=True)
class TableSelection:
    """A filter of tables. Empty collections select all tables."""

    owners: Collection[str] = ()  # The table's owner is one of these.
    tags: Collection[str] = ()  # The table has all of these tags. Each is `key` or `key=value`.

    @property
    def is_open(self) -> bool:
        return not (self.owners or self.tags)

    def selects(self, owner: str | None, tags: Mapping[str, str]) -> bool:
        return (not self.owners or owner in self.owners) and all(has_tag(tags, each) for each in self.tags)


def has_tag(tags: Mapping[str, str], wanted: str) -> bool:
    """Returns whether a table has the tag `key`, whatever its value, or `key=value`."""
    key, equals, value = wanted.partition("=")
    return key in tags and (not equals or tags[key] == value)


def tag_words(tags: Mapping[str, str]) -> list[str]:
    """Returns the tags as people write them: `key=value`, or `key` where the value is empty."""
    return [f"{key}={value}" if value else key for key, value in sorted(tags.items())]
