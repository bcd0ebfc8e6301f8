"""The command line, and the composition root: here the parts are chosen and put together."""

from __future__ import annotations

import logging
import random
import sys
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from service import settings
from service.api.app import create_app
from service.api.deps import Parts, is_loopback
from service.daemon import local_worker, process
from service.daemon.dispatch import DispatchThread
from service.flows import plan, prune, recover, register
from service.flows.bell import Bell
from service.flows.deliver import Dispatcher, DispatchTerms
from service.flows.hurry import Hurry
from service.flows.lease import LeaseTerms
from service.flows.observe import Observer, ObserveTerms
from service.model.clock import utc_now
from service.model.errors import GroundskeeperError, SettingsError
from service.model.token import Bearer, Role, Token, digest
from service.policy.backoff import BackOff
from service.policy.delivery import DeliveryTerms
from service.policy.planner import Limits
from service.store import migrate as migrations
from service.store import tokens
from service.store.engine import open_engine, reading, writing
from service.webhook.box import SecretBox, key_from
from service.webhook.guard import Guard
from service.webhook.sender import Sender, SendLimits, trusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

_OBSERVE_SECONDS = 1.0

app = typer.Typer(
    help="A table-service daemon for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
token_app = typer.Typer(help="Make, list and revoke bearer tokens.", no_args_is_help=True)
app.add_typer(token_app, name="token")

_PRUNE_SECONDS = 600.0

Database = Annotated[str | None, typer.Option(help="SQLAlchemy URL. Default: sqlite:///groundskeeper.db")]
Master = Annotated[str | None, typer.Option(help="Spark master. Default: local[2,4]")]
Slots = Annotated[int | None, typer.Option(help="Jobs that a worker runs at once. Default: 1")]
Memory = Annotated[str | None, typer.Option(help="Memory of the Spark driver. Default: 2g")]


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"groundskeeper {version('groundskeeper')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Default: 127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Default: 8080; 0 takes any free one")] = None,
    database: Database = None,
    workers: Annotated[int | None, typer.Option(help="Local Spark workers. Default: 1")] = None,
) -> None:
    """Run the service, with a local Spark worker."""
    chosen = settings.load(host=host, port=port, database=database, workers=workers)
    _log_to_stderr(chosen.log_level)
    engine = open_engine(chosen.database)
    migrations.upgrade(engine)
    with reading(engine) as connection:
        has_tokens = tokens.exist(connection)
    if not has_tokens and not is_loopback(chosen.host):
        raise SettingsError(
            f"Without any token the service only listens on a loopback address, not on {chosen.host}.",
            hint="Make a token first: groundskeeper token create --role admin.",
        )
    listening = process.listen(chosen.host, chosen.port)
    url = process.url_of(listening)
    bell = Bell()
    hurry = Hurry()
    rng = random.Random()  # noqa: S311 - jitter, nothing secret
    secret, local = _token("local worker", Role.WORKER)
    box = _secret_box(chosen, engine)
    guard = Guard.of(chosen.webhook_allowed_hosts)
    parts = Parts(
        engine=engine,
        examine=register.examine,
        bell=bell,
        hurry=hurry,
        rng=rng,
        terms=LeaseTerms(
            lease=timedelta(seconds=chosen.lease_seconds),
            timeout_seconds=chosen.job_timeout_seconds,
            backoff=BackOff(first=chosen.retry_first_seconds, most=chosen.retry_most_seconds),
        ),
        max_attempts=chosen.max_attempts,
        planning=plan.Terms(
            limits=Limits(chosen.max_active_jobs, chosen.max_active_by_kind, chosen.max_new_jobs),
            max_attempts=chosen.max_attempts,
        ),
        max_request_bytes=chosen.max_request_bytes,
        is_loopback=is_loopback(chosen.host),
        allowed_roots=chosen.allowed_roots,
        storage_options=chosen.storage_options,
        local_worker=local,
        public_url=chosen.public_url,
        callback_key=chosen.callback_key.get_secret_value() if chosen.callback_key else None,
        box=box,
        guard=guard,
        event_source=chosen.event_source,
    )
    observer = Observer(
        engine,
        utc_now,
        rng,
        hurry,
        ObserveTerms(
            poll_seconds=chosen.poll_seconds,
            look_seconds=chosen.look_seconds,
            threads=chosen.look_threads,
            small_file_bytes=chosen.small_file_bytes,
        ),
        storage_options=chosen.storage_options,
        on_change=lambda _looked: bell.ring(),
    )
    ticks = [
        process.Tick(
            "recover",
            chosen.recover_seconds,
            lambda: recover.run_once(engine, bell, utc_now),
            # While the service was down no worker could keep its lease; each gets the time for a heartbeat.
            first_after=chosen.lease_seconds / 2,
        ),
        process.Tick("observe", _OBSERVE_SECONDS, observer.run_once, rung=hurry.rung),
        process.Tick(
            "prune",
            _PRUNE_SECONDS,
            lambda: prune.run_once(
                engine,
                utc_now,
                prune.Keep(
                    history=timedelta(days=chosen.history_days),
                    commits=timedelta(days=chosen.commit_days),
                    events=timedelta(days=chosen.events_days),
                ),
            ),
        ),
    ]
    if chosen.automatic:
        ticks.append(
            process.Tick(
                "plan",
                chosen.plan_seconds,
                lambda: plan.run_once(engine, bell, utc_now, snapshot_of=parts.snapshot_of, terms=parts.planning),
            )
        )
    running = process.Daemon(
        create_app(parts),
        listening,
        bell=bell,
        ticks=ticks,
        workers=local_worker.LocalWorkers(
            local_worker.command(url, master=chosen.master, slots=chosen.slots, driver_memory=chosen.driver_memory),
            count=chosen.workers,
            # Always, not only when tokens exist: the first one may be made while we run.
            environment={"GROUNDSKEEPER_WORKER_TOKEN": str(secret)},
            rng=rng,
        ),
        dispatch=DispatchThread(
            bell,
            lambda wake: _dispatcher(chosen, engine, bell, rng, box, guard, wake),
            poll_seconds=chosen.webhook_poll_seconds,
        ),
        on_ready=lambda: _say_hello(url, engine.url.render_as_string(hide_password=True), chosen.workers, has_tokens),
    )
    raise typer.Exit(running.run())


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Rows that the writer starts with.")] = 20_000,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the service running at the end, to look around.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON, as the last line.")] = False,
) -> None:
    """Show everything once on a real Hudi table, beside a writer that never stops. Takes a few minutes."""
    from service.demo import story

    raise typer.Exit(story.run(rows=rows, keep=keep, as_json=as_json))


