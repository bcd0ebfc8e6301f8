"""`groundskeeper catalogs`"""

from __future__ import annotations

from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import CatalogSyncIn
from service.catalog.ownership import tag_words
from service.cli.client.command import command
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.output import Columns, Output, age, ago

app = typer.Typer(help="Follow catalogs: Glue, Hive, Unity, and databases that list tables.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the catalog in GROUNDSKEEPER_CATALOGS")]


@command(app, "list")
def list_catalogs(service: Connection, out: Output) -> None:
    """List the catalogs with their last syncs, and the error of each that fails."""
    columns: Columns = {
        "NAME": "name",
        "KIND": "kind",
        "STATE": _state,
        "SYNCED": age("synced_at"),
        "IN STEP": "report.in_step",
        "OPEN": _counted,
    }
    empty = "There are no catalogs: GROUNDSKEEPER_CATALOGS declares them."
    out.listing(service.send(calls.list_catalogs()), columns, empty=empty)


@command(app, "show")
def show(service: Connection, out: Output, name: Name) -> None:
    """Show a catalog, and what its last sync has left undone."""
    found = service.send(calls.get_catalog(name))
    error = found["error"] or {}
    out.details(
        found,
        "name",
        "kind",
        "address",
        ("rules", f"new: {found['new']}, moved: {found['moved']}, dropped: {found['dropped']}"),
        ("synced", ago(found["synced_at"])),
        ("failing", ago(found["failing_since"])),
        ("error", " ".join(error[part] for part in ("title", "detail", "hint") if error.get(part))),
    )
    if found["report"]:
        out.say("")
        _show(out, found["report"])


@command(app, "sync")
def sync(
    service: Connection,
    out: Output,
    name: Name,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done")] = False,
) -> None:
    """Register new tables, and follow tables that have moved or were dropped, as the catalog's rules say. Exit code 1
    if a table is refused or cannot be read."""
    found = service.send(calls.sync_catalog(name, CatalogSyncIn(dry_run=dry_run)))
    out.document(found)
    _show(out, found)
    if any(each["kind"] in ("refused", "broken") for each in found["findings"]):
        raise typer.Exit(ExitCode.FAILED)


def _show(out: Output, report: Json) -> None:
    rows = []
    for each in report["findings"]:
        reason = each["reason"] or {}
        why = " ".join(part for part in (reason.get("title"), reason.get("detail")) if part) or each["because"] or ""
        given = " ".join(word for word in (each["owner"], *tag_words(each["tags"] or {})) if word)
        does = f"{each['action']}{' (done)' if each['is_done'] else ''}"
        rows.append((each["name"], each["kind"], does, each["base_path"] or each["before"] or "", given, why))
    columns = ("TABLE", "FINDING", "ACTION", "PATH", "OWNER AND TAGS", "WHY")
    out.table(columns, rows, empty="Nothing differs.")
    out.note(f"{report['tables']} Hudi tables among {report['entries']} of the catalog; {report['in_step']} in step.")
    if not report["is_complete"]:
        out.note("A limit has ended the reading, so no table counts as dropped. The next sync continues.")


def _state(catalog: Json) -> str:
    if catalog["error"]:
        return str(catalog["error"]["title"])
    return "ok" if catalog["synced_at"] else "not synced yet"


def _counted(catalog: Json) -> str:
    counts = catalog["report"]["counts"] if catalog["report"] else {}
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
