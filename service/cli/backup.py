"""`groundskeeper backup` and `restore`: an SQLite database and the key of its secrets in one file."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.database import Database, shown, sqlite_file
from service.model import private_file
from service.model.clock import utc_now
from service.model.formatting import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

_DATABASE, _KEY, _ABOUT = "groundskeeper.db", "groundskeeper.key", "about.json"
_SETTING = "GROUNDSKEEPER_SECRET_KEYS"
_BESIDE = ("", "-wal", "-shm", "-journal")

File = Annotated[Path, typer.Argument(help="The file of the backup", show_default=False)]


def backup(
    file: File,
    database: Database = None,
    *,
    without_key: Annotated[
        bool, typer.Option("--without-key", help="Leave out the key of the secrets, which must be kept elsewhere")
    ] = False,
) -> None:
    """Write a consistent copy of the database, and the key of its secrets, to a new file. The service may run
    meanwhile."""
    from service.access.secret_cipher import key_file
    from service.db import migrate, snapshot

    engine, source, has_keys = _sqlite(database, tool="pg_dump --format=custom")
    if not source.exists() or not migrate.is_ours(engine):
        raise _refused(
            f"there is no database of Groundskeeper {shown(engine)}. Name the service's database by --database or"
            " GROUNDSKEEPER_DATABASE, or start in the folder of `serve`"
        )
    if file.exists():
        raise typer.BadParameter(f"{file} exists already", param_hint="FILE")
    key = None if has_keys else key_file(source)
    is_included = key is not None and key.exists() and not without_key
    with _aside(file) as folder:
        copy, about = folder / _DATABASE, folder / _ABOUT
        private_file.create(copy)
        snapshot.take(engine, copy)
        about.write_text(json.dumps({"version": version("groundskeeper"), "taken_at": utc_now().isoformat()}))
        packed = folder / "packed"
        private_file.create(packed)
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            archive.add(about, _ABOUT)
            archive.add(copy, _DATABASE)
            if key is not None and is_included:
                archive.add(key, _KEY)
        _put(packed, file, "FILE")
    typer.echo(f"Wrote {file} ({size(file.stat().st_size)}): the database {shown(engine)}.")
    typer.echo(_about_key(key, is_included=is_included, has_keys=has_keys), err=True)


def restore(file: File, database: Database = None) -> None:
    """Restore a backup to a place where there is no database. After that, start the service."""
    from service.access.secret_cipher import key_file
    from service.db import migrate, snapshot
    from service.db.engine import open_engine

    engine, target, has_keys = _sqlite(database, tool="pg_restore")
    for suffix in _BESIDE:
        if (found := target.with_name(target.name + suffix)).exists():
            raise _refused(
                f"{found} exists already, and nothing is overwritten. Stop the service that uses it and move its files"
                " away, or name another one"
            )
    with _aside(target) as folder:
        members = _unpacked(file, folder)
        if _DATABASE not in members:
            raise typer.BadParameter(f"{file} is no backup of Groundskeeper", param_hint="FILE")
        snapshot.check(folder / _DATABASE)
        found_engine = open_engine(f"sqlite:///{folder / _DATABASE}")
        try:
            if not migrate.is_ours(found_engine):
                raise typer.BadParameter(f"{file} is no backup of Groundskeeper", param_hint="FILE")
            if migrate.is_newer(found_engine) and not migrate.is_usable(found_engine):
                raise typer.BadParameter(
                    f"a newer version made {file}: restore it with that version", param_hint="FILE"
                )
        finally:
            found_engine.dispose()
        snapshot.check(folder / _DATABASE)
        key = key_file(target)
        if _KEY in members and not has_keys:
            wanted = (folder / _KEY).read_bytes()
            if key.exists() and key.read_bytes() != wanted:
                raise _refused(
                    f"{key} is not the key of the backup, and nothing is overwritten. Move it away, or name"
                    " another database"
                )
            private_file.create(key, wanted)
        _put(folder / _DATABASE, target, "--database")
    typer.echo(f"Restored {file} to the database {shown(engine)}.")
    if not has_keys and not key.exists():
        typer.echo(
            f"The backup has no key, so secrets of webhooks and tables cannot be read: put it into {key}, or set"
            f" {_SETTING}, before the service starts.",
            err=True,
        )


def _sqlite(url: str | None, *, tool: str) -> tuple[Engine, Path, bool]:
    """Returns the database, its file, and whether the settings have the keys of its secrets. The database is not
    migrated, so that a backup can be made before an upgrade."""
    from service.db.engine import open_engine
    from service.runtime import settings

    chosen = settings.load(database=url)
    engine = open_engine(chosen.database)
    file = sqlite_file(engine)
    if file is None:
        raise _refused(
            f"{shown(engine)} is no file. Use `{tool}` of PostgreSQL; the keys of {_SETTING} are not in a dump"
        )
    return engine, file, bool(chosen.secret_keys)


def _refused(why: str) -> typer.BadParameter:
    return typer.BadParameter(why, param_hint="--database")


def _about_key(key: Path | None, *, is_included: bool, has_keys: bool) -> str:
    if is_included:
        return f"The key of its secrets, {key}, is in the file: keep the file as secret as the key."
    if has_keys:
        return f"The keys of its secrets are those of {_SETTING}, and not in the file: keep them elsewhere."
    if key is not None and key.exists():
        return f"The key of its secrets, {key}, is not in the file: keep it elsewhere."
    return "The database has no key, so there are no secrets in it."


@contextmanager
def _aside(file: Path) -> Iterator[Path]:
    """Yields a new folder that only this user can read, on the file system of `file`. Removes it afterwards."""
    try:
        with TemporaryDirectory(prefix=f".{file.name}.", dir=file.absolute().parent) as folder:
            yield Path(folder)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be used: {error.strerror or error}", param_hint="FILE") from error


def _put(file: Path, target: Path, option: str) -> None:
    """Renames the finished file to `target` in one step. An existing file is not overwritten."""
    with file.open("rb") as content:
        os.fsync(content.fileno())
    try:
        os.link(file, target)
    except FileExistsError:
        raise typer.BadParameter(f"{target} exists already", param_hint=option) from None


def _unpacked(file: Path, folder: Path) -> set[str]:
    """Unpacks the known members of the backup, and ignores others. Returns the names of the unpacked members."""
    found = set()
    try:
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                if member.name in {_DATABASE, _KEY} and member.isfile() and (content := archive.extractfile(member)):
                    target = folder / member.name
                    private_file.create(target)
                    with target.open("wb") as out:
                        shutil.copyfileobj(content, out)
                    found.add(member.name)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise typer.BadParameter(f"{file} cannot be read as a backup: {error}", param_hint="FILE") from error
    return found
