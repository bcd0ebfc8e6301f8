"""Three services that share one PostgreSQL server still poll the tables after the server was unreachable and services
were killed."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest

from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import open_engine, writing
from tests.integration.receiver import Receiver
from tests.integration.serving import Serving, eventually
from tests.support import postgresql
from tests.support.small_table import SmallTable, instant_at, log_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.postgresql import Server

TABLES = 100
AWAY_SECONDS = 30.0
KILLS = 6


@pytest.fixture
def server() -> Iterator[Server]:
    """A separate server, because the test stops it."""
    if not (postgresql.PROGRAMS / "initdb").exists():
        pytest.skip("PostgreSQL 15 is not installed")
    with postgresql.running() as running:
        yield running


class Writer:
    """Commits to one table after the other, five times a second, without callbacks, so only polls find the commits."""

    def __init__(self, bases: dict[str, Path]) -> None:
        self._bases = list(bases.items())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.committed: list[tuple[str, str]] = []

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            table_id, base = self._bases[len(self.committed) % len(self._bases)]
            table, instant = SmallTable.standing(base), instant_at(datetime.now(UTC))
            table.begin(instant)
            table.commit(instant, {"": {log_file("00000000-0000-0000-0000-000000000000-0", instant): 100}})
            self.committed.append((table_id, instant))


@pytest.mark.exhaustive
def test_replicas_are_killed_and_the_database_goes_away_and_every_commit_is_announced(
    server: Server, tmp_path: Path
) -> None:
    database = server.new_database()
    settings = {"POLL_SECONDS": "5", "AUTOMATIC": "false"}
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
    replicas = [Serving(folder, database=database, **settings) for folder in folders]
    bases = _registered(database, tmp_path / "lake")
    receiver = Receiver()
    try:
        httpx.post(
            f"{replicas[0].url}/v1/webhooks", json={"url": receiver.url, "types": ["commit.published"]}
        ).raise_for_status()
        with Writer(bases) as writer:
            choice = random.Random(7)
            for number in range(KILLS):
                time.sleep(5)
                victim = choice.choice(replicas)
                victim.kill()
                if number == KILLS // 2:
                    server.stop()
                    time.sleep(AWAY_SECONDS)
                    assert {_readiness(each) for each in replicas if each is not victim} == {503}
                    server.start()
                victim.start()
            assert eventually(lambda: {_readiness(each) for each in replicas} == {200}, 60)

        def announced() -> Counter[tuple[str, str]]:
            events = [each.event["data"] for each in list(receiver.received)]
            return Counter((each["table"]["id"], each["commit"]["instant"]) for each in events)

        assert eventually(lambda: set(writer.committed) <= announced().keys(), 60), (
            set(writer.committed) - announced().keys()
        )
        found = announced()
    finally:
        receiver.close()
        for each in replicas:
            each.__exit__(None, None, None)
    assert len(writer.committed) > 200
    # A delivery is repeated only if a service was killed or lost the database between sending and recording it.
    again = sum(found.values()) - len(found)
    assert again <= 10 * (KILLS + len(replicas))
    print(f"{len(writer.committed)} commits, all announced, {again} of them more than once")


def _registered(database: str, lake: Path) -> dict[str, Path]:
    model = SmallTable(lake / "model")
    bases = {f"tbl_{number}": lake / f"t{number}" for number in range(TABLES)}
    now, engine = datetime.now(UTC), open_engine(database)
    with writing(engine) as connection:
        for table_id, base in bases.items():
            shutil.copytree(model.base, base)
            table_store.register(connection, Registration(table_id, str(base), base.name, now, now))
    engine.dispose()
    return bases


def _readiness(service: Serving) -> int:
    try:
        return httpx.get(f"{service.url}/readyz", timeout=30).status_code
    except httpx.HTTPError:
        return 0
