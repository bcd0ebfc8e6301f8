"""Mail: a text by SMTP. Messages about one alert are one thread."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import Any

from service.delivery.message import Message, cut
from service.delivery.targets.request import Request

_SUBJECT, _LINE, _TEXT = 200, 400, 2000
_DOMAIN = "groundskeeper.invalid"


def request(message: Message, options: Mapping[str, Any], now: datetime, event_id: str) -> Request:
    mail = EmailMessage(policy=SMTP)
    # A line break would begin another header.
    mail["Subject"] = cut(" ".join(message.headline.split()), _SUBJECT).encode(errors="replace").decode()
    mail["From"], mail["To"] = options["sender"], ", ".join(options["to"])
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{event_id}@{_DOMAIN}>"
    mail["References"] = f"<{sha256(message.key.encode()).hexdigest()[:32]}@{_DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_text(message).encode(errors="replace").decode())
    return Request(url_of(options), mail.as_bytes(), {}, _login(options))


def url_of(options: Mapping[str, Any]) -> str:
    return f"smtp://{options['host']}:{options.get('port') or 587}"


def _login(options: Mapping[str, Any]) -> dict[str, str]:
    starttls = "yes" if options.get("starttls", True) else "no"
    return {"starttls": starttls, "user": options.get("user") or "", "password": options.get("password") or ""}


def _text(message: Message) -> str:
    parts = [cut(text, _TEXT) for text in (message.consequence, message.remedy) if text]
    if message.facts:
        width = max(len(each.name) for each in message.facts)
        parts.append("\n".join(cut(f"{each.name:<{width}}  {each.value}", _LINE) for each in message.facts))
    for each in message.entries:
        lines = (f"{each.name}: {each.detail}" if each.detail else each.name, each.command, each.link or "")
        parts.append("\n  ".join(cut(line, _TEXT) for line in lines if line))
    parts += [text for text in (message.more_words, message.link) if text]
    return "\n\n".join(parts) or message.headline
