"""`groundskeeper export`, `diff` and `apply`: the configuration of the service as a file."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.redaction import MASK
from service.cli.client import arguments, config_plan, yaml_file
from service.cli.client.command import of_service
from service.cli.client.config_plan import Action, Change, Choices
from service.cli.client.config_sections import SECTIONS, Live, Section
from service.cli.client.config_values import escaped
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output, as_yaml, compact
from service.model.formatting import count
from service.model.shown_url import shown_url

ConfigFile = Annotated[Path, typer.Option("--file", "-f", help="YAML file; - is standard input")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Also delete objects that the file lacks, but only of kinds that the file has")
]
_SIGNS = {Action.CREATE: "+", Action.CHANGE: "~", Action.DELETE: "-"}
Kind = StrEnum("Kind", {each.name.upper(): each.name for each in SECTIONS})  # type: ignore[misc]


@of_service
def export(
    service: Connection,
    out: Output,
    *,
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only objects of this kind; repeat it for several. Default: all")
    ] = None,
) -> None:
    """Print the configuration as YAML: tables, policies, webhooks. Secrets are references to variables of the
    environment, which the beginning of the file lists."""
    variables: dict[str, str] = {}
    document: Json = {}
    for section in SECTIONS:
        if not kind or section.name in {each.value for each in kind}:
            live = [each for each in section.found(service) if each.members or not section.is_part]
            document[section.name] = [_exported(section, each, variables) for each in live]
    out.document(document)
    if out.as_json:
        return
    for name, meaning in variables.items():
        out.line(f"# ${{{name}}}: {meaning}")
    out.line(as_yaml(document).rstrip("\n"))


@of_service
def diff(service: Connection, out: Output, *, file: ConfigFile, prune: Prune = False) -> None:
    """Show what `apply` would change. Exit code 6 if there is a difference, 0 if there is none. Secrets that the
    service has are not compared."""
    read = yaml_file.read(file)
    found = config_plan.changes(service, read, config_plan.wanted_of(read), Choices(prunes=prune))
    out.document({"changes": [each.to_json() for each in found]})
    for each in found:
        _show(out, each)
    if not found:
        out.note("There is no difference.")
        return
    raise typer.Exit(ExitCode.DIFFERENT)


@of_service
def apply(
    service: Connection,
    out: Output,
    *,
    file: ConfigFile,
    prune: Prune = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes, and make none")] = False,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="Also send secrets where the service already has one")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is deleted")] = False,
) -> None:
    """Change the configuration of the service to that of the file. Each object is changed by a separate call, and only
    if nobody else has changed the object meanwhile. Applying the same file again changes nothing. Exit code 1 if a
    change was refused."""
    read = yaml_file.read(file)
    choices = Choices(prunes=prune, sends_secrets=secrets)
    found = config_plan.changes(service, read, config_plan.wanted_of(read), choices)
    doomed = [each for each in found if each.action is Action.DELETE]
    if doomed and not dry_run:
        names = ", ".join(f"{each.section.name} {each.title}" for each in doomed)
        arguments.confirm(f"Delete {count(len(doomed), 'object')} ({names})?", yes=yes)
    outcomes: list[Json] = []
    failures: list[CommandError] = []
    for each in found:
        outcomes.append({**each.to_json(), "error": None})
        _show(out, each)
        if dry_run:
            continue
        try:
            config_plan.carry_out(service, read, each, choices)
        except CommandError as error:
            # If the service is unreachable or refuses the token, no other change would succeed either.
            if error.code in (ExitCode.UNREACHABLE, ExitCode.UNAUTHORISED):
                raise
            failures.append(error)
            outcomes[-1]["error"] = error.document
            out.failure(error)
    out.document({"changes": outcomes, "dry_run": dry_run})
    done = len(found) - len(failures)
    if not found:
        out.note("There is nothing to change.")
    else:
        out.note(f"{count(done, 'change')} {'would be made' if dry_run else 'made'}, {len(failures)} refused.")
    if failures:
        raise typer.Exit(ExitCode.FAILED)


def _show(out: Output, change: Change) -> None:
    out.say(f"{_SIGNS[change.action]} {change.section.name} {change.title}")
    for each in change.fields():
        before, after = ("-" if each[side] is None else compact(each[side]) for side in ("before", "after"))
        out.say(f"    {each['field']}: {before} -> {after}")


def _exported(section: Section, live: Live, variables: dict[str, str]) -> Json:
    title = live.title or live.key
    key = shown_url(live.key)

    def value(found: Any, path: tuple[str, ...]) -> Any:
        if isinstance(found, dict):
            return {name: value(each, (*path, name)) for name, each in found.items()}
        if isinstance(found, list):
            return [value(each, (*path, str(number))) for number, each in enumerate(found)]
        if isinstance(found, str) and MASK in found:
            return f"${{{_variable(section, title, path, variables)}}}"
        return escaped(found) if isinstance(found, str) else found

    exported: Json = value({section.key: key, **live.members}, ())
    return exported


def _variable(section: Section, title: str, path: tuple[str, ...], variables: dict[str, str]) -> str:
    """Returns a new name for a variable that stands for the value, and records the value in `variables`."""
    words = re.sub(r"[^A-Z0-9]+", "_", "_".join((section.name.rstrip("s"), title, *path)).upper()).strip("_")[:100]
    name, number = words, 1
    while name in variables:
        number += 1
        name = f"{words}_{number}"
    clean_title = re.sub(r"\s+", " ", title)
    variables[name] = f"{'.'.join(path)} of {clean_title}"
    return name
