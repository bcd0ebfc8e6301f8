"""The command line."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobs.contract import DEFAULT_GROUP
from jobs.redaction import RedactingFormatter
from service.access import given_tokens, token_store
from service.access.token import Role, Token, issued
from service.api.dependencies import is_loopback
from service.cli import manifests
from service.db import migrate as migrations
from service.db.engine import open_engine, reading, writing
from service.db.probe import check_integrity
from service.model.clock import utc_now
from service.model.errors import GroundskeeperError, SettingsError
from service.runtime import process, settings
from service.runtime.composition import Composition
from service.runtime.connections import use_all_descriptors

if TYPE_CHECKING:
    from sqlalchemy import Engine

app = typer.Typer(
    help="A table-service daemon for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
token_app = typer.Typer(help="Create, list and revoke bearer tokens.", no_args_is_help=True)
app.add_typer(token_app, name="token")
app.add_typer(manifests.app, name="manifests")

Database = Annotated[str | None, typer.Option(help="SQLAlchemy URL. Default: sqlite:///groundskeeper.db")]
Master = Annotated[str | None, typer.Option(help="Spark master. Default: local[2,4]")]
Slots = Annotated[int | None, typer.Option(help="Jobs that a worker runs at once. Default: 1")]
Group = Annotated[
    str | None, typer.Option(help="Run the jobs of tables whose policy names this group. Default: default")
]
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
    port: Annotated[int | None, typer.Option(help="Default: 8080; 0 takes any free port")] = None,
    database: Database = None,
    workers: Annotated[int | None, typer.Option(help="Local Spark workers. Default: 1")] = None,
) -> None:
    """Run the service, with a local Spark worker."""
    use_all_descriptors()
    chosen = settings.load(host=host, port=port, database=database, workers=workers)
    _log_to_stderr(chosen.log_level)
    engine = open_engine(chosen.database, connections=chosen.pool_connections)
    check_integrity(engine)
    migrations.upgrade(engine)
    has_tokens = _accept_tokens(engine, chosen)
    if not has_tokens and not is_loopback(chosen.host):
        raise SettingsError(
            f"Without any token the service listens only on a loopback address, not on {chosen.host}.",
            hint="Create a token first: groundskeeper token create --role admin.",
        )
    listening = process.listen(chosen.host, chosen.port)
    url, shown = process.url_of(listening), engine.url.render_as_string(hide_password=True)
    composition = Composition(chosen, engine)
    running = composition.daemon(listening, on_ready=lambda: _print_address(url, shown, chosen.workers, has_tokens))
    process.leave(running.run())


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Rows that the writer starts with.")] = 20_000,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the service running at the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON summary as the last line.")] = False,
) -> None:
    """Run all services on a real Hudi table, beside a writer that never stops. Takes a few minutes."""
    from service.demo import story

    raise typer.Exit(story.run(rows=rows, keep=keep, as_json=as_json))


@app.command()
def migrate(database: Database = None) -> None:
    """Upgrade the database to this version's schema."""
    chosen = settings.load(database=database)
    revision = migrations.upgrade(open_engine(chosen.database))
    typer.echo(f"The database is at revision {revision}.")


@app.command()
def worker(
    service: Annotated[
        list[str], typer.Option(help="URL of the service, such as http://127.0.0.1:8080; repeat it for replicas")
    ],
    master: Master = None,
    slots: Slots = None,
    group: Group = None,
    driver_memory: Memory = None,
    *,
    conf: Annotated[list[str] | None, typer.Option(help="Option of Spark, name=value; repeat it for several")] = None,
) -> None:
    """Run a Spark worker that pulls jobs from a service. GROUNDSKEEPER_WORKER_TOKEN holds its token."""
    # Imported here, because the service itself does not need Spark.
    from jobs.hudi.google_connector import JAR, ConnectorMissingError
    from jobs.hudi.session import BundleMissingError
    from jobs.worker import lease_loop as spark_worker

    chosen = settings.load(master=master, slots=slots, worker_group=group, driver_memory=driver_memory)
    chosen = settings.with_spark_conf(chosen, conf or [])
    try:
        code = spark_worker.main(
            service,
            token=chosen.worker_token.get_secret_value() if chosen.worker_token else None,
            master=chosen.master,
            slots=chosen.slots,
            group=chosen.worker_group,
            driver_memory=chosen.driver_memory,
            packages=chosen.packages,
            jars=chosen.jars,
            storage_options=chosen.storage_options,
            spark_conf=chosen.spark_conf,
            lifetime=spark_worker.Lifetime(
                chosen.recycle_jobs, chosen.recycle_hours, chosen.drain_seconds, chosen.executor_seconds
            ),
            permissions=chosen.permissions,
        )
    except BundleMissingError as error:
        raise SettingsError(
            str(error), hint="Fill the folder of GROUNDSKEEPER_JARS: python -m jobs.hudi.fetch_jars FOLDER."
        ) from error
    except ConnectorMissingError as error:
        raise SettingsError(str(error), hint=f"Put {JAR} into the folder of GROUNDSKEEPER_JARS.") from error
    raise typer.Exit(code)


