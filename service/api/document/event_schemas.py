"""Schemas of events, which are documents of CloudEvents 1.0, and of pages of them."""

from __future__ import annotations

from typing import Any, Final

REFERENCE: Final = {"$ref": "#/components/schemas/CloudEvent"}

CLOUD_EVENT: Final[dict[str, Any]] = {
    "title": "CloudEvent",
    "type": "object",
    "description": "An event: CloudEvents 1.0, JSON",
    "properties": {
        "specversion": {"const": "1.0", "description": "Version of CloudEvents"},
        "id": {"type": "string", "description": "Id of the event", "examples": ["evt_3b0f2a9d5e7b1c44"]},
        "source": {"type": "string", "description": "The service", "examples": ["/groundskeeper"]},
        "type": {"type": "string", "description": "Type of the event", "examples": ["commit.published"]},
        "time": {"type": "string", "format": "date-time", "description": "When it happened"},
        "sequence": {
            "type": "string",
            "description": "Sorts in the order of the events",
            "examples": ["00000000000000004711"],
        },
        "datacontenttype": {"const": "application/json", "description": "Media type of `data`"},
        "subject": {"type": "string", "description": "Id of the table", "examples": ["tbl_0f3c2a9d5e7b1c44"]},
        "data": {
            "type": "object",
            "description": "The event itself; GET /v1/event-types has its schema",
            "examples": [{"table": {"id": "tbl_0f3c2a9d5e7b1c44", "name": "orders"}}],
        },
    },
    "required": ["specversion", "id", "source", "type", "time", "sequence", "datacontenttype", "data"],
}

PAGE: Final[dict[str, Any]] = {
    "title": "EventPage",
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": REFERENCE, "description": "Events, oldest first"},
        "next_after": {
            "type": ["integer", "null"],
            "description": "Pass it as `after` for the next page",
            "examples": [4711],
        },
    },
    "required": ["items", "next_after"],
}

STREAM: Final = """id: 4711
event: commit.published
data: {"specversion":"1.0","id":"evt_3b0f2a9d5e7b1c44","type":"commit.published"}

"""
