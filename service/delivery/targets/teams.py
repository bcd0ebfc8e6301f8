"""Microsoft Teams: an Adaptive Card for the webhook of a workflow. A message has at most 28 KB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.delivery.message import MOST_FACTS, Entry, Message, cut
from service.delivery.targets.request import Request, as_json

_VERSION = "1.4"
_SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
_TITLE, _TEXT, _COMMAND, _NAME, _VALUE = 200, 400, 300, 60, 200
_COLORS = {"critical": "attention", "warning": "warning"}


def request(message: Message, options: Mapping[str, Any]) -> Request:
    color = "good" if message.ended_at else _COLORS.get(message.severity, "default")
    body = [_text(cut(message.headline, _TITLE), size="large", weight="bolder", color=color)]
    body += [_text(cut(text, _TEXT)) for text in (message.consequence, message.remedy) if text]
    if message.facts:
        facts = [{"title": cut(each.name, _NAME), "value": cut(each.value, _VALUE)} for each in message.facts]
        body.append({"type": "FactSet", "facts": facts[:MOST_FACTS], "separator": True})
    for entry in message.entries:
        body += _entry(entry)
    if message.more:
        body.append(_text(message.more_words))
    card: dict[str, Any] = {"type": "AdaptiveCard", "$schema": _SCHEMA, "version": _VERSION, "body": body}
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in Groundskeeper", "url": message.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return Request(options["url"], as_json({"type": "message", "attachments": [attachment]}))


def _entry(entry: Entry) -> list[dict[str, Any]]:
    # Names are not made links, because the name of a table may contain Markdown that would break the link.
    found = [_text(cut(entry.name, _TITLE), weight="bolder", separator=True)]
    if entry.detail:
        found.append(_text(cut(entry.detail, _TEXT)))
    if entry.command:
        found.append(_text(cut(entry.command, _COMMAND), fontType="monospace"))
    return found


def _text(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **style}
