"""Each kind of job has a guide, with the parameters of its declaration."""

from __future__ import annotations

import pytest

from jobs.kinds.registry import KINDS
from tests import kind_pages


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind.value)
def test_the_guide_of_a_kind_has_its_declaration(kind: kind_pages.Kind) -> None:
    page = kind_pages.page_of(kind).read_text()
    assert page == kind_pages.with_declaration(page, kind), "python -m tests.kind_pages writes it"


def test_there_is_no_guide_of_a_kind_that_does_not_exist() -> None:
    assert {kind_pages.page_of(kind) for kind in KINDS.values()} == set(kind_pages.FOLDER.iterdir())


def test_every_parameter_is_explained() -> None:
    tables = [line for kind in KINDS.values() for line in kind_pages.declared(kind).splitlines()]
    assert [line for line in tables if line.endswith("|  |")] == []
