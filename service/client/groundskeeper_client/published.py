"""The commits of a table after a position, in the order of their events. Airflow and Dagster update assets with
them."""

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
# A time after all events, even if the clocks of the client and the service disagree.
_NEVER = "2999-01-01T00:00:00Z"


@dataclass(frozen=True)
class PublishedCommit:
    """A commit with the id of its event, and the event's `sequence`, which is a position."""

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
    """Returns a position. All commits from `since` on are after this position; without `since`, all commits from now
    on. The times are those of the events. Events are written almost in the order of their times, so an earlier commit
    may be after the position, too.
    """
    if since is None:
        return next_after(client.send(events_page(since=_NEVER)), 0)
    found = client.send(events_page(since=since))
    first = [int(event["sequence"]) for event in found.items]
    return min(first) - 1 if first else next_after(found, 0)


def commits_after(
    client: Client, table_id: str, after: int, *, of_services: bool = False
) -> tuple[list[PublishedCommit], int]:
    """Returns the commits after a position, oldest first, and the position after them. Only commits of writers count,
    unless `of_services` is set. If each call begins at the end of the last one, no commit is missed or repeated.

    Events are kept for GROUNDSKEEPER_EVENTS_DAYS. If a caller waits longer than that, older commits are missing.
    """
    commits: list[PublishedCommit] = []
    while len(commits) < MOST_COMMITS:
        page = client.send(events_page(table_id=table_id, after=after))
        for event in page.items:
            if counts(event, of_services=of_services):
                commits.append(PublishedCommit.of(event))
        reached = next_after(page, after)
        if reached <= after:
            break
        after = reached
    return commits, after


def counts(event: Mapping[str, Any], *, of_services: bool) -> bool:
    """Returns whether the event reports a commit of a writer. If `of_services` is set, commits of table services count
    too."""
    if event["type"] != TYPE:
        return False
    commit = event["data"]["commit"]
    return of_services or writes_rows(commit["action"], commit["operation"], commit["file_groups"])


class EventPage(Model, frozen=True, kw_only=True):
    """Events after a position, and the position after these events. The new position is None if there are no events."""

    items: list[dict[str, Any]]
    next_after: int | None


def events_page(**query: Any) -> Call[EventPage]:
    """Returns the call for the events `commit.published` after a position (`after`), or from a time (`since`) on."""
    # `calls` has no operation for the stream of events. If JSON is requested, the stream's path answers with a page of
    # events.
    return Call("GET", "/v1/events", EventPage, query={"types": TYPE, **query})


def next_after(page: EventPage, otherwise: int) -> int:
    """Returns the position after the page, or `otherwise` if the page has no position."""
    return otherwise if page.next_after is None else page.next_after
