"""PagerDuty: the Events API v2. The key of a message is PagerDuty's `dedup_key`, of at most 255 characters. `trigger`,
`acknowledge` and `resolve` of one alert have the same key; the latter two have no payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.delivery.message import Message, MessageState, cut
from service.delivery.targets.request import Request, as_json

URL = "https://events.pagerduty.com/v2/enqueue"
_SEVERITIES = {"critical": "critical", "warning": "warning"}
_ACTIONS = {MessageState.ACKNOWLEDGED: "acknowledge", MessageState.RESOLVED: "resolve"}
_SUMMARY, _TEXT = 1024, 1000


def request(message: Message, options: Mapping[str, Any]) -> Request:
    action = _ACTIONS.get(message.state, "trigger")
    event: dict[str, Any] = {
        "routing_key": options["routing_key"],
        "event_action": action,
        "dedup_key": cut(message.key, 255),
    }
    if action == "trigger":
        event["client"] = "Groundskeeper"
        if message.link:
            event |= {"client_url": message.link, "links": [{"href": message.link, "text": "Open in Groundskeeper"}]}
        event["payload"] = {
            "summary": cut(message.title, _SUMMARY),
            "source": cut(message.entries[0].name if message.entries else "groundskeeper", _TEXT),
            "severity": _SEVERITIES.get(message.severity, "info"),
            "timestamp": message.since.isoformat(),
            "component": "groundskeeper",
            "class": message.kind,
            "custom_details": _details(message),
        }
    return Request(options.get("url") or URL, as_json(event))


def _details(message: Message) -> dict[str, Any]:
    return {
        "consequence": cut(message.consequence, _TEXT),
        "remedy": cut(message.remedy, _TEXT),
        "count": message.count,
        "more": message.more,
        "problems": [
            {"name": each.name, "detail": cut(each.detail, _TEXT), "command": cut(each.command, _TEXT)}
            for each in message.entries
        ],
    }
