"""The commits of a table in the order of their events, after a position. Other tools keep assets up to date by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from groundskeeper_client import Client
from groundskeeper_client.call import Call
from groundskeeper_client.model import Model
from groundskeeper_client.questions import writes_rows

TYPE = "commit.published"
MOST_COMMITS = 1000
"""Maximum number of commits of one answer; the next answer has the others."""
# After all events, whatever the clocks of the client and the service say.
_NEVER = "2999-01-01T00:00:00Z"


@dataclass(frozen=True)
class PublishedCommit:
    """A commit with the id of its event and its `sequence`, a position."""

    instant: str
    action: str
    operation: str | None
    rows_written: int | None
    partition_count: int
    seen_at: str
    event_id: str
    sequence: int

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> PublishedCommit:
        """Returns the commit of a CloudEvent of the type `commit.published`."""
        commit = event["data"]["commit"]
        return cls(
            instant=commit["instant"],
            action=commit["action"],
            operation=commit["operation"],
            rows_written=commit["rows_written"],
            partition_count=commit["partition_count"],
            seen_at=event["time"],
            event_id=event["id"],
            sequence=int(event["sequence"]),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def position(client: Client, since: datetime | None = None) -> int:
    """Returns a position after which all commits from `since` on come; without `since`, all commits from now on. Times
    are those of the events. Events are written almost in the order of their times, so an earlier commit may follow too.
    """
    if since is None:
        return _next(client.send(_page(since=_NEVER)), 0)
    found = client.send(_page(since=since))
    first = [int(event["sequence"]) for event in found.items]
    return min(first) - 1 if first else _next(found, 0)


def commits_after(
    client: Client, table_id: str, after: int, *, of_services: bool = False
) -> tuple[list[PublishedCommit], int]:
    """Returns the commits after a position, oldest first, and the position after them. Only commits of writers count,
    unless `of_services` is set. A commit is in exactly one of the answers if each call begins where the last one ended.

    Events are kept for GROUNDSKEEPER_EVENTS_DAYS: after a longer time the older commits are missing.
    """
    commits: list[PublishedCommit] = []
    while len(commits) < MOST_COMMITS:
        page = client.send(_page(table_id=table_id, after=after))
        for event in page.items:
            if counts(event, of_services=of_services):
                commits.append(PublishedCommit.of(event))
        reached = _next(page, after)
        if reached <= after:
            break
        after = reached
    return commits, after


def counts(event: Mapping[str, Any], *, of_services: bool) -> bool:
    """Whether the event tells a commit of a writer, or of a table service if `of_services`."""
    if event["type"] != TYPE:
        return False
    commit = event["data"]["commit"]
    return of_services or writes_rows(commit["action"], commit["operation"], commit["file_groups"])


class _Page(Model, frozen=True, kw_only=True):
    items: list[dict[str, Any]]
    next_after: int | None


def _page(**query: Any) -> Call[_Page]:
    # The stream of events is no operation of `calls`; asked for JSON, the same path answers with a page of them.
    return Call("GET", "/v1/events", _Page, query={"types": TYPE, **query})


def _next(page: _Page, otherwise: int) -> int:
    return otherwise if page.next_after is None else page.next_after
