"""The file of contexts in the user's configuration folder (XDG). Only the user may read this file."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from service.cli.client.failure import CommandError
from service.model import private_file

_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Context:
    url: str
    token_file: str | None = None


@dataclass(frozen=True)
class Contexts:
    """The stored contexts. `current` is the name of the context that commands use."""

    current: str | None = None
    contexts: Mapping[str, Context] = field(default_factory=dict)

    @property
    def in_use(self) -> Context | None:
        return self.contexts.get(self.current or "")


def path() -> Path:
    # The XDG specification says that an empty or relative value counts as unset.
    given = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(given) if Path(given).is_absolute() else Path("~/.config").expanduser()
    return folder / "groundskeeper" / "contexts.json"


def read() -> Contexts:
    """Reads the contexts. Raises CommandError if the file exists but cannot be used."""
    file = path()
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except OSError as error:
        raise CommandError.usage(f"The contexts in {file} cannot be read: {error.strerror}.") from error
    try:
        if len(content) > _MOST_BYTES:
            raise CommandError.usage(f"{file} has more than {_MOST_BYTES} bytes.")
        return msgspec.json.decode(content, type=Contexts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CommandError.usage(
            f"{file} does not contain contexts: {error}.", "Correct or remove the file."
        ) from error


def write(contexts: Contexts) -> None:
    """Replaces the file in one step, so that a command that reads it meanwhile gets either the old or the new contexts.
    Raises CommandError."""
    file = path()
    aside = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_file.create(aside, json.dumps(asdict(contexts), indent=2).encode())
        aside.replace(file)
    except OSError as error:
        raise CommandError.usage(f"The contexts cannot be written to {file}: {error.strerror}.") from error
