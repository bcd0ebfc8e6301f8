"""The JSON Schema of the events about open problems, with an example."""

from __future__ import annotations

from typing import Any

from service.api.json_schemas import COUNT, MOMENT, TEXT, object_of, or_null
from service.health.problem import ObjectType, ProblemKind, Severity

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
