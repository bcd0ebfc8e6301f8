"""The options of commands that declare facts about a table: its index, its lock, its writers and readers, its owner."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from groundskeeper_client.generated.models import WriterEngine
from service.cli.client import arguments
from service.cli.client.connection import Json
from service.cli.client.failure import CommandError


@dataclass(frozen=True, kw_only=True)
class OfTables:
    """Options for declarations about many tables."""

    lock: Annotated[str | None, typer.Option(help="filesystem, zookeeper, or the class of a Hudi LockProvider")] = None
    lock_option: Annotated[
        list[str] | None, typer.Option(help="Option of the lock, hoodie.write.lock.NAME=VALUE; repeat it for several")
    ] = None
    lock_wait_seconds: Annotated[
        float | None,
        typer.Option(
            min=1, max=86_400, help="How long a job waits for the lock. Default: GROUNDSKEEPER_LOCK_WAIT_SECONDS"
        ),
    ] = None
    engine: Annotated[
        list[WriterEngine] | None, typer.Option(help="Engine that writes the table; repeat it for several")
    ] = None
    hudi_version: Annotated[str | None, typer.Option(help="Hudi version of the writers, such as 1.2.0")] = None
    readers_hudi_version: Annotated[
        str | None, typer.Option(help="Hudi version of the oldest reader, such as 0.15.0")
    ] = None
    reads_per_day: Annotated[
        float | None,
        typer.Option(min=0, help="How often the whole table is read. Default: as lineage and consumers report it"),
    ] = None
    writers_stopped: Annotated[bool, typer.Option("--writers-stopped", help="No writer is running")] = False
    owner: Annotated[
        str | None, typer.Option(help="Who is responsible: a team, a person, an address; '' for nobody")
    ] = None
    tag: Annotated[list[str] | None, typer.Option(help="Tag, KEY=VALUE or KEY; repeat it for several")] = None

    def declared(self, before: Json, **of_writers: bool | str | None) -> Json:
        """Returns the members of a table that the options set. If an option changes only a part of the writers, of the
        tags, or of a lock with the same provider, the rest is taken from `before`. `of_writers` are further members of
        the writers; a value of None changes nothing. Raises CommandError."""
        found: Json = {}
        if self.lock is not None or self.lock_option or self.lock_wait_seconds is not None:
            options = arguments.pairs(self.lock_option, "--lock-option")
            found["lock"] = _lock(before.get("lock") or {}, self.lock, options)
            if self.lock_wait_seconds is not None:
                found["lock"]["wait_seconds"] = self.lock_wait_seconds
        said = {name: value for name, value in of_writers.items() if value is not None}
        if writers := {**self._writers(), **said}:
            found["writers"] = {**(before.get("writers") or {}), **writers}
        given = {"hudi_version": self.readers_hudi_version, "reads_per_day": self.reads_per_day}
        if readers := {name: value for name, value in given.items() if value is not None}:
            found["readers"] = {**(before.get("readers") or {}), **readers}
        if self.owner is not None:
            found["owner"] = self.owner or None
        if self.tag:
            found["tags"] = {**(before.get("tags") or {}), **tags(self.tag)}
        return found

    def _writers(self) -> dict[str, Any]:
        return {
            **({"engines": [each.value for each in self.engine]} if self.engine else {}),
            **({"hudi_version": self.hudi_version} if self.hudi_version else {}),
            **({"stopped": True} if self.writers_stopped else {}),
        }


@dataclass(frozen=True, kw_only=True)
class OfTable(OfTables):
    """Options for declarations about one table."""

    name: Annotated[str | None, typer.Option(help="Name. Default of a registration: the name in hoodie.properties")] = (
        None
    )
    buckets: Annotated[int | None, typer.Option(min=1, help="Buckets of the bucket index")] = None
    hash_field: Annotated[
        list[str] | None, typer.Option(help="Field that the bucket index hashes; repeat it for several")
    ] = None

    def declared(self, before: Json, **of_writers: bool | str | None) -> Json:
        if (self.buckets is None) != (not self.hash_field):
            raise CommandError.usage("A bucket index needs both --buckets and --hash-field.")
        found: Json = {} if self.name is None else {"name": self.name}
        if self.buckets is not None:
            found["index"] = {"type": "bucket", "num_buckets": self.buckets, "hash_fields": self.hash_field}
        return {**found, **super().declared(before, **of_writers)}


def with_declarations(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of the class that is the annotation of its parameter `declares`. Calls the command
    with an instance of this class."""
    signature = inspect.signature(command, eval_str=True)
    declares: type[OfTables] = signature.parameters["declares"].annotation
    hints = get_type_hints(declares, include_extras=True)
    names = [each.name for each in dataclasses.fields(declares)]
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in dataclasses.fields(declares)
    ]

    @functools.wraps(command)
    def run(*given: Any, **options: Any) -> None:
        command(*given, declares=declares(**{name: options.pop(name) for name in names}), **options)

    own = [each for name, each in signature.parameters.items() if name != "declares"]
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]  # this is what `of_service` reads
        parameters=[*(each for each in own if each.kind is not inspect.Parameter.KEYWORD_ONLY), *options]
        + [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    )
    return run


def tags(given: list[str] | None) -> dict[str, str]:
    """Parses tags, `key=value` or `key`."""
    return {key: value for key, _, value in (each.partition("=") for each in given or ())}


def _lock(before: Json, provider: str | None, options: dict[str, str]) -> Json:
    chosen = provider or before.get("provider", "filesystem")
    # Another provider has other options.
    kept = (before.get("options") or {}) if chosen == before.get("provider", chosen) else {}
    return {**before, "provider": chosen, "options": {**kept, **options}}
