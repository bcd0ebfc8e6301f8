"""The targets: the options of each, the address that is checked and shown, and the request that carries a message."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never
from urllib.parse import urlsplit

from jobs.redaction import MASK
from service.delivery import headers as header_rules
from service.delivery.guard import Guard
from service.delivery.message import Message
from service.delivery.targets import alertmanager, mail, pagerduty, slack, teams
from service.delivery.targets.request import Request


class Target(StrEnum):
    """The kinds of targets. `WEBHOOK` gets the event itself, signed."""

    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    ALERTMANAGER = "alertmanager"
    EMAIL = "email"
    WEBHOOK = "webhook"

    @property
    def keeps_alerts(self) -> bool:
        """True if the target keeps a list of open alerts, so that it needs a message when each one ends."""
        return self in (Target.PAGERDUTY, Target.ALERTMANAGER)


MEMBERS: Mapping[Target, Mapping[str, bool]] = {
    Target.SLACK: {"url": True},
    Target.TEAMS: {"url": True},
    Target.PAGERDUTY: {"routing_key": True, "url": False},
    Target.ALERTMANAGER: {"url": True, "authorization": False},
    Target.EMAIL: {
        "host": True,
        "port": False,
        "starttls": False,
        "user": False,
        "password": False,
        "sender": True,
        "to": True,
    },
    Target.WEBHOOK: {"url": True, "headers": False},
}
"""The options of each target, and whether each option is required."""

SECRETS = frozenset({"routing_key", "password", "authorization", "headers"})
"""Options that are never shown. The path of a `url` is a secret too, as it is for a webhook."""

_CHATS = {
    "slack.com": Target.SLACK,
    "webhook.office.com": Target.TEAMS,
    "logic.azure.com": Target.TEAMS,
    "api.powerplatform.com": Target.TEAMS,
    "pagerduty.com": Target.PAGERDUTY,
}


def chat_of(url: str) -> Target | None:
    """Returns the chat service to which a URL belongs; None for other URLs. A chat service cannot read events."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return None
    return next((target for name, target in _CHATS.items() if host == name or host.endswith(f".{name}")), None)


def of_url(url: str) -> Target | None:
    """Returns the target of a notification's webhook, None for a plain webhook."""
    scheme, _, rest = url.partition("+")
    return Target(scheme) if rest and scheme in MEMBERS else None


def address(target: Target, options: Mapping[str, Any]) -> str:
    """Returns the part of the address that may be shown. The webhook is stored with this part. The whole address is
    stored among the encrypted secrets."""
    split = urlsplit(_url(target, options))
    return f"{target}+{split.scheme}://{split.netloc}"


def check(target: Target, options: Mapping[str, Any], guard: Guard) -> None:
    """Raises UrlNotAllowedError or HeaderNotAllowedError."""
    if target is Target.EMAIL:
        guard.check_host(options["host"], is_encrypted=options.get("starttls", True))
        return
    guard.checked(_url(target, options))
    own = {"Authorization": options["authorization"]} if options.get("authorization") else options.get("headers", {})
    header_rules.checked(own)


def masked(target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with masks in place of secrets."""
    shown = {name: _masked(value) if name in SECRETS and value else value for name, value in options.items()}
    if shown.get("url"):
        split = urlsplit(options["url"])
        is_bare = target is Target.ALERTMANAGER or (split.path in ("", "/") and not split.query)
        shown["url"] = options["url"] if is_bare else f"{split.scheme}://{split.netloc}/{MASK}"
    return shown


def unmasked(target: Target, wanted: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that a caller has sent, with the stored values in place of masks."""
    shown = masked(target, stored)
    return {name: stored[name] if name in stored and value == shown[name] else value for name, value in wanted.items()}


def request(
    target: Target, options: Mapping[str, Any], message: Message, *, now: datetime, event_id: str
) -> Request | None:
    """Returns the request; None for a webhook, which gets the event itself."""
    match target:
        case Target.SLACK:
            return slack.request(message, options)
        case Target.TEAMS:
            return teams.request(message, options)
        case Target.PAGERDUTY:
            return pagerduty.request(message, options)
        case Target.ALERTMANAGER:
            return alertmanager.request(message, options, now)
        case Target.EMAIL:
            return mail.request(message, options, now, event_id)
        case Target.WEBHOOK:
            return None
    assert_never(target)


def without_secrets(text: str, options: Mapping[str, Any]) -> str:
    """Masks the secrets in a receiver's answer, which may repeat the request."""
    values = [options.get(name) for name in (*SECRETS - {"headers"}, "url")]
    for value in [*values, *(options.get("headers") or {}).values()]:
        if value:
            text = text.replace(str(value), MASK)
    return text


def _url(target: Target, options: Mapping[str, Any]) -> str:
    if target is Target.EMAIL:
        return mail.url_of(options)
    return str(options.get("url") or pagerduty.URL)


def _masked(value: Any) -> Any:
    return dict.fromkeys(value, MASK) if isinstance(value, dict) else MASK
