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
from service.cli.client.output import Output, ago

app = typer.Typer(help="Follow catalogs: Glue, Hive, Unity, and databases that list tables.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the catalog in GROUNDSKEEPER_CATALOGS")]


@command(app, "list")
def list_catalogs(service: Connection, out: Output) -> None:
    """List the catalogs, their last syncs, and why one fails."""
    found = service.send(calls.list_catalogs())
    out.document(found)
    rows = [
        (
            each["name"],
            each["kind"],
            each["error"]["title"] if each["error"] else "ok" if each["synced_at"] else "not synced yet",
            ago(each["synced_at"]),
            each["report"]["in_step"] if each["report"] else "",
            _counted(each["report"]),
        )
        for each in found["items"]
    ]
    columns = ("NAME", "KIND", "STATE", "SYNCED", "IN STEP", "OPEN")
    out.table(columns, rows, empty="There are no catalogs: GROUNDSKEEPER_CATALOGS declares them.")


@command(app, "show")
def show(service: Connection, out: Output, name: Name) -> None:
    """Show a catalog, and what its last sync has left."""
    found = service.send(calls.get_catalog(name))
    out.document(found)
    error = found["error"] or {}
    out.pairs(
        [
            ("name", found["name"]),
            ("kind", found["kind"]),
            ("address", found["address"]),
            ("rules", f"new: {found['new']}, moved: {found['moved']}, dropped: {found['dropped']}"),
            ("synced", ago(found["synced_at"])),
            ("failing", ago(found["failing_since"])),
            ("error", " ".join(error[part] for part in ("title", "detail", "hint") if error.get(part))),
        ]
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
    """Register new tables, and follow those that have moved or were dropped, as the catalog's rules say. Exit code 1 if
    a table is refused or cannot be read."""
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


def _counted(report: Json | None) -> str:
    counts = report["counts"] if report else {}
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
