"""Slack: an incoming webhook with Block Kit. A message has at most 50 blocks. A header has at most 150 characters, and
a section 3000 (Slack's reference of blocks)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.delivery.message import MOST_FACTS, Entry, Fact, Message, cut
from service.delivery.targets.request import Request, as_json

_HEADER, _NAME, _DETAIL, _COMMAND, _SECTION = 150, 300, 1400, 900, 3000
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def request(message: Message, options: Mapping[str, Any]) -> Request:
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": cut(message.headline, _HEADER)}}
    ]
    about = [text for text in (message.consequence, message.remedy) if text]
    if about:
        blocks.append(_section("\n".join(_escaped(text, _DETAIL) for text in about)))
    if message.facts:
        # A section has at most 10 fields of 2000 characters.
        blocks.append({"type": "section", "fields": [_fact(each) for each in message.facts[:MOST_FACTS]]})
    blocks += [_section(_entry(each)) for each in message.entries]
    if message.more:
        blocks.append(_section(message.more_words))
    if message.link:
        link = f"<{message.link}|Open in Groundskeeper>"
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": link}]})
    return Request(options["url"], as_json({"text": _escaped(message.headline, _SECTION), "blocks": blocks}))


def _fact(fact: Fact) -> dict[str, Any]:
    text = f"*{_escaped(fact.name, _NAME)}*\n{_escaped(fact.value, _DETAIL)}"
    return {"type": "mrkdwn", "text": text}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _entry(entry: Entry) -> str:
    name = _escaped(entry.name, _NAME)
    head = f"<{entry.link}|{name.replace('|', '/')}>" if entry.link else f"*{name}*"
    text = f"{head} {_escaped(entry.detail, _DETAIL)}".strip()
    return f"{text}\n`{_escaped(entry.command.replace('`', ''), _COMMAND)}`" if entry.command else text


def _escaped(text: str, most: int) -> str:
    """Escapes the characters by which Slack recognizes links and mentions. The limit applies to the escaped text."""
    escaped = [_ESCAPES.get(each, each) for each in text[:most]]
    while sum(map(len, escaped)) > most:
        escaped = escaped[: len(escaped) * 9 // 10]
    return "".join(escaped)
