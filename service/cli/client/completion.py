"""Completes words in a shell with names from the service. The time is limited. If the service is unavailable or refuses
the call, nothing is completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import typer

from groundskeeper_client import Call, Client, ClientError, Retries, calls
from jobs.contract import JobKind
from service.cli.client import stored_contexts
from service.cli.client.connection import DEFAULT_URL, token_of
from service.cli.client.failure import CommandError
from service.cli.client.kinds import parameters
from service.policies.policy import SECTIONS, Policy

_MOST, _SECONDS = 100, 2.0
_NO_RETRY = Retries(times=1)


def complete_table(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completes names of tables."""
    pattern = f"{incomplete.replace('*', '?')}*"
    found = _items(context, calls.list_tables(name=pattern, limit=_MOST))
    return [(each.name, each.base_path) for each in found if each.name.startswith(incomplete)]


def complete_job(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completes ids of the last jobs."""
    found = _items(context, calls.list_jobs(limit=_MOST))
    return [(each.id, f"{each.kind.value} {each.state.value}") for each in found if each.id.startswith(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    """Completes `name=` of the settings of a policy."""
    names = list(_settings())
    return [f"{name}=" for name in names if name.startswith(incomplete)]


def every_member(dots: int) -> Iterable[str]:
    """Returns names that a user may misspell: settings and sections of policies, and parameters of jobs, as problems
    name them. Each name is cut off after this many dots."""
    of_jobs = (f"params.{each.name}" for kind in JobKind for each in parameters(kind))
    return dict.fromkeys(".".join(each.split(".")[: dots + 1]) for each in (*_settings(), *of_jobs))


def _settings() -> Iterator[str]:
    for name, value in Policy().to_json().items():
        if name in SECTIONS:
            yield from (f"{name}.{member}" for member in value)
        else:
            yield name


def _items(context: typer.Context, call: Call[Any]) -> list[Any]:
    """Returns the items of the first page, or none if the service takes too long."""
    found: list[Any] = []
    asking = Thread(target=lambda: found.extend(_asked(context.params.get, call)), daemon=True)
    asking.start()
    asking.join(_SECONDS)
    return list(found)


def _asked(given: Callable[[str], Any], call: Call[Any]) -> list[Any]:
    try:
        stored = None if given("url") else stored_contexts.read().in_use
        url = given("url") or (stored.url if stored else DEFAULT_URL)
        token = token_of(given("token_file"))
        if token is None and stored and stored.token_file:
            token = token_of(Path(stored.token_file))
        with closing(Client(url, token, retries=_NO_RETRY)) as client:
            return list(client.send(call).items)
    except (ClientError, CommandError):
        return []
