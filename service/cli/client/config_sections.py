"""The kinds of objects that a configuration file holds, one declaration each. The members of an object are those of the
API's request for it; only the calls are named here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from groundskeeper_client import Call, calls
from groundskeeper_client.generated.models import (
    FreezeIn,
    NotificationIn,
    PatternPolicyIn,
    PolicyIn,
    TableIn,
    WebhookIn,
)
from groundskeeper_client.model import Model
from jobs.redaction import MASK
from service.cli.client.config_values import changed_members, projected
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.policies import own_of_table
from service.model.shown_url import shown_url

_EVERY = 10**9


@dataclass(frozen=True)
class Live:
    """An object of the service: its key, its members as a request would have them, its id, and its entity tag once it
    was read by itself."""

    key: str
    members: Json
    id: str
    title: str = ""  # A name for people.
    tag: str | None = None


@dataclass(frozen=True)
class Section:
    """`key` is the member that tells objects apart, `body` the request with its members. `found` lists the objects;
    `look` reads one again, with its tag. `put` makes an object what it should be, new or not, and `remove` deletes it.

    A member of `kept` stays as it is if the file leaves it out. If `is_level` is set, a member with the value of a
    default is not the same as none.
    """

    name: str
    key: str
    body: type[Model]
    found: Callable[[Connection], Iterator[Live]]
    look: Callable[[Connection, Live], Live]
    put: Callable[[Json, Live | None], Call[Any]]
    remove: Callable[[Live], Call[Any]]
    kept: frozenset[str] = frozenset()
    is_level: bool = False

    @property
    def is_part(self) -> bool:
        """Whether the object is a part of another one: without members there is none."""
        return self.key == "table"


def _table(found: Json, tag: str | None = None) -> Live:
    members = projected(found, TableIn)
    return Live(str(members.pop("base_path")), members, found["id"], found["name"], tag)


def _tables(service: Connection) -> Iterator[Live]:
    yield from map(_table, service.items(calls.list_tables(), _EVERY)["items"])


def _look_at_table(service: Connection, live: Live) -> Live:
    return _table(*service.tagged(calls.get_table(live.id)))


def _put_table(wanted: Json, live: Live | None) -> Call[Any]:
    body: Any = wanted
    return calls.put_table_by_path(body, if_match=live.tag if live else None)


def _policy(found: Json, tag: str | None = None) -> Live:
    precedence = {"precedence": found["precedence"]} if found["precedence"] else {}
    return Live(found["pattern"], {**precedence, **found["settings"]}, found["pattern"], tag=tag)


def _policies(service: Connection) -> Iterator[Live]:
    yield from map(_policy, service.send(calls.list_policies())["items"])


def _look_at_policy(service: Connection, live: Live) -> Live:
    return _policy(*service.tagged(calls.get_policy(live.id)))


def _table_policies(service: Connection) -> Iterator[Live]:
    # A table without a policy of its own is listed too, so that one can be put.
    for table in _tables(service):
        yield _look_at_table_policy(service, table)


def _look_at_table_policy(service: Connection, live: Live) -> Live:
    effective, tag = service.tagged(calls.get_table_policy(live.id))
    return Live(live.key, own_of_table(effective), live.id, live.title, tag)


def _put_table_policy(wanted: Json, live: Live | None) -> Call[Any]:
    if live is None:
        raise CommandError.usage(f"No table with the path {wanted['table']} is registered.")
    body: Any = {name: value for name, value in wanted.items() if name != "table"}
    return calls.put_table_policy(live.id, body, if_match=live.tag)


def _webhook(found: Json, tag: str | None = None) -> Live:
    members = projected(found, WebhookIn)
    url = str(members.pop("url"))
    if MASK in url:
        raise CommandError.usage("Only a token of the role admin sees the URLs of webhooks.", "Leave webhooks out.")
    return Live(url, members, found["id"], found["description"] or shown_url(url).split("/")[2], tag)


def _webhooks(service: Connection) -> Iterator[Live]:
    yield from map(_webhook, service.items(calls.list_webhooks(), _EVERY)["items"])


def _look_at_webhook(service: Connection, live: Live) -> Live:
    return _webhook(*service.tagged(calls.get_webhook(live.id)))


def _put_webhook(wanted: Json, live: Live | None) -> Call[Any]:
    body: Any = wanted
    if live is None:
        return calls.create_webhook(body)
    body = changed_members({name: value for name, value in wanted.items() if name != "url"}, live.members, WebhookIn)
    return calls.change_webhook(live.id, body, if_match=live.tag)


def _freeze(found: Json, tag: str | None = None) -> Live:
    return Live(found["name"], projected(found, FreezeIn), found["name"], tag=tag)


def _notification(found: Json, tag: str | None = None) -> Live:
    return Live(found["name"], projected(found, NotificationIn), found["name"], tag=tag)


def _put_by(key: str, call: Callable[..., Call[Any]]) -> Callable[[Json, Live | None], Call[Any]]:
    """Returns a `put` by a call whose path has the key."""

    def put(wanted: Json, live: Live | None) -> Call[Any]:
        body = {name: value for name, value in wanted.items() if name != key}
        return call(wanted[key], body, if_match=live.tag if live else None)

    return put


SECTIONS = (
    Section(
        "freezes",
        "name",
        FreezeIn,
        lambda service: map(_freeze, service.send(calls.list_freezes())["items"]),
        lambda service, live: _freeze(*service.tagged(calls.get_freeze(live.id))),
        _put_by("name", calls.put_freeze),
        lambda live: calls.delete_freeze(live.id, if_match=live.tag),
    ),
    Section(
        "policies",
        "pattern",
        PatternPolicyIn,
        _policies,
        _look_at_policy,
        _put_by("pattern", calls.put_policy),
        lambda live: calls.delete_policy(live.id, if_match=live.tag),
        is_level=True,
    ),
    Section(
        "tables",
        "base_path",
        TableIn,
        _tables,
        _look_at_table,
        _put_table,
        lambda live: calls.unregister_table(live.id, if_match=live.tag),
        # A registration detects both.
        kept=frozenset({"name", "index"}),
    ),
    Section(
        "table_policies",
        "table",
        PolicyIn,
        _table_policies,
        _look_at_table_policy,
        _put_table_policy,
        lambda live: calls.delete_table_policy(live.id, if_match=live.tag),
        is_level=True,
    ),
    Section(
        "webhooks",
        "url",
        WebhookIn,
        _webhooks,
        _look_at_webhook,
        _put_webhook,
        lambda live: calls.delete_webhook(live.id, if_match=live.tag),
    ),
    Section(
        "notifications",
        "name",
        NotificationIn,
        lambda service: map(_notification, service.send(calls.list_notifications())["items"]),
        lambda service, live: _notification(*service.tagged(calls.get_notification(live.id))),
        _put_by("name", calls.put_notification),
        lambda live: calls.delete_notification(live.id, if_match=live.tag),
    ),
)
"""In the order in which they are applied: freezes and policies stand before a table comes that they are about."""
