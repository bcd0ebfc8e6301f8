"""Prometheus Alertmanager: `POST /api/v2/alerts`.

An alert ends by itself at its `endsAt`, so an open alert is sent again before that time. The labels identify an alert,
so they stay the same from its first message to its last.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from service.delivery.message import Message, MessageState, cut
from service.delivery.targets.request import Request, as_json

REPEAT = timedelta(minutes=30)
"""Time after its last message at which an open alert is sent again."""

_LASTS = 4 * REPEAT
_TEXT = 2000


def request(message: Message, options: Mapping[str, Any], now: datetime) -> Request:
    details = [cut(f"{each.name}: {each.detail}".removesuffix(": "), _TEXT) for each in message.entries]
    annotations = {
        "summary": cut(message.title, _TEXT),
        "description": "\n".join([*details, *filter(None, [message.more_words])]),
        "consequence": cut(message.consequence, _TEXT),
        "remedy": cut(message.remedy, _TEXT),
        "command": cut("\n".join(each.command for each in message.entries if each.command), _TEXT),
    }
    ends = message.ended_at if message.state is MessageState.RESOLVED and message.ended_at else now + _LASTS
    alert = {
        "labels": {
            "alertname": message.kind,
            "severity": message.severity,
            "service": "groundskeeper",
            "alert": message.key,
        },
        "annotations": {name: text for name, text in annotations.items() if text},
        # An alert may not end before it starts.
        "startsAt": _time(min(message.since, ends)),
        "endsAt": _time(ends),
        "generatorURL": message.link or "",
    }
    own = {"Authorization": options["authorization"]} if options.get("authorization") else {}
    return Request(f"{options['url'].rstrip('/')}/api/v2/alerts", as_json([alert]), own=own)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
