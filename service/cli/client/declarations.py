"""The options by which commands declare what a table is: its index, its lock, its writers and readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from groundskeeper_client.generated.models import WriterEngine
from service.cli.client import arguments
from service.cli.client.failure import CommandError

if TYPE_CHECKING:
    from service.cli.client.connection import Json

Buckets = Annotated[int | None, typer.Option(min=1, help="Buckets of the bucket index")]
HashField = Annotated[list[str] | None, typer.Option(help="Field that the bucket index hashes; repeat it for several")]
Lock = Annotated[str | None, typer.Option(help="filesystem, zookeeper, or the class of a Hudi LockProvider")]
LockOption = Annotated[
    list[str] | None, typer.Option(help="Option of the lock, hoodie.write.lock.NAME=VALUE; repeat it for several")
]
LockWait = Annotated[
    float | None,
    typer.Option(min=1, max=86_400, help="How long a job waits for the lock. Default: GROUNDSKEEPER_LOCK_WAIT_SECONDS"),
]
Engines = Annotated[list[WriterEngine] | None, typer.Option(help="Engine that writes the table; repeat it for several")]
WritersVersion = Annotated[str | None, typer.Option(help="Hudi version of the writers, such as 1.2.0")]
ReadersVersion = Annotated[str | None, typer.Option(help="Hudi version of the oldest reader, such as 0.15.0")]
WritersStopped = Annotated[bool, typer.Option("--writers-stopped", help="No writer is running")]


def declared(
    before: Json,
    *,
    name: str | None = None,
    buckets: int | None = None,
    hash_field: list[str] | None = None,
    lock: str | None,
    lock_option: list[str] | None,
    lock_wait_seconds: float | None,
    readers_hudi_version: str | None,
    writers: Json,
) -> Json:
    """Returns the members of a table that the options set. What they say nothing about, of a lock with the same
    provider and of writers, is as in `before`. Raises CommandError."""
    if (buckets is None) != (not hash_field):
        raise CommandError.usage("A bucket index needs both --buckets and --hash-field.")
    found: Json = {}
    if name is not None:
        found["name"] = name
    if buckets is not None:
        found["index"] = {"type": "bucket", "num_buckets": buckets, "hash_fields": hash_field}
    if lock is not None or lock_option or lock_wait_seconds is not None:
        found["lock"] = _lock(before.get("lock") or {}, lock, arguments.pairs(lock_option, "--lock-option"))
        if lock_wait_seconds is not None:
            found["lock"]["wait_seconds"] = lock_wait_seconds
    if writers:
        found["writers"] = {**(before.get("writers") or {}), **writers}
    if readers_hudi_version:
        found["readers"] = {"hudi_version": readers_hudi_version}
    return found


def _lock(before: Json, provider: str | None, options: dict[str, str]) -> Json:
    chosen = provider or before.get("provider", "filesystem")
    # Another provider has other options.
    kept = (before.get("options") or {}) if chosen == before.get("provider", chosen) else {}
    return {**before, "provider": chosen, "options": {**kept, **options}}


def writers_of(engine: list[WriterEngine] | None, hudi_version: str | None, *, stopped: bool) -> dict[str, Any]:
    """Returns the members of the writers that the options set."""
    return {
        **({"engines": [each.value for each in engine]} if engine else {}),
        **({"hudi_version": hudi_version} if hudi_version else {}),
        **({"stopped": True} if stopped else {}),
    }
