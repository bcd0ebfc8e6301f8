"""Serialization of events: CloudEvents 1.0, JSON, structured mode."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from service.events.event import Published

MEDIA_TYPE = "application/cloudevents+json"


def cloud_event(published: Published, source: str) -> dict[str, Any]:
    """Returns the document. Its `sequence` is an extension that CloudEvents defines: strings that sort in the order in
    which the events were published."""
    event = published.event
    document: dict[str, Any] = {
        "specversion": "1.0",
        "id": event.id,
        "source": source,
        "type": event.type,
        "time": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "sequence": f"{published.seq:020d}",
        "datacontenttype": "application/json",
        "data": dict(event.data),
    }
    if event.table_id is not None:
        document["subject"] = event.table_id
    return document


def body(published: Published, source: str) -> bytes:
    """Returns the body, which has the same bytes each time the event is sent.

    The name of a file may contain half of a surrogate pair, which cannot be encoded in UTF-8. It becomes a question
    mark.
    """
    text = json.dumps(cloud_event(published, source), separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")
