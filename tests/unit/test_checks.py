"""Tests the names of checks. A damage is an incident until the same check is made again without finding it, so each
check keeps its name for ever, and an examination names each check as made or as not made."""

from __future__ import annotations

import re
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from jobs.contract import JobKind
from jobs.errors import HudiError, RefusedError
from jobs.job_context import JobContext
from jobs.kinds.results import Cure
from jobs.problems.tables import NO_META_FIELDS
from jobs.services import audit, diagnosis
from jobs.services.checks import examination
from jobs.services.checks.finding import Examined, Finding, named
from service.queue.job_incidents import by_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from jobs.hudi.table import HudiTable
    from jobs.kinds.results import DamageFound, Examination
    from jobs.services.checks.examination import Check

ROOT = Path(__file__).parents[2]
OF_AUDIT = {**audit.PROOFS, **audit.READING_PROOFS, **audit.OF_ROWS, **audit.PROBES}
DECLARED = {**OF_AUDIT, **diagnosis.CHECKS}
NAMES = {
    "archival",
    "archived deletes",
    "column statistics",
    "columns of base files",
    "completion times",
    "dead writes",
    "deletes in logs",
    "deletes without effect",
    "expression indexes",
    "file groups of buckets",
    "files of commits",
    "files of indexes",
    "files of savepoints",
    "files of the metadata table",
    "files of unknown instants",
    "files that readers see",
    "files without a commit",
    "hash ranges in use",
    "hashing configs",
    "hashing metadata",
    "index definitions",
    "indexes",
    "lock",
    "logs of compactions",
    "lost commits",
    "markers",
    "merge rules",
    "metadata table",
    "order of instants",
    "overwritten rows",
    "partition metadata",
    "parts of the metadata table",
    "pending plans",
    "properties",
    "rows",
    "rows in buckets",
    "rows of a given up index",
    "rows of base files",
    "rows of hash ranges",
    "rows of replacements",
    "rows of rolled back commits",
    "rows that statistics hide",
    "savepoints of repairs",
    "sizes of files",
    "statements without effect",
    "table type",
    "timeline files",
    "timeline layout",
    "unfinished rollbacks",
    "values of replacements",
}
"""The checks of open incidents in databases of users: a name that vanishes needs a migration."""


class Table:
    def reload(self) -> None:
        pass

    def unchanged(self) -> AbstractContextManager[None]:
        return nullcontext()


def finds(examined: Examined) -> Iterator[Finding]:
    yield Finding("a-damage", "A title", named(["an item"]), "An effect.", "A hint.")


def finds_nothing(examined: Examined) -> Iterator[Finding]:
    yield from ()


def fails(examined: Examined) -> Iterator[Finding]:
    raise HudiError("no reason")
    yield


def of_table(checks: dict[str, Check]) -> Examination:
    return examination.of_table(cast("HudiTable", Table()), checks, JobContext())


def of_counted(checks: dict[str, Check]) -> Examination:
    with ExitStack() as opened:
        return examination.of_counted(Examined(cast("HudiTable", Table()), opened), checks)


def test_the_names_of_checks_are_those_that_incidents_have() -> None:
    assert DECLARED.keys() == NAMES


def test_the_same_check_has_the_same_name_in_an_audit_and_a_diagnosis() -> None:
    by_name = {name: check for name, check in diagnosis.CHECKS.items() if name in OF_AUDIT}
    assert by_name == {name: OF_AUDIT[name] for name in by_name}
    assert audit.OF_ROWS.keys() <= by_name.keys()
    assert len({*DECLARED.values()}) == len(DECLARED)


@pytest.mark.parametrize("examine", [of_table, of_counted])
def test_each_check_is_made_or_not_made_by_the_name_that_its_findings_have(
    examine: Callable[[dict[str, Check]], Examination],
) -> None:
    found = examine(dict.fromkeys(DECLARED, finds))
    assert [each.check for each in found.findings] == list(found.checked) == list(DECLARED)
    assert found.unchecked == ()
    clean = examine(dict.fromkeys(DECLARED, finds_nothing))
    assert (clean.findings, clean.checked) == ((), tuple(DECLARED))
    failed = examine(dict.fromkeys(DECLARED, fails))
    assert (failed.findings, failed.checked) == ((), ())
    assert [each.check for each in failed.unchecked] == list(DECLARED)


def test_only_an_examination_gives_a_finding_the_name_of_its_check() -> None:
    named_in = {
        path.name
        for path in (ROOT / "jobs").rglob("*.py")
        if re.search(r"(each|finding)\.result\([^)]", path.read_text())
    }
    assert named_in == {"examination.py"}


def test_checks_that_could_not_be_made_are_one_finding_that_closes_with_the_last_of_them() -> None:
    light = of_table({"lock": fails, "markers": finds_nothing})
    heavy = examination.not_made(["rows", "indexes"], HudiError("no reason"))

    found = examination.concluded(examination.joined(light, heavy))

    assert [(each.type, each.check) for each in found.findings] == [("checks-not-made", "indexes")]
    reason = f"({HudiError.title}: no reason)"
    assert all(f"{name} {reason}" in str(found.findings[0].detail) for name in ("lock", "rows", "indexes"))
    assert (found.checked, len(found.unchecked)) == (("markers",), 3)
    assert examination.concluded(of_table({"markers": finds_nothing})).findings == ()


def test_a_check_that_fails_is_made_once_more_with_the_table_as_it_is_by_then() -> None:
    tried: list[Examined] = []

    def fail_once(examined: Examined) -> Iterator[Finding]:
        tried.append(examined)
        if len(tried) == 1:
            raise HudiError("a file was cleaned meanwhile")
        yield from ()

    assert of_table({"lock": fail_once}).checked == ("lock",)
    assert tried[0] is not tried[1]


def test_checks_that_need_meta_fields_do_not_fail_on_a_table_without_them() -> None:
    without = examination.not_made(["rows in buckets"], RefusedError([NO_META_FIELDS.because("")]))
    assert examination.concluded(without).findings == ()
    both = examination.joined(without, examination.not_made(["rows"], HudiError("no reason")))
    assert [each.check for each in examination.concluded(both).findings] == ["rows"]


def test_each_finding_is_in_the_guide() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "jobs" / "services" / "checks").glob("*.py"))
    types = set(re.findall(r'\bFinding\(\s*"([a-z-]+)"', sources))
    assert len(types) > 40
    guides = "".join(path.read_text() for path in (ROOT / ".docs").glob("*.md"))
    rows = [line.split("|")[1] for line in guides.splitlines() if line.startswith("| `")]
    assert types - {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} == set()


def test_findings_of_one_type_are_one_incident_that_has_them_all() -> None:
    def finding(detail: str, hint: str, cure: Cure | None = None) -> DamageFound:
        return Finding("index-differs-from-rows", "t", named([detail]), "e", hint, cure).result("indexes")

    rebuild = Cure(kind=JobKind.METADATA_TABLE)
    one, other = finding("a", "first", rebuild), finding("b", "second")
    assert by_type([one]) == {"index-differs-from-rows": one}
    (both,) = by_type([one, other]).values()
    assert (both.detail, both.hint, both.cure) == ("a; b", "first", None)
    assert by_type([one, finding("b", "second", rebuild)])["index-differs-from-rows"].cure == rebuild
