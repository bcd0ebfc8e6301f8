"""Compares the tables of a catalog with those that it listed before, and with the registered tables. The functions are
pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from jobs.contract import Problem
from jobs.spec import Spec
from service.model.record import Record
from service.registration.catalogs.catalog import Catalog, OnDropped, OnMoved, OnNew
from service.registration.catalogs.listing import Listed, Listing

_OF_PAUSE = 0.9  # Less than 1, because background syncs do not begin at exact times.


@dataclass(frozen=True)
class KnownTable(Record):
    """A table that an earlier sync found in the catalog and that is registered. `is_ours` says that a sync registered
    it. `missing_since` is the time of the first sync that did not find it in the catalog any more."""

    name: str
    base_path: str
    table_id: str
    is_ours: bool
    missing_since: datetime | None = None


class FindingKind(StrEnum):
    """The kind of a difference. `NEW`: in the catalog, but not registered. `MOVED`: the catalog has another location.
    `DROPPED`: registered, but not in the catalog any more. `REFUSED`: the table cannot be registered. `BROKEN`: the
    entry cannot be read."""

    NEW = "new"
    MOVED = "moved"
    DROPPED = "dropped"
    REFUSED = "refused"
    BROKEN = "broken"


class Action(StrEnum):
    NONE = "none"
    REGISTER = "register"
    FOLLOW = "follow"
    UNREGISTER = "unregister"


@dataclass(frozen=True)
class Finding:
    """A difference, and what the rules of the catalog do about it."""

    name: Annotated[str, Spec("The table in the catalog; `database.*` is a whole database", examples=("shop.orders",))]
    kind: Annotated[FindingKind, Spec("What differs", examples=("new",))]
    action: Annotated[Action, Spec("The action that the rules of the catalog demand", examples=("register",))]
    base_path: Annotated[str | None, Spec("Its location in the catalog", examples=("s3a://lake/shop/orders",))] = None
    before: Annotated[str | None, Spec("Where the table is registered, if it has moved or was dropped")] = None
    table_id: Annotated[str | None, Spec("The registered table, if there is one")] = None
    is_done: Annotated[bool, Spec("Whether this sync has carried out the action", examples=(True,))] = False
    because: Annotated[str | None, Spec("Why nothing is done")] = None
    owner: Annotated[str | None, Spec("The owner that the entry gives")] = None
    tags: Annotated[dict[str, str] | None, Spec("The tags that its parameters give")] = None
    reason: Problem | None = None


@dataclass(frozen=True)
class Compared:
    """The result. `in_step` are the tables that are registered at the location that the catalog has, with their ids."""

    findings: tuple[Finding, ...]
    in_step: Mapping[str, tuple[Listed, str]]


@dataclass(frozen=True)
class State:
    """What the service knows. `registered` has the ids of tables by base path. `elsewhere` has the ids of tables that
    other catalogs list. `with_policy` has the ids of tables for which a policy is set."""

    known: Mapping[str, KnownTable]
    registered: Mapping[str, str]
    now: datetime
    elsewhere: frozenset[str] = frozenset()
    with_policy: frozenset[str] = frozenset()


def compare(catalog: Catalog, listing: Listing, state: State) -> Compared:
    """Returns the differences, in the order of names."""
    in_step: dict[str, tuple[Listed, str]] = {}
    findings: list[Finding] = []
    listed_paths = {each.base_path for each in listing.tables}
    for each in listing.tables:
        known, table_id = state.known.get(each.name), state.registered.get(each.base_path)
        old = known if known and known.base_path != each.base_path else None
        # Another entry may have taken over the old location.
        if old and old.base_path not in listed_paths and old.base_path in state.registered:
            findings.append(_moved(catalog, each, old, state))
        elif table_id is not None:
            in_step[each.name] = (each, table_id)
        else:
            findings.append(_new(catalog, each, known))
    findings += _dropped(catalog, listing, state, listed_paths)
    findings += [Finding(each.name, FindingKind.BROKEN, Action.NONE, reason=each.problem) for each in listing.broken]
    guarded = _guarded(catalog, listing, state, findings)
    return Compared(tuple(sorted(guarded, key=lambda each: (each.name, each.kind))), in_step)


def _new(catalog: Catalog, each: Listed, known: KnownTable | None) -> Finding:
    action = Action.REGISTER if catalog.new is OnNew.REGISTER else Action.NONE
    because = None if action is Action.REGISTER else "The rule for new tables is to report them."
    if known and known.base_path == each.base_path and action is Action.REGISTER:
        because = "Somebody has unregistered the table. Register it by hand, or exclude it by a pattern."
        action = Action.NONE
    return Finding(
        each.name,
        FindingKind.NEW,
        action,
        each.base_path,
        because=because,
        owner=each.owner or catalog.declared.owner,
        tags={**catalog.declared.tags, **each.tags},
    )


def _moved(catalog: Catalog, each: Listed, old: KnownTable, state: State) -> Finding:
    action, because = Action.FOLLOW, None
    if catalog.moved is OnMoved.REPORT:
        action, because = Action.NONE, "The rule for moved tables is to report them."
    elif reason := _not_ours(old, state):
        action, because = Action.NONE, reason
    elif old.table_id in state.with_policy:
        because = "The policy that is set for the table would get lost. Register the table by hand, with this policy."
        action = Action.NONE
    return Finding(
        each.name,
        FindingKind.MOVED,
        action,
        each.base_path,
        old.base_path,
        state.registered[old.base_path],
        because=because,
    )


def _dropped(catalog: Catalog, listing: Listing, state: State, listed_paths: set[str]) -> Iterator[Finding]:
    names = {each.name for each in listing.tables}
    for name, known in state.known.items():
        is_here = name in names or known.base_path in listed_paths
        if is_here or known.base_path not in state.registered or not listing.lacks(name):
            continue
        if not catalog.source.wants(name):  # Somebody has changed the patterns, so the table may still exist.
            continue
        action, because = Action.UNREGISTER, None
        if catalog.dropped is OnDropped.REPORT:
            action, because = Action.NONE, "The rule for dropped tables is to report them."
        elif reason := _not_ours(known, state):
            action, because = Action.NONE, reason
        elif not _has_been_missing(catalog, known, state.now):
            because = f"The table is unregistered if it is missing for {catalog.every_seconds:g} s."
            action = Action.NONE
        yield Finding(
            name,
            FindingKind.DROPPED,
            action,
            before=known.base_path,
            table_id=state.registered[known.base_path],
            because=because,
        )


def _has_been_missing(catalog: Catalog, known: KnownTable, now: datetime) -> bool:
    """Returns whether the table has been missing for about the time between two syncs. Before that, somebody may be
    creating it again."""
    least = timedelta(seconds=catalog.every_seconds * _OF_PAUSE)
    return known.missing_since is not None and now - known.missing_since >= least


def _not_ours(known: KnownTable, state: State) -> str | None:
    if not known.is_ours or state.registered.get(known.base_path) != known.table_id:
        return "Syncs unregister only tables that a sync has registered, and this table was registered otherwise."
    return "Another catalog lists the table." if known.table_id in state.elsewhere else None


def _guarded(catalog: Catalog, listing: Listing, state: State, findings: list[Finding]) -> list[Finding]:
    """Returns the findings, but with no table unregistered if too many would be. A catalog that answers with nothing,
    or with half of its tables, must not cause a mass of tables to be unregistered."""
    ending = [each for each in findings if each.action in (Action.FOLLOW, Action.UNREGISTER)]
    most = max(1, int(catalog.most_dropped * len(state.known)))
    if not ending or (len(ending) <= most and listing.entries):
        return findings
    said = (
        f"{len(ending)} of {len(state.known)} tables would be unregistered at once; the limit is {most}"
        " (`most_dropped`). If the catalog is right, unregister them by hand, or raise the limit for one sync."
        if listing.entries
        else "The catalog lists no table at all any more."
    )
    kept = [each for each in findings if each not in ending]
    withheld = [
        Finding(each.name, each.kind, Action.NONE, each.base_path, each.before, each.table_id, because=said)
        for each in ending
    ]
    return kept + withheld
