"""Lists of the API, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi.testclient import TestClient


def pages(client: TestClient, path: str, /, **query: Any) -> Iterator[dict[str, Any]]:
    """Yields the pages of a list, the first to the last."""
    while True:
        answer = client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        yield page
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]


def members(client: TestClient, path: str, member: str, /, **query: Any) -> list[Any]:
    """Returns a member of each item of all pages."""
    return [item[member] for page in pages(client, path, **query) for item in page["items"]]