@app.command()
def migrate(database: Database = None) -> None:
    """Bring the database to this version's schema."""
    chosen = settings.load(database=database)
    revision = migrations.upgrade(open_engine(chosen.database))
    typer.echo(f"The database is at revision {revision}.")


@app.command()
def worker(
    service: Annotated[str, typer.Option(help="URL of the service, such as http://127.0.0.1:8080")],
    master: Master = None,
    slots: Slots = None,
    driver_memory: Memory = None,
) -> None:
    """Run a Spark worker that pulls jobs from a service. Its token comes from GROUNDSKEEPER_WORKER_TOKEN."""
    # Only here: whoever runs the service needs no Spark.
    from jobs import worker as spark_worker

    chosen = settings.load(master=master, slots=slots, driver_memory=driver_memory)
    code = spark_worker.main(
        service,
        token=chosen.worker_token.get_secret_value() if chosen.worker_token else None,
        master=chosen.master,
        slots=chosen.slots,
        driver_memory=chosen.driver_memory,
        packages=chosen.packages,
        storage_options=chosen.storage_options,
    )
    raise typer.Exit(code)


@token_app.command("create")
def create_token(
    role: Annotated[Role, typer.Option(help="What its holder may do")],
    name: Annotated[str, typer.Option(help="Whose it is")] = "unnamed",
    database: Database = None,
) -> None:
    """Make a token and print it, this once. From the first token on, every call needs one."""
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    bearer, token = _token(name, role)
    with writing(engine) as connection:
        tokens.add(connection, token)
    typer.echo(str(bearer))
    typer.echo(f"Token {token.id} with role {role.value}. It is not shown again.", err=True)