@token_app.command("create")
def create_token(
    role: Annotated[Role, typer.Option(help="Rights of the token")],
    name: Annotated[str, typer.Option(help="Name of the holder")] = "unnamed",
    group: Annotated[
        list[str] | None, typer.Option(help="Worker group that a worker may join; repeat it for several")
    ] = None,
    days: Annotated[float | None, typer.Option(min=0.001, max=36_500, help="It expires then. Default: never")] = None,
    database: Database = None,
) -> None:
    """Create a token and print it once. From the first token on, every call needs one."""
    groups = tuple(group or [DEFAULT_GROUP]) if role is Role.WORKER else None
    if group and groups is None:
        raise typer.BadParameter("only a token with the role worker has groups", param_hint="--group")
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    now = utc_now()
    expires_at = now + timedelta(days=days) if days is not None else None
    bearer, token = issued(name, role, now, groups=groups, expires_at=expires_at)
    with writing(engine) as connection:
        token_store.add(connection, token)
    typer.echo(str(bearer))
    typer.echo(f"Token {token.id} with role {role.value}. It is not shown again.", err=True)


@token_app.command("list")
def list_tokens(database: Database = None) -> None:
    """List the tokens, without their secrets."""
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    with reading(engine) as connection:
        every = token_store.every(connection)
    for token in every:
        created, groups = f"{token.created_at:%Y-%m-%d %H:%M}", f" ({', '.join(token.groups)})" if token.groups else ""
        typer.echo(f"{token.id}  {token.role.value:<8}  {created}  {_state(token)}  {token.name}{groups}")
    if not every:
        typer.echo("No tokens exist.", err=True)


@token_app.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(help="Id from `token list`")], database: Database = None
) -> None:
    """Invalidate a token at once and permanently."""
    engine = open_engine(settings.load(database=database).database)
    migrations.upgrade(engine)
    with writing(engine) as connection:
        token_store.revoke(connection, token_id, utc_now())
    typer.echo(f"Token {token_id} is revoked.")


def _accept_tokens(engine: Engine, chosen: settings.Settings) -> bool:
    """Stores the tokens of the settings, or a first one if the address needs one. Returns whether any exists."""
    admin, of_worker, file = chosen.admin_token, chosen.worker_token, chosen.first_token_file
    with writing(engine) as connection:
        if admin:
            given_tokens.accept(
                connection, "GROUNDSKEEPER_ADMIN_TOKEN", admin.get_secret_value(), Role.ADMIN, utc_now()
            )
        if admin and of_worker:
            given_tokens.accept(
                connection,
                "GROUNDSKEEPER_WORKER_TOKEN",
                of_worker.get_secret_value(),
                Role.WORKER,
                utc_now(),
                groups=(chosen.worker_group,),
            )
        if file and not is_loopback(chosen.host) and not token_store.exist(connection):
            given_tokens.make_first(connection, file, utc_now())
            typer.echo(f"The first token, with the role admin, is in {file}.", err=True)
        return token_store.exist(connection)


def _state(token: Token) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d %H:%M}"
    if token.expires_at is None:
        return "valid"
    return f"{'valid until' if token.is_valid(utc_now()) else 'expired'} {token.expires_at:%Y-%m-%d %H:%M}"


def _print_address(url: str, database: str, workers: int, has_tokens: bool) -> None:
    local = {0: "no local worker", 1: "one local worker"}.get(workers, f"{workers} local workers")
    access = "calls need a token" if has_tokens else "open to every user of this machine (no tokens exist)"
    print(f"Groundskeeper {version('groundskeeper')} is ready at {url}", flush=True)
    print(f"  API docs  {url}/docs", flush=True)
    print(f"  database  {database}", flush=True)
    print(f"  {local}; {access}; Ctrl-C stops", flush=True)


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These log messages without value once per start, tick or request to a storage.
    for verbose in ("alembic", "httpcore", "httpx", "uvicorn.error"):
        logging.getLogger(verbose).setLevel(max(logging.getLevelName(level), logging.WARNING))
    # A tick that takes longer than its interval is no reason to warn: the next one does the rest of the work.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)


def main() -> NoReturn:
    """Runs the command. Prints a GroundskeeperError as one line without a stack trace."""
    try:
        app()
    except GroundskeeperError as error:
        line = f"groundskeeper: {error.title}: {error.detail}" if error.detail else f"groundskeeper: {error.title}"
        line = line if line.endswith(".") else f"{line}."
        print(" ".join(f"{line} {error.hint}".split()), file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


if __name__ == "__main__":
    main()
