"""JSON Schemas (2020-12) of the events: their pieces, CloudEvents 1.0, pages, and open problems with an example."""

from __future__ import annotations

from typing import Any, Final

from service.health.problem import ObjectType, ProblemKind, Severity

Schema = dict[str, Any]


def object_of(**properties: Schema) -> Schema:
    """Returns the schema of an object whose members are all required. Later versions may add members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def document_of(**properties: Schema) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **object_of(**properties)}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MOMENT: Schema = {"type": "string", "format": "date-time"}
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
OPEN_PROBLEM = object_of(
    id={**TEXT, "description": "The same when it opens, when it is resolved, and in GET /v1/problems"},
    kind={"enum": [kind.value for kind in ProblemKind]},
    severity={"enum": [severity.value for severity in Severity]},
    about=object_of(type={"enum": [each.value for each in ObjectType]}, id=TEXT, name=TEXT),
    since={**MOMENT, "description": "As exact as the data allows; often before it was found"},
    opened_at={**MOMENT, "description": "When it was found"},
    resolved_at=or_null(MOMENT),
    title=TEXT,
    detail={**TEXT, "description": "The evidence in a sentence"},
    consequence=TEXT,
    remedy=TEXT,
    command={
        **TEXT,
        "description": "A line for a shell that does it, or shows what it needs. Words in angle brackets are to be"
        " replaced",
    },
    evidence={"type": "object", "description": "Figures that depend on the kind"},
    action={
        **or_null(
            object_of(
                label=TEXT, method=TEXT, path=TEXT, body={"type": ["object", "null"], "description": "JSON to send"}
            )
        ),
        "description": "The call of this API that helps, where there is one",
    },
)
OPEN_COUNTS = {
    **object_of(**{severity.value: COUNT for severity in Severity}),
    "description": "Problems that are open now, by severity",
}

AN_OPEN_PROBLEM: dict[str, Any] = {
    "id": "prb_8c1d0e5f2a7b4963",
    "kind": "compaction-behind",
    "severity": "warning",
    "about": {"type": "table", "id": "tbl_0f3c2a9d5e7b1c44", "name": "orders"},
    "since": "2026-01-01T09:12:40+00:00",
    "opened_at": "2026-01-01T12:00:15+00:00",
    "resolved_at": None,
    "title": "Compaction is far behind",
    "detail": "21 commits since the last compaction (threshold 5), with 3.1 GiB of logs beside 1.9 GiB of base files.",
    "consequence": "Every query of the current rows merges the log files while it reads, and becomes slower with each"
    " commit.",
    "remedy": "Compact the table. If this comes back, let the policy compact sooner, or add workers.",
    "command": "groundskeeper jobs run compaction tbl_0f3c2a9d5e7b1c44",
    "evidence": {
        "commits": 21,
        "threshold": 5,
        "log_bytes": 3_328_599_654,
        "base_bytes": 2_040_109_465,
        "enabled": True,
    },
    "action": {
        "label": "Compact",
        "method": "POST",
        "path": "/v1/tables/tbl_0f3c2a9d5e7b1c44/jobs",
        "body": {"kind": "compaction"},
    },
}
