"""The kinds of objects in a configuration file, with one declaration for each. An object has the members of the API's
request, so a declaration only names the calls."""

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


@dataclass(frozen=True)
class Live:
    """An object of the service: its key, its members as in a request, and its id. The entity tag is only known after
    the object was read by a separate call."""

    key: str
    members: Json
    id: str
    title: str = ""  # A name for people.
    tag: str | None = None


@dataclass(frozen=True)
class Section:
    """A kind of objects. `key` is the member that identifies an object, and `body` is the model of the request. `live`
    makes a `Live` from an answer and its tag. `listed`, `get` and `delete` are calls of the API; `put` creates or
    replaces an object. Members in `kept` stay unchanged if the file leaves them out. If `is_level` is true, a member
    that is set to its default differs from a missing member."""

    name: str
    key: str
    body: type[Model]
    live: Callable[..., Live]
    listed: Callable[[], Call[Any]]
    get: Callable[[str], Call[Any]]
    put: Callable[[Json, Live | None], Call[Any]]
    delete: Callable[..., Call[Any]]
    kept: frozenset[str] = frozenset()
    is_level: bool = False

    def found(self, service: Connection) -> Iterator[Live]:
        """Lists the objects."""
        yield from map(self.live, service.every(self.listed()))

    def read_again(self, service: Connection, live: Live) -> Live:
        """Reads an object again, with its tag."""
        return self.live(*service.tagged(self.get(live.id)))

    def remove(self, live: Live) -> Call[Any]:
        return self.delete(live.id, if_match=live.tag)

    @property
    def is_part(self) -> bool:
        """Whether the object is a part of another object, and does not exist if it has no members."""
        return self.key == "table"


class _TablePolicies(Section):
    """The tables, each with the members of its own policy."""

    def found(self, service: Connection) -> Iterator[Live]:
        # A table without its own policy is listed too, so that a policy can be put.
        for table in super().found(service):
            yield self.read_again(service, table)

    def read_again(self, service: Connection, live: Live) -> Live:
        effective, tag = service.tagged(self.get(live.id))
        return Live(live.key, own_of_table(effective), live.id, live.title, tag)


def _table(found: Json, tag: str | None = None) -> Live:
    members = projected(found, TableIn)
    return Live(str(members.pop("base_path")), members, found["id"], found["name"], tag)


def _policy(found: Json, tag: str | None = None) -> Live:
    precedence = {"precedence": found["precedence"]} if found["precedence"] else {}
    return Live(found["pattern"], {**precedence, **found["settings"]}, found["pattern"], tag=tag)


def _webhook(found: Json, tag: str | None = None) -> Live:
    members = projected(found, WebhookIn)
    url = str(members.pop("url"))
    if MASK in url:
        raise CommandError.usage("Only a token of the role admin sees the URLs of webhooks.", "Leave webhooks out.")
    return Live(url, members, found["id"], found["description"] or shown_url(url).split("/")[2], tag)


def _named(body: type[Model]) -> Callable[..., Live]:
    """Returns the function `live` for objects whose name is their key and id."""

    def live(found: Json, tag: str | None = None) -> Live:
        return Live(found["name"], projected(found, body), found["name"], tag=tag)

    return live


def _seen(live: Live | None) -> dict[str, Any]:
    """Returns the condition that nobody has changed the object since it was read, or has created it."""
    return {"if_match": live.tag} if live else {"if_none_match": "*"}


def _put_table(wanted: Json, live: Live | None) -> Call[Any]:
    body: Any = wanted
    return calls.put_table_by_path(body, **_seen(live))


def _put_table_policy(wanted: Json, live: Live | None) -> Call[Any]:
    if live is None:
        raise CommandError.usage(f"No table with the path {wanted['table']} is registered.")
    body: Any = {name: value for name, value in wanted.items() if name != "table"}
    return calls.put_table_policy(live.id, body, if_match=live.tag)


def _put_webhook(wanted: Json, live: Live | None) -> Call[Any]:
    body: Any = wanted
    if live is None:
        return calls.create_webhook(body)
    body = changed_members({name: value for name, value in wanted.items() if name != "url"}, live.members, WebhookIn)
    return calls.change_webhook(live.id, body, if_match=live.tag)


def _put_by(key: str, call: Callable[..., Call[Any]]) -> Callable[[Json, Live | None], Call[Any]]:
    """Returns the function `put` for a call whose path has the key."""

    def put(wanted: Json, live: Live | None) -> Call[Any]:
        body = {name: value for name, value in wanted.items() if name != key}
        return call(wanted[key], body, **_seen(live))

    return put


SECTIONS = (
    Section(
        *("freezes", "name", FreezeIn, _named(FreezeIn)),
        *(calls.list_freezes, calls.get_freeze, _put_by("name", calls.put_freeze), calls.delete_freeze),
    ),
    Section(
        *("policies", "pattern", PatternPolicyIn, _policy),
        *(calls.list_policies, calls.get_policy, _put_by("pattern", calls.put_policy), calls.delete_policy),
        is_level=True,
    ),
    Section(
        *("tables", "base_path", TableIn, _table),
        *(calls.list_tables, calls.get_table, _put_table, calls.unregister_table),
        # A registration detects these two members.
        kept=frozenset({"name", "index"}),
    ),
    _TablePolicies(
        *("table_policies", "table", PolicyIn, _table),
        *(calls.list_tables, calls.get_table_policy, _put_table_policy, calls.delete_table_policy),
        is_level=True,
    ),
    Section(
        *("webhooks", "url", WebhookIn, _webhook),
        *(calls.list_webhooks, calls.get_webhook, _put_webhook, calls.delete_webhook),
    ),
    Section(
        *("notifications", "name", NotificationIn, _named(NotificationIn)),
        *(calls.list_notifications, calls.get_notification),
        *(_put_by("name", calls.put_notification), calls.delete_notification),
    ),
)
"""The kinds in the order in which they are applied: freezes and policies exist before the tables that they concern."""
