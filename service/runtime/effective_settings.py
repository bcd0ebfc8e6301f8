"""The settings in force, each with its source; and a check for variables of the environment that are not settings."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr

from jobs.contract import JsonMapped
from jobs.redaction import MASK, is_secret, redacted
from jobs.storage.accounts import Account
from service.model.errors import SettingsError
from service.runtime.settings import Settings, load

_PREFIX = "GROUNDSKEEPER_"
CLIENT = {"GROUNDSKEEPER_URL", "GROUNDSKEEPER_TOKEN"}
"""Variables that the command line reads as a client."""
# Variables of a local worker, and of the tests.
_OTHERS = {"GROUNDSKEEPER_PARENT_PID", "GROUNDSKEEPER_FLINK_BUNDLE"}


@dataclass(frozen=True)
class Effective(JsonMapped):
    """A setting in force. `value` is JSON, with secrets masked. `source` is `default` or `environment`."""

    name: str
    value: Any
    source: str


def effective() -> list[Effective]:
    """Returns all settings, in the order of their fields. Raises SettingsError for settings that are not valid or not
    known."""
    check_known()
    settings = load()
    given = {name.upper() for name in os.environ}
    found = []
    for field in Settings.model_fields:
        name = f"{_PREFIX}{field.upper()}"
        source = "environment" if name in given else "default"
        found.append(Effective(name, shown(field, getattr(settings, field)), source))
    return found


def check_known() -> None:
    """Raises SettingsError if the environment has variables GROUNDSKEEPER_... that are not settings. The error suggests
    similar names."""
    known = {f"{_PREFIX}{field.upper()}" for field in Settings.model_fields} | CLIENT
    unknown = sorted(name for name in os.environ if name.upper().startswith(_PREFIX))
    unknown = [name for name in unknown if name.upper() not in known | _OTHERS]
    if not unknown:
        return
    details = []
    for name in unknown:
        near = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0)
        details.append(f"{name} is no setting; the nearest one is {near[0]}")
    raise SettingsError(f"{'; '.join(details)}.", hint="Correct the name, or unset the variable: it has no effect.")


def shown(field: str, value: Any) -> Any:
    """Returns the JSON of a value, without secrets."""
    match value:
        case SecretStr():
            return MASK
        case dict():
            return {
                str(name): MASK if isinstance(each, str) and is_secret(str(name), each) else each
                for name, each in value.items()
            }
        case Account():
            return value.shown()
        case BaseModel():
            return {name: shown(name, each) for name, each in value if each is not None}
        case tuple() | list():
            return [shown(field, each) for each in value]
        case None | bool() | int() | float():
            return value
        case _:
            return redacted(str(value))
