"""Tests backups of the database while the service writes to it, and services that start on a restored database."""

from __future__ import annotations

import sqlite3
import tarfile
import threading
import time
from typing import TYPE_CHECKING

import pytest

from service.access.secret_cipher import SecretCipher, key_file
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.delivery import webhook_store
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.serving import Serving
from tests.support.commands import called

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("backup")) as cli:
        cli.environment["GROUNDSKEEPER_DATABASE"] = str(cli.serving.engine.url)
        yield cli


def test_a_restored_service_has_its_tables_its_tokens_and_its_secrets(cli: CommandLine, tmp_path: Path) -> None:
    table_id = cli.table("orders")
    hook = cli.json("webhooks", "add", "http://127.0.0.1:9/", "--type", "commit.*")
    file, elsewhere = tmp_path / "backup.tgz", tmp_path / "elsewhere"
    elsewhere.mkdir()
    ended = cli.run("backup", str(file))
    assert "is in the file" in ended.stderr
    assert file.stat().st_mode & 0o777 == 0o600

    url = f"sqlite:///{elsewhere / 'groundskeeper.db'}"
    cli.run("restore", str(file), "--database", url)
    assert sorted(each.name for each in elsewhere.iterdir()) == ["groundskeeper.db", "groundskeeper.key"]
    with Serving(elsewhere) as restored:
        [table] = cli.json("tables", "list", GROUNDSKEEPER_URL=restored.url)["items"]
        assert (table["id"], table["name"]) == (table_id, "orders")
        cipher = SecretCipher([key_file(elsewhere / "groundskeeper.db").read_text().strip()])
        with reading(restored.engine) as connection:
            sealed = webhook_store.get(connection, hook["id"])
        assert cipher.open(sealed.sealed_secret) == hook["secret"]
    assert "nothing is overwritten" in cli.refused("restore", str(file), "--database", url, code=2)
    refused = " ".join(cli.refused("backup", str(file), code=2).replace("│", " ").split())
    assert "exists already" in refused


def test_a_backup_shows_one_moment_although_the_service_goes_on_writing(cli: CommandLine, tmp_path: Path) -> None:
    policies = schema.policies
    stopped = threading.Event()

    def write() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            time.sleep(0.001)
            # One transaction changes both rows.
            with writing(cli.serving.engine) as connection:
                for pattern in ("a*", "z*"):
                    connection.execute(policies.update().where(policies.c.pattern == pattern).values(precedence=number))

    for pattern in ("a*", "z*"):
        cli.run("policy", "set", "--pattern", pattern, "compaction.commits=7")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            file = tmp_path / f"{number}.tgz"
            cli.run("backup", str(file), "--without-key")
            with tarfile.open(file) as archive:
                assert archive.getnames() == ["about.json", "groundskeeper.db"]
                packed = archive.extractfile("groundskeeper.db")
                assert packed
                # Python 3.11.2, which Debian has, knows no filters of `TarFile.extract`.
                (tmp_path / f"{number}.db").write_bytes(packed.read())
            with sqlite3.connect(tmp_path / f"{number}.db") as copy:
                found = copy.execute("SELECT DISTINCT precedence FROM policies").fetchall()
            assert len(found) == 1
    finally:
        stopped.set()
        writer.join()


def test_a_backup_without_its_key_says_what_is_missing(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "backup.tgz"
    cli.run("webhooks", "add", "http://127.0.0.1:9/", "--type", "commit.*")
    assert "is not in the file: keep it elsewhere" in cli.run("backup", str(file), "--without-key").stderr
    restored = cli.run("restore", str(file), "--database", f"sqlite:///{tmp_path}/x.db")
    assert f"put it into {tmp_path}/x.key" in restored.stderr


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b" + bytes(100)])
def test_a_file_that_is_not_a_backup_restores_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    ended = called(("restore", str(tmp_path / "file"), "--database", f"sqlite:///{tmp_path}/x.db"))
    assert ended.exit_code == 2
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_file_that_was_cut_off_restores_nothing(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "backup.tgz"
    cli.run("backup", str(file))
    file.write_bytes(file.read_bytes()[:-2000])
    cli.refused("restore", str(file), "--database", f"sqlite:///{tmp_path}/x.db", code=2)
    assert [each.name for each in tmp_path.iterdir()] == ["backup.tgz"]


def test_the_database_of_another_program_and_postgresql_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (id INTEGER)")
    for url, why in (
        (f"sqlite:///{tmp_path}/other.db", "no database of Groundskeeper"),
        (f"sqlite:///{tmp_path}/none.db", "no database of Groundskeeper"),
        ("postgresql://ada:secret@localhost/gk", "pg_dump"),
    ):
        ended = called(("backup", str(tmp_path / "b.tgz"), "--database", url))
        assert ended.exit_code == 2
        assert why in ended.stderr
        assert "secret@" not in ended.stderr
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "b.tgz").exists()


def test_a_backup_migrates_nothing(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    cli.run("backup", str(tmp_path / "b.tgz"))
    cli.run("restore", str(tmp_path / "b.tgz"), "--database", f"sqlite:///{file}")
    engine = open_engine(f"sqlite:///{file}")
    with writing(engine) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    engine.dispose()
    cli.run("backup", str(tmp_path / "old.tgz"), "--database", f"sqlite:///{file}")
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
