"""`groundskeeper serve`: the service in this process."""

from __future__ import annotations

import logging
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, NoReturn

import typer

from jobs import tracing
from jobs.logs import LogFormat, configure
from service.access import deployment_tokens, token_store
from service.access.token import Role
from service.cli.database import shown
from service.db import migrate as migrations
from service.db.engine import open_engine, writing
from service.db.probe import check_integrity
from service.model.clock import utc_now
from service.model.errors import SettingsError
from service.model.loopback import is_loopback
from service.runtime import process
from service.runtime.composition import Composition
from service.runtime.connections import use_all_descriptors

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.runtime.settings import Settings


def run(chosen: Settings) -> NoReturn:
    """Runs the service until it is asked to end, and then ends the process."""
    use_all_descriptors()
    _log_to_stderr(chosen.log_level, chosen.log_format)
    tracing.start("groundskeeper", version("groundskeeper"), None, os.environ)
    engine = open_engine(chosen.database, connections=chosen.pool_connections)
    check_integrity(engine)
    migrations.upgrade(engine)
    has_tokens = _accept_tokens(engine, chosen)
    is_guarded = has_tokens or chosen.oidc_issuer is not None
    if not is_guarded and not is_loopback(chosen.host):
        raise SettingsError(
            f"Without any token the service listens only on a loopback address, not on {chosen.host}.",
            hint="Create a token first: groundskeeper token create --role admin.",
        )
    listening = process.listen(chosen.host, chosen.port)
    url, database = process.url_of(listening), shown(engine)
    composition = Composition(chosen, engine)
    running = composition.daemon(listening, on_ready=lambda: _print_address(url, database, chosen.workers, is_guarded))
    process.leave(running.run())


def _accept_tokens(engine: Engine, chosen: Settings) -> bool:
    """Stores the tokens of the settings, or a first token if the address to listen on requires one. Returns whether any
    token exists."""
    file = chosen.first_token_file
    given = {
        "GROUNDSKEEPER_ADMIN_TOKEN": (chosen.admin_token, Role.ADMIN, None),
        "GROUNDSKEEPER_READER_TOKEN": (chosen.reader_token, Role.READER, None),
        "GROUNDSKEEPER_WORKER_TOKEN": (chosen.worker_token, Role.WORKER, (chosen.worker_group,)),
    }
    with writing(engine) as connection:
        for setting, (token, role, groups) in given.items() if chosen.admin_token else ():
            if token:
                deployment_tokens.accept(connection, setting, token.get_secret_value(), role, utc_now(), groups=groups)
        if file and not is_loopback(chosen.host) and not token_store.exist(connection):
            deployment_tokens.make_first(connection, file, utc_now())
            typer.echo(f"The first token, with the role admin, is in {file}.", err=True)
        return token_store.exist(connection)


def _print_address(url: str, database: str, workers: int, is_guarded: bool) -> None:
    local = {0: "no local worker", 1: "one local worker"}.get(workers, f"{workers} local workers")
    access = "calls need a token" if is_guarded else "open to every user of this machine (no tokens exist)"
    print(f"Groundskeeper {version('groundskeeper')} is ready at {url}", flush=True)
    print(f"  API docs  {url}/docs", flush=True)
    print(f"  database  {database}", flush=True)
    print(f"  {local}; {access}; Ctrl-C stops", flush=True)


def _log_to_stderr(level: str, log_format: LogFormat) -> None:
    configure(log_format, level)
    # Loggers that write useless messages at each start, tick or request to a storage.
    for verbose in ("alembic", "httpcore", "httpx", "uvicorn.error"):
        logging.getLogger(verbose).setLevel(max(logging.getLevelName(level), logging.WARNING))
    # APScheduler's warning about a tick that takes longer than its interval is suppressed, because the next tick does
    # the rest of the work.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