@token_app.command("list")
def list_tokens(database: Database = None) -> None:
    """List the tokens, without their secrets."""
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    with reading(engine) as connection:
        every = tokens.every(connection)
    for token in every:
        state = f"revoked {token.revoked_at:%Y-%m-%d %H:%M}" if token.revoked_at else "valid"
        typer.echo(f"{token.id}  {token.role.value:<8}  {token.created_at:%Y-%m-%d %H:%M}  {state}  {token.name}")
    if not every:
        typer.echo("There is no token.", err=True)


@token_app.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(help="As `token list` shows it")], database: Database = None
) -> None:
    """Make a token invalid, at once and for good."""
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    with writing(engine) as connection:
        tokens.revoke(connection, token_id, utc_now())
    typer.echo(f"Token {token_id} is revoked.")


def _secret_box(chosen: settings.Settings, engine: Engine) -> SecretBox:
    """Without keys from the settings: a key file beside an SQLite database. Other databases have no place beside them
    that all replicas share; there webhooks need keys from the settings."""
    if chosen.secret_keys or engine.url.database is None or engine.dialect.name != "sqlite":
        return SecretBox([key.get_secret_value() for key in chosen.secret_keys])
    return SecretBox([key_from(Path(engine.url.database).with_suffix(".key"))])


def _dispatcher(
    chosen: settings.Settings,
    engine: Engine,
    bell: Bell,
    rng: random.Random,
    box: SecretBox,
    guard: Guard,
    wake: Callable[[], None],
) -> Dispatcher:
    limits = SendLimits(
        connect=chosen.webhook_connect_seconds,
        read=chosen.webhook_timeout_seconds,
        total=chosen.webhook_timeout_seconds,
    )
    agent = f"groundskeeper/{version('groundskeeper')}"
    delivery = DeliveryTerms(
        schedule=chosen.webhook_schedule_seconds,
        most_hold=timedelta(seconds=chosen.webhook_hold_seconds),
        disable_after=timedelta(days=chosen.webhook_disable_days),
    )
    return Dispatcher(
        engine,
        utc_now,
        rng,
        bell,
        box,
        Sender(guard, limits, user_agent=agent, tls=trusted(chosen.webhook_ca_file)),
        DispatchTerms(delivery, chosen.event_source),
        wake=wake,
    )


def _token(name: str, role: Role) -> tuple[Bearer, Token]:
    bearer = Bearer.new()
    return bearer, Token(bearer.id, name, role, digest(bearer.secret), created_at=utc_now())


def _say_hello(url: str, database: str, workers: int, has_tokens: bool) -> None:
    local = {0: "no local worker", 1: "one local worker"}.get(workers, f"{workers} local workers")
    access = "calls need a token" if has_tokens else "open to everybody on this machine (no token was made)"
    print(f"Groundskeeper {version('groundskeeper')} is ready at {url}", flush=True)
    print(f"  API docs  {url}/docs", flush=True)
    print(f"  database  {database}", flush=True)
    print(f"  {local}; {access}; Ctrl-C stops", flush=True)


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", force=True
    )
    # They say once per start or tick what nobody needs to know.
    for talkative in ("alembic", "apscheduler", "httpcore", "uvicorn.error"):
        logging.getLogger(talkative).setLevel(max(logging.getLevelName(level), logging.WARNING))


def main() -> NoReturn:
    """Errors that people can do something about are one line, never a stack trace."""
    try:
        app()
    except GroundskeeperError as error:
        line = f"groundskeeper: {error.title}: {error.detail}" if error.detail else f"groundskeeper: {error.title}."
        print(" ".join(f"{line} {error.hint}".split()), file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


if __name__ == "__main__":
    main()
