"""Rules such as `{team}/{table}` derive the owner and the tags of a table from its path relative to the root of a
search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.catalog.ownership import MOST_TAGS, OWNER, TAG_KEY, TAG_VALUE, fits

_WORD = re.compile(r"([^{}*]*)\{([^{}*]+)\}([^{}*]*)")
_OWNER = "owner"


@dataclass(frozen=True)
class Given:
    owner: str | None
    tags: dict[str, str]


@dataclass(frozen=True)
class PathRule:
    """A rule has a part for each folder of a path. A part is a name; `*` for any folder; `**` for any number of
    folders; or a name with `{key}` in it. The text at the place of `{key}` is the value of the tag `key`; the text at
    the place of `{owner}` is the owner."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> PathRule:
        """Raises ValueError."""
        parts = tuple(text.strip("/").split("/"))
        keys = [_key(part) for part in parts]
        named = [key for key in keys if key is not None]
        if len(named) != len(set(named)) or not named:
            raise ValueError("must have a {key}, and none of them twice")
        if parts.count("**") > 1:
            raise ValueError("must have at most one **")
        return cls(parts)

    def values(self, path: str) -> dict[str, str]:
        """Returns the values that the rule reads from a path relative to the root; empty if the path does not match."""
        folders, parts = path.split("/"), self.parts
        if "**" in parts:
            at = parts.index("**")
            fill = len(folders) - len(parts) + 1
            parts = parts[:at] + ("*",) * fill + parts[at + 1 :] if fill >= 0 else ()
        if len(folders) != len(parts):
            return {}
        found: dict[str, str] = {}
        for part, folder in zip(parts, folders, strict=True):
            match = _WORD.fullmatch(part)
            if match is None:
                if part not in ("*", folder):
                    return {}
                continue
            before, key, after = match.groups()
            value = folder[len(before) : len(folder) - len(after)]
            if not value or len(folder) < len(before) + len(after) or folder != f"{before}{value}{after}":
                return {}
            found[key] = value
        return found


def given(rules: Iterable[PathRule], path: str, *, owner: str | None, tags: dict[str, str]) -> Given:
    """Returns the owner and the tags of the table at this path. Each value comes from the first rule that finds it in
    the path, or else from `owner` and `tags`. Names of folders that are not allowed as owner or tag are ignored."""
    found: dict[str, str] = {}
    for rule in rules:
        found = {**rule.values(path), **found}
    named = found.pop(_OWNER, "")
    of_rules = {key: value for key, value in found.items() if fits(value, TAG_VALUE)}
    every = {**tags, **of_rules}
    return Given(named if fits(named, OWNER) else owner, dict(list(every.items())[:MOST_TAGS]))


def parsed(texts: Sequence[str]) -> tuple[PathRule, ...]:
    return tuple(map(PathRule.parse, texts))


def _key(part: str) -> str | None:
    """Returns the key of a part; None if it has none. Raises ValueError."""
    if not part:
        raise ValueError("must not have an empty part")
    if part in ("*", "**") or not set(part) & set("{}*"):
        return None
    match = _WORD.fullmatch(part)
    if match is None or not (match[2] == _OWNER or re.fullmatch(TAG_KEY, match[2])):
        raise ValueError("must have parts such as orders, *, ** or {team}, each with at most one {key}")
    return match[2]
