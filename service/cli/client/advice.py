"""`groundskeeper policy advice`"""

from __future__ import annotations

from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import AdviceIn, Answer
from service.cli.client import arguments
from service.cli.client.connection import Connection
from service.cli.client.failure import CommandError
from service.cli.client.output import Columns, Output, age


def advice(
    service: Connection,
    out: Output,
    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="Name or id; without it all tables")] = None,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Write the setting to the table's policy")] = False,
    dismiss: Annotated[bool, typer.Option("--dismiss", help="Hide the advice for 30 days")] = False,
) -> None:
    """Show which settings would cost less and still keep reads cheap, computed from the commits of a week. Apply or
    dismiss the advice about a table."""
    if table is None:
        if apply or dismiss:
            raise CommandError.usage("Name the TABLE that the advice is about.")
        columns: Columns = {"TABLE": "name", "ADVICE": "because", "COMPUTED": age("computed_at")}
        out.listing(service.send(calls.list_advice()), columns, empty="There is no advice.")
        return
    if apply and dismiss:
        raise CommandError.usage("Give either --apply or --dismiss.")
    table_id = arguments.table_of(service, table)["id"]
    known, tag = service.tagged(calls.get_advice(table_id))
    if apply or dismiss:
        wanted = AdviceIn(state=Answer.APPLIED if apply else Answer.DISMISSED)
        answer = service.send(calls.put_advice(table_id, wanted, if_match=tag))
        out.answer(answer, f"{'Applied' if apply else 'Dismissed'}: {answer['because']}.")
        return
    texts = ((name, known[name] and known[name]["text"]) for name in ("buckets", "index"))
    out.details(known, ("advice", known["because"]), "state", *texts)
    if known["buckets"] and known["buckets"]["factor"] > 1:
        out.note(f"groundskeeper jobs run bucket_expansion {table} factor={known['buckets']['factor']}")
    if known["index"] and known["index"]["kind"]:
        out.note(f"groundskeeper jobs run {known['index']['kind']} {table} action=adopt --dry-run")
