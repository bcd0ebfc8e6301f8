"""The command line."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

# A command imports what it needs itself, so that others start at once: importing the service takes seconds.
from service.cli import backup, config, manifests, tokens
from service.cli.client import (
    advice,
    as_code,
    assistant,
    catalogs,
    contexts,
    events,
    freezes,
    incidents,
    jobs,
    locks,
    notifications,
    policies,
    problems,
    report,
    shadows,
    simulations,
    tables,
    webhooks,
    workers,
)
from service.cli.client.command import command
from service.cli.client.spelling import PlainGroup
from service.cli.database import Database, opened, shown
from service.cli.doctor import doctor
from service.model.errors import GroundskeeperError, SettingsError

app = typer.Typer(
    cls=PlainGroup,
    help="A table-service daemon for Apache Hudi tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_CLIENT = "The service's client"
_MACHINE = "On this machine"
app.add_typer(tables.app, name="tables", rich_help_panel=_CLIENT)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_CLIENT)
for each in (simulations.simulate, shadows.shadow, advice.advice):
    command(policies.app, each.__name__)(each)
app.add_typer(policies.app, name="policy", rich_help_panel=_CLIENT)
app.add_typer(catalogs.app, name="catalogs", rich_help_panel=_CLIENT)
app.add_typer(freezes.app, name="freezes", rich_help_panel=_CLIENT)
app.command(rich_help_panel=_CLIENT)(policies.pause)
app.command(rich_help_panel=_CLIENT)(policies.resume)
app.add_typer(incidents.app, name="incidents", rich_help_panel=_CLIENT)
app.add_typer(locks.app, name="lock", rich_help_panel=_CLIENT)
app.add_typer(webhooks.app, name="webhooks", rich_help_panel=_CLIENT)
app.add_typer(notifications.app, name="notifications", rich_help_panel=_CLIENT)
app.command(rich_help_panel=_CLIENT)(problems.problems)
app.command(rich_help_panel=_CLIENT)(problems.acknowledge)
app.command(rich_help_panel=_CLIENT)(problems.unacknowledge)
app.command(rich_help_panel=_CLIENT)(report.report)
app.command(rich_help_panel=_CLIENT)(workers.workers)
app.command(rich_help_panel=_CLIENT)(events.events)
app.command(rich_help_panel=_CLIENT)(assistant.mcp)
app.command(rich_help_panel=_MACHINE)(doctor)
app.command(rich_help_panel=_CLIENT)(as_code.export)
app.command(rich_help_panel=_CLIENT)(as_code.diff)
app.command(rich_help_panel=_CLIENT)(as_code.apply)
app.add_typer(contexts.app, name="context", rich_help_panel=_CLIENT)
app.add_typer(config.app, name="config", rich_help_panel=_MACHINE)
app.add_typer(tokens.app, name="token", rich_help_panel=_MACHINE)
app.add_typer(manifests.app, name="manifests", rich_help_panel=_MACHINE)

Master = Annotated[str | None, typer.Option(help="Spark master. Default: local[2,4]")]
Slots = Annotated[int | None, typer.Option(help="Jobs that a worker runs at once. Default: 1")]
SpareSlots = Annotated[
    int | None, typer.Option(help="Submitted jobs that a worker also runs when all its slots are taken. Default: 1")
]
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
    from service.cli import serving
    from service.runtime import settings

    serving.run(settings.load(host=host, port=port, database=database, workers=workers))


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=100, help="Number of rows with which the writer starts.")] = 20_000,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the service running at the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON summary as the last line.")] = False,
) -> None:
    """Run all services on a real Hudi table, beside a writer that never stops. Takes a few minutes."""
    from service.demo import story

    raise typer.Exit(story.run(rows=rows, keep=keep, as_json=as_json))


@app.command()
def migrate(database: Database = None) -> None:
    """Upgrade the database to this version's schema."""
    from service.db import migrate as migrations

    engine = opened(database, may_create=True)
    typer.echo(f"The database {shown(engine)} is at revision {migrations.upgrade(engine)}.")


app.command(rich_help_panel=_MACHINE)(backup.backup)
app.command(rich_help_panel=_MACHINE)(backup.restore)


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
    spare_slots: SpareSlots = None,
    conf: Annotated[list[str] | None, typer.Option(help="Option of Spark, name=value; repeat it for several")] = None,
) -> None:
    """Run a Spark worker that pulls jobs from a service. GROUNDSKEEPER_WORKER_TOKEN has its token."""
    from jobs.hudi.google_connector import JAR, ConnectorMissingError
    from jobs.hudi.session import BundleMissingError
    from jobs.worker import lease_loop as spark_worker
    from jobs.worker.lifetime import Lifetime
    from service.runtime import settings

    chosen = settings.load(
        master=master, slots=slots, spare_slots=spare_slots, worker_group=group, driver_memory=driver_memory
    )
    chosen = settings.with_spark_conf(chosen, conf or [])
    try:
        code = spark_worker.main(
            service,
            token=chosen.worker_token.get_secret_value() if chosen.worker_token else None,
            master=chosen.master,
            slots=chosen.slots,
            spare_slots=chosen.spare_slots,
            group=chosen.worker_group,
            driver_memory=chosen.driver_memory,
            packages=chosen.packages,
            local_maven=chosen.local_maven,
            jars=chosen.jars,
            storage_options=chosen.hadoop_options,
            spark_conf=chosen.spark_conf,
            lifetime=Lifetime(chosen.recycle_jobs, chosen.recycle_hours, chosen.drain_seconds, chosen.executor_seconds),
            permissions=chosen.permissions,
            log_format=chosen.log_format,
        )
    except BundleMissingError as error:
        raise SettingsError(
            str(error), hint="Fill the folder of GROUNDSKEEPER_JARS: python -m jobs.hudi.fetch_jars FOLDER."
        ) from error
    except ConnectorMissingError as error:
        raise SettingsError(str(error), hint=f"Put {JAR} into the folder of GROUNDSKEEPER_JARS.") from error
    raise typer.Exit(code)


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
