"""`groundskeeper policy`, `pause` and `resume`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import PauseIn, PreviewIn
from service.cli.client import arguments, policy_values
from service.cli.client.arguments import TableOption
from service.cli.client.command import command, of_service
from service.cli.client.completion import complete_setting
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output, ago

app = typer.Typer(help="See and set which jobs start automatically, and when.", no_args_is_help=True)

_MOST_NAMES = 5

Settings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE",
        help="Such as compaction.commits=10; the value is JSON or text",
        autocompletion=complete_setting,
    ),
]
AsPattern = Annotated[
    bool,
    typer.Option(
        "--pattern",
        help="TARGET is a pattern of table names, such as 'orders_*', or 'tag:team=shop' or 'owner:shop', not a table",
    ),
]


@command(app, "show")
def show(
    service: Connection,
    out: Output,
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="Table, or pattern with --pattern")] = None,
    *,
    pattern: AsPattern = False,
) -> None:
    """Show the effective policy of a table with the source of each value, or the policies of patterns."""
    if target is None:
        _list_patterns(service, out)
    elif pattern:
        _show_pattern(out, service.send(calls.get_policy(target)))
    else:
        _show_table(out, service.send(calls.get_table_policy(arguments.table_of(service, target)["id"])))


@command(app, "list")
def list_policies(service: Connection, out: Output) -> None:
    """List the policies of patterns, and the tables that have settings from each."""
    _list_patterns(service, out)


@command(app, "preview")
def preview(
    service: Connection,
    out: Output,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Pattern of table names, such as 'orders_*'")],
    settings: Settings = None,
    *,
    unset: Annotated[list[str] | None, typer.Option(help="Setting to remove; repeat it for several")] = None,
    file: Annotated[Path | None, typer.Option(help="JSON object of a whole policy; - is standard input")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Preview the deletion of the pattern's policy")] = False,
) -> None:
    """Show the effect of a `policy set --pattern`: the tables that would change, and the jobs that would start there
    now."""
    new: Any = None
    if not delete:
        new = arguments.from_file(file, "--file") if file else own_of_pattern(service, pattern)[0]
        edit(new, settings, unset)
    found = service.send(calls.preview_policy(PreviewIn(pattern=pattern, policy=new)))
    out.document(found)
    shown = policy_values.shown
    rows = [
        (each["name"], shown(one["setting"], one["before"]), shown(one["setting"], one["after"]), one["setting"])
        for each in found["items"]
        for one in each["settings"]
    ]
    out.table(("TABLE", "BEFORE", "AFTER", "SETTING"), rows, empty="No table would have another policy.")
    for each in found["items"]:
        for job in each["starts"]:
            out.say(f"{each['name']}: {job['kind']} would start now: {job['because']}")
    if found["tables"] > len(found["items"]):
        out.note(f"{found['tables']} tables would have another policy; {len(found['items'])} are shown.")


@command(app, "set")
def set_policy(
    service: Connection,
    out: Output,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Table, or pattern with --pattern")],
    settings: Settings = None,
    *,
    pattern: AsPattern = False,
    unset: Annotated[
        list[str] | None,
        typer.Option(help="Setting to remove, so that weaker levels apply again; repeat it for several"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="JSON object of a whole policy, which replaces the old one; - is standard input")
    ] = None,
) -> None:
    """Change the policy of a table or pattern. Only the named settings change, unless a file replaces the whole
    policy."""
    if not settings and not unset and file is None:
        raise CommandError.usage("Nothing to set: give NAME=VALUE, --unset or --file.")
    if not pattern:
        target = arguments.table_of(service, target)["id"]
    tag: str | None = None
    if file:
        new: Any = arguments.from_file(file, "--file")
    else:
        new, tag = (own_of_pattern if pattern else _own_of_table)(service, target)
    edit(new, settings, unset)
    if pattern:
        # If the pattern had no policy, somebody may have set a policy meanwhile, which must not be lost. A file,
        # however, replaces any policy.
        is_new = tag is None and not file
        seen: Any = {"if_none_match": "*"} if is_new else {"if_match": tag}
        _show_pattern(out, service.send(calls.put_policy(target, new, **seen)))
    else:
        _show_table(out, service.send(calls.put_table_policy(target, new, if_match=tag)))


@of_service
def pause(
    service: Connection,
    out: Output,
    *,
    reason: Annotated[str, typer.Option(help="Shown to other users")] = "",
    table: TableOption = None,
) -> None:
    """Pause automatic jobs, on all tables or on one. Jobs that have begun go on, and `jobs run` still works."""
    if table is not None:
        if reason:
            raise CommandError.usage("The pause of one table is part of its policy, and has no reason.")
        _set_paused(service, out, table, is_paused=True)
        return
    answer = service.send(calls.pause(PauseIn(reason=reason)))
    out.answer(answer, _described(answer))


@of_service
def resume(service: Connection, out: Output, *, table: TableOption = None) -> None:
    """End the pause of all tables, or of one."""
    if table is not None:
        _set_paused(service, out, table, is_paused=False)
        return
    before = service.send(calls.get_pause())
    service.send(calls.resume())
    if out.as_json:
        out.document(service.send(calls.get_pause()))
    out.say("Automatic jobs start again." if before["paused"] else "Automatic jobs were not paused.")


def own_of_table(effective: Json) -> Json:
    """Returns the level of the table itself: the members of the effective policy that come from the table."""
    own: Json = {}
    for name, source in effective["sources"].items():
        if source == "table":
            _put_in(own, name, _setting(effective, name))
    return own


def edit(
    level: Json, settings: list[str] | None, unset: list[str] | None = None, *, option: str = "NAME=VALUE"
) -> None:
    """Puts settings into a level of a policy, and removes others. Raises CommandError."""
    for name, value in arguments.values(settings, option).items():
        _put_in(level, name, value)
    for name in unset or ():
        _take_out(level, name)


def _setting(effective: Json, name: str) -> Any:
    value: Any = effective["policy"]
    for part in name.split("."):
        value = value[part]
    return value


def _put_in(level: Json, name: str, value: Any) -> None:
    *sections, last = name.split(".")
    for section in sections:
        level = level.setdefault(section, {})
        if not isinstance(level, dict):
            raise CommandError.usage(f"{name}: {section} has no members.")
    level[last] = value


def _take_out(level: Json, name: str) -> None:
    *sections, last = name.split(".")
    for section in sections:
        level = level.get(section, {})
    if last not in level:
        raise CommandError.usage(f"--unset: {name} is not set on this level.")
    del level[last]


def _set_paused(service: Connection, out: Output, wanted: str, *, is_paused: bool) -> None:
    table = arguments.table_of(service, wanted)
    own, tag = _own_of_table(service, table["id"])
    own.pop("paused", None)
    new: Any = {**own, "paused": True} if is_paused else own
    answer = service.send(calls.put_table_policy(table["id"], new, if_match=tag))
    if answer["policy"]["paused"] and not is_paused:  # The policy of a pattern pauses the table.
        new = {**own, "paused": False}
        answer = service.send(calls.put_table_policy(table["id"], new))
    out.answer(answer, f"Automatic jobs {'pause' if is_paused else 'start again'} on {table['name']} ({table['id']}).")


def _own_of_table(service: Connection, table_id: str) -> tuple[Json, str | None]:
    effective, tag = service.tagged(calls.get_table_policy(table_id))
    return own_of_table(effective), tag


def own_of_pattern(service: Connection, pattern: str) -> tuple[Json, str | None]:
    try:
        found, tag = service.tagged(calls.get_policy(pattern))
    except CommandError as error:
        if error.code is ExitCode.NOT_FOUND:
            return {}, None
        raise
    precedence = {"precedence": found["precedence"]} if found["precedence"] else {}
    return {**found["settings"], **precedence}, tag


def described_settings(level: Json) -> str:
    """Returns the settings of a level in one line."""
    return "; ".join(f"{name} {policy_values.shown(name, value)}" for name, value in _flat(level["settings"]))


def _list_patterns(service: Connection, out: Output) -> None:
    found = service.send(calls.list_policies())
    out.document(found)
    if out.as_json:
        return
    pause_ = service.send(calls.get_pause())
    if pause_["paused"]:
        out.say(_described(pause_))
    rows = [(each["pattern"], each["precedence"], _tables(each), described_settings(each)) for each in found["items"]]
    headings = ("PATTERN", "PRECEDENCE", "DECIDES FOR", "SETTINGS")
    out.table(headings, rows, empty="No pattern has a policy. The defaults apply.")


def _tables(policy: Json) -> str:
    names = policy["table_names"][:_MOST_NAMES]
    more = policy["tables"] - len(names)
    return (", ".join(names) + (f" and {more} more" if more else "")) or "no table"


def _flat(settings: Json) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{member}", each) for member, each in value.items())
        else:
            yield name, value


def _show_pattern(out: Output, policy: Json) -> None:
    settings = ((name, policy_values.shown(name, value)) for name, value in _flat(policy["settings"]))
    out.details(policy, "pattern", ("precedence", str(policy["precedence"])), *settings)


def _show_table(out: Output, effective: Json) -> None:
    out.document(effective)
    rows = []
    for name, source in effective["sources"].items():
        value = policy_values.shown(name, _setting(effective, name))
        default = policy_values.shown(name, policy_values.default_of(name))
        rows.append((name, value, source, default, policy_values.range_of(name)))
    out.table(("NAME", "VALUE", "SOURCE", "DEFAULT", "RANGE"), rows, empty="")


def _described(pause_: Json) -> str:
    why = f": {pause_['reason']}" if pause_["reason"] else ""
    return f"Automatic jobs were paused {ago(pause_['since'])} by {pause_['by']}{why}."
