"""Tests replicas of two versions that work on one database while the replicas are upgraded one after the other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import sqlalchemy as sa

import migrations
from service.db import migrate
from service.db.engine import open_engine, reading
from tests.integration.control_plane.databases import MOSTLY_ON_POSTGRESQL
from tests.integration.serving import Serving, eventually
from tests.support.forked_service import ended

if TYPE_CHECKING:
    from sqlalchemy import Engine

ROOT = Path(__file__).parents[3]
HOOK = {"url": "http://127.0.0.1:9/hook"}
HEAD = max(path.name[:4] for path in (Path(migrations.__file__).parent / "versions").glob("[0-9]*.py"))
EXPANDED, CONTRACTED = (f"{int(HEAD) + more:04}" for more in (1, 2))

EXPANDS = f'''
"""A column and a table more, which earlier versions do not need."""

import sqlalchemy as sa
from alembic import op

revision = "{EXPANDED}"
down_revision = "{HEAD}"
works_with = "{HEAD}"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("colour", sa.String(16)))
    op.create_table("colours", sa.Column("name", sa.String(16), primary_key=True))
'''
CONTRACTS = f'''
"""A column less, which the version before has not used any more."""

from alembic import op

revision = "{CONTRACTED}"
down_revision = "{EXPANDED}"
works_with = "{EXPANDED}"


def upgrade() -> None:
    op.drop_column("tokens", "expires_at")
'''


class Newer:
    """A later version of the service: the current code with more migrations."""

    def __init__(self, folder: Path, **more: str) -> None:
        shutil.copytree(Path(migrations.__file__).parent, folder / "migrations")
        for name, text in more.items():
            (folder / "migrations" / "versions" / f"{name}.py").write_text(text)
        # The folder precedes this version in the path, so that its migrations are found first.
        self.environment = {"PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT)))}


def environment(database: str) -> dict[str, str]:
    return {**os.environ, "GROUNDSKEEPER_DATABASE": database}


def run(folder: Path, database: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.cli", *arguments],
        cwd=folder,
        env={**environment(database), "PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def create(service: Serving) -> int:
    return httpx.post(f"{service.url}/v1/webhooks", json=HOOK, timeout=60).status_code


def webhooks(service: Serving) -> int:
    answer = httpx.get(f"{service.url}/v1/webhooks", timeout=60)
    return len(answer.json()["items"])


def readiness_of(service: Serving) -> tuple[int, str]:
    answer = httpx.get(f"{service.url}/readyz", timeout=60)
    return answer.status_code, answer.json().get("type", "")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@MOSTLY_ON_POSTGRESQL
def test_replicas_of_both_versions_work_on_a_database_that_the_newer_one_has_expanded(
    tmp_path: Path, here: Path, database: str
) -> None:
    newer = Newer(tmp_path / "newer", expands=EXPANDS)
    with Serving(here, database=database) as old:
        # After so many executions the driver prepares the statement, which a change of the schema would break.
        assert [create(old) for _ in range(8)] == [201] * 8
        with Serving(here, database=database, environment=newer.environment) as new:
            assert revision_of(new.engine) == EXPANDED
            # The probe may still answer with the result of the last second.
            assert not eventually(lambda: readiness_of(old) != (200, ""), 2.5)
            assert readiness_of(new) == (200, "")
            assert [create(each) for each in (old, new) * 4] == [201] * 8
            assert webhooks(old) == webhooks(new) == 16
            assert old.stop() == 0
            old.start()
            assert readiness_of(old) == (200, "")
            assert create(old) == 201
            assert revision_of(new.engine) == EXPANDED
        assert f"revision {EXPANDED}, which works with this one" in old.log.read_text()


@pytest.mark.exhaustive
@MOSTLY_ON_POSTGRESQL
def test_a_replica_is_not_ready_on_a_newer_schema_that_does_not_work_with_it_and_does_not_start(
    tmp_path: Path, here: Path, database: str
) -> None:
    newer = Newer(tmp_path / "newer", expands=EXPANDS, contracts=CONTRACTS)
    with Serving(here, database=database) as old:
        assert readiness_of(old) == (200, "")
        assert f"revision {CONTRACTED}" in run(here, database, "migrate", **newer.environment).stdout
        assert eventually(lambda: readiness_of(old) == (503, "/problems/not-ready"), 60)
        assert "newer version" in httpx.get(f"{old.url}/readyz").json()["detail"]
        assert old.stop() == 0
    refused = ended("serve", "--workers", "0", "--port", "0", cwd=here, env=environment(database))
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1), refused.stderr
    assert "newer version" in refused.stderr
    engine = open_engine(database)
    assert revision_of(engine) == CONTRACTED
    assert not migrate.is_usable(engine)
    engine.dispose()


def revision_of(engine: Engine) -> str:
    with reading(engine) as connection:
        return str(connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar())
