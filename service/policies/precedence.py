"""Merges the three levels of a policy: the defaults, the patterns that match a table, and the table itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import msgspec

from service.policies.policy import SECTIONS, PatternPolicy, Policy, TableLevel

DEFAULT = "default"
TABLE = "table"
OWNER = "owner:"
TAG = "tag:"
PATTERN = "pattern "
"""The name of a pattern's level begins with this."""

_WILD = re.compile(r"\[[^\]]*\]|[*?]")


@dataclass(frozen=True)
class Effective:
    """The effective policy of a table. `sources` maps each setting, such as `compaction.commits`, to the level that
    sets it: `default`, `pattern <glob>` or `table`. `changed_at` is when a level that applies was last changed; None if
    only the defaults apply."""

    policy: Policy
    sources: Mapping[str, str]
    changed_at: datetime | None = None


@dataclass(frozen=True)
class Subject:
    """The name, the owner and the tags of a table, with which patterns are compared."""

    name: str
    owner: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Any) -> Subject:
        """Returns the subject of a registration, or of a row with these members."""
        return cls(table.name, table.owner, table.tags)

    def matches(self, pattern: str) -> bool:
        """Returns whether the pattern selects the table. A pattern is a glob for the table's name; or `owner:` and a
        glob for its owner; or `tag:` and a glob for the key of one of its tags, or for `key=value`."""
        if pattern.startswith(OWNER):
            return self.owner is not None and fnmatchcase(self.owner, pattern.removeprefix(OWNER))
        if pattern.startswith(TAG):
            wanted = pattern.removeprefix(TAG)
            tags = self.tags if "=" not in wanted else [f"{key}={value}" for key, value in self.tags.items()]
            return any(fnmatchcase(each, wanted) for each in tags)
        return fnmatchcase(self.name, pattern)


def effective(patterns: Iterable[PatternPolicy], subject: Subject, table: TableLevel | None) -> Effective:
    """Merges the levels. The last level that has a setting wins; lists are replaced as a whole."""
    matching = sorted((each for each in patterns if subject.matches(each.pattern)), key=_strength)
    levels = [(f"{PATTERN}{each.pattern}", each.settings) for each in matching]
    changes = [each.updated_at for each in matching]
    if table:
        levels.append((TABLE, table.settings))
        changes.append(table.updated_at)
    policy, sources = _merged(tuple((source, msgspec.json.encode(settings)) for source, settings in levels))
    return Effective(policy, sources, max(changes, default=None))


def effective_of_each(
    patterns: Sequence[PatternPolicy], levels: Mapping[str, TableLevel], subjects: Mapping[str, Subject]
) -> dict[str, Effective]:
    """Returns the effective policies by table id.

    If tables without their own settings match the same patterns, they share one policy, because merging takes longer
    than matching.
    """
    shared: dict[tuple[str, ...], Effective] = {}
    found = {}
    for table_id, subject in subjects.items():
        matching = [each for each in patterns if subject.matches(each.pattern)]
        key = tuple(each.pattern for each in matching)
        if table_id in levels:
            found[table_id] = effective(matching, subject, levels[table_id])
            continue
        if key not in shared:
            shared[key] = effective(matching, subject, None)
        found[table_id] = shared[key]
    return found


@lru_cache(maxsize=256)
def _merged(levels: Sequence[tuple[str, bytes]]) -> tuple[Policy, Mapping[str, str]]:
    """Returns the policy of these levels, and the sources of its settings. The weakest level comes first. The result is
    cached, because each decision needs it, and most tables have the same levels."""
    merged = Policy().to_json()
    sources = dict.fromkeys(_flat(merged), DEFAULT)
    for source, encoded in levels:
        settings = msgspec.json.decode(encoded)
        for key, value in settings.items():
            if key in SECTIONS:
                merged[key].update(value)
            else:
                merged[key] = value
        sources.update(dict.fromkeys(_flat(settings), source))
    return Policy.from_json(merged), sources


def _strength(pattern: PatternPolicy) -> tuple[int, int, int, str]:
    """Returns the sort key of a pattern; the pattern with the greatest key wins. If the precedence is the same,
    patterns of names win over those of tags, and these over those of owners; a glob that matches all names comes last.
    The pattern itself is part of the key only to make the order deterministic."""
    literal = len(_WILD.sub("", pattern.pattern))
    subject = next((rank for rank, prefix in enumerate((OWNER, TAG), 1) if pattern.pattern.startswith(prefix)), 3)
    return pattern.precedence, subject if literal else 0, literal, pattern.pattern


def _flat(settings: Mapping[str, Any]) -> list[str]:
    return [
        name
        for key, value in settings.items()
        for name in ([f"{key}.{each}" for each in value] if key in SECTIONS else [key])
    ]
