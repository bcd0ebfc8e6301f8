"""Fixtures: real databases, a clock that tests set, and an API whose `examine` returns made-up tables without reading
any."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.contract import BucketIndex
from service.access import token_store
from service.access.token import Bearer, Role, Token, digest
from service.api.app import create_app
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.delivery.guard import Guard
from service.delivery.guarded_loop import GuardedEventLoop
from service.model.storage_errors import PathForbiddenError
from service.model.table_errors import BucketIndexContradictedError
from tests.integration.control_plane.command_line import serving_command_line
from tests.integration.control_plane.databases import lent_postgresql, new_sqlite, open_sqlite, opened
from tests.integration.control_plane.posting import Post
from tests.integration.control_plane.stories import Story, Upkeep
from tests.integration.control_plane.watching import Watched
from tests.integration.receiver import Receiver
from tests.support.contexts import changed, context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from service.lake.engine_sighting import Mark
    from tests.integration.control_plane.command_line import CommandLine
    from tests.integration.control_plane.operated import Operated
    from tests.integration.control_plane.protocol_worker import Worker
    from tests.support.postgresql import Server


@dataclass
class FakeClock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def service_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """One service for all tests of a module, because it takes longer to start than most of them."""
    from tests.integration.control_plane.operated import operating  # That module imports the fakes of this one.

    with operating(tmp_path_factory.mktemp("service")) as operated:
        yield operated


@pytest.fixture
def operated(service_of_module: Operated, tmp_path: Path) -> Iterator[Operated]:
    """The service of the module, with a folder of the test and without the tables of earlier tests."""
    service_of_module.folder = tmp_path
    yield service_of_module
    service_of_module.clear()


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line of a service with one table, `orders`."""
    with serving_command_line(tmp_path_factory.mktemp("command_line")) as cli:
        cli.table("orders", "--lock", "filesystem", "--engine", "spark")
        yield cli


@pytest.fixture
def worker(cli: CommandLine) -> Iterator[Worker]:
    with cli.worker() as worker:
        yield worker


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each kind without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/gk.db"
    server: Server = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind with the newest schema."""
    if request.param == "sqlite":
        yield new_sqlite(tmp_path / "gk.db")
    else:
        with lent_postgresql(request.getfixturevalue("postgresql")) as url:
            yield url


@pytest.fixture
def engine(database: str) -> Iterator[sa.Engine]:
    engine = opened(database)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[sa.Engine]:
    engine = open_sqlite(tmp_path / "api.db")
    yield engine
    engine.dispose()


@pytest.fixture
def watched(engine: sa.Engine, clock: FakeClock) -> Watched:
    return Watched(engine, clock)


@pytest.fixture
def story(watched: Watched, tmp_path: Path) -> Story:
    return Story(watched, tmp_path)


@pytest.fixture
def upkeep(story: Story) -> Upkeep:
    story.register()
    return Upkeep(story)


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def version(request: pytest.FixtureRequest) -> int:
    """The version of a Hudi table."""
    return int(request.param)


@pytest.fixture
def either(watched: Watched, tmp_path: Path, version: int) -> Story:
    return Story(watched, tmp_path, version)


@pytest.fixture
def a_table(engine: sa.Engine, clock: FakeClock) -> Registration:
    table = Registration("tbl_1", "/lake/orders", "orders", clock(), clock(), index=BucketIndex(4, ("id",)))
    with writing(engine) as connection:
        table_store.register(connection, table)
    return table


class FakeProfile:
    def to_json(self) -> dict[str, Any]:
        return {"type": "MERGE_ON_READ", "version": 9}


@dataclass
class FakeExamination:
    base_path: str
    name: str = "orders"
    index: BucketIndex | None = None
    profile: FakeProfile = field(default_factory=FakeProfile)
    marks: tuple[Mark, ...] = ()


@dataclass
class FakeExamine:
    """Finds a table with four buckets at each path, and records the calls."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    marks: tuple[Mark, ...] = ()

    def __call__(
        self,
        location: str,
        *,
        allowed_roots: tuple[str, ...] | None,
        claimed: BucketIndex | None,
        storage_options: Mapping[str, str],
    ) -> FakeExamination:
        self.asked.append({"location": location, "allowed_roots": allowed_roots, "claimed": claimed})
        if allowed_roots is not None and not location.startswith(allowed_roots):
            raise PathForbiddenError(location)
        if claimed and claimed.num_buckets != 4:
            raise BucketIndexContradictedError("37 of 40 keys differ", extensions={"sampled": 40, "contradicting": 37})
        if location.endswith("/broken"):
            raise ZeroDivisionError("a secret that nobody may see")
        return FakeExamination(location.rstrip("/"), index=claimed, marks=self.marks)


@pytest.fixture
def examine() -> FakeExamine:
    return FakeExamine()


@pytest.fixture
def app_context(sqlite: sa.Engine, clock: FakeClock, examine: FakeExamine) -> AppContext:
    return context_of(sqlite, examine=examine, clock=clock, rng=Random(1))


@pytest.fixture
def client(app_context: AppContext) -> Iterator[TestClient]:
    app = create_app(app_context)
    # Without tokens every call that changes something must be JSON, also those without a body.
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def api(app_context: AppContext, engine: sa.Engine) -> Iterator[TestClient]:
    """A client of the API on each kind of database, whose webhooks may go to localhost."""
    context = changed(app_context, engine=engine, guard=Guard(frozenset({"localhost"})))
    headers = {"Content-Type": "application/json"}
    with TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers) as client:
        yield client


@pytest.fixture
def make_token(sqlite: sa.Engine, clock: FakeClock) -> Callable[..., dict[str, str]]:
    """Stores a new token for these worker groups, and returns the headers of a call with it."""

    def make(role: Role, groups: tuple[str, ...] | None = None) -> dict[str, str]:
        bearer = Bearer.new()
        token = Token(bearer.id, f"a {role}", role, digest(bearer.secret), clock(), groups=groups)
        with writing(sqlite) as connection:
            token_store.add(connection, token)
        return {"Authorization": f"Bearer {bearer}"}

    return make


@pytest.fixture
def table_id(client: TestClient) -> str:
    answer = client.post("/v1/tables", json={"base_path": "/lake/orders"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
def post(engine: sa.Engine, clock: FakeClock) -> Iterator[Post]:
    """A dispatcher of webhooks on each kind of database."""
    with asyncio.Runner(loop_factory=GuardedEventLoop) as runner:
        post = Post(engine, clock, runner)
        yield post
        post.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver
