"""Tests answers of the API as structs. `test_document` compares them with the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import BaseModel, Field

from service.api.structs import as_json, as_members, made, struct_of


class Colour(StrEnum):
    RED = "red"


class Inner(BaseModel):
    number: float
    since: datetime = Field(alias="from")


class Outer(BaseModel):
    colour: Colour
    by_colour: dict[Colour, Inner]
    some: Annotated[list[Inner], "metadata"] | None = None
    anything: Any


class Source:
    def __init__(self) -> None:
        self.colour, self.left_out = Colour.RED, object()

    @property
    def anything(self) -> Any:
        return MappingProxyType({"text": 'é"\\\u2028', "numbers": (2**70, -0.0, float("nan")), "none": None})


def test_an_answer_is_made_of_attributes_and_given_members() -> None:
    at = datetime(2026, 1, 1, 12, 0, 0, 120, timezone(timedelta(hours=-2)))
    filled = made(Outer, Source(), by_colour={"red": {"number": 1, "from": at}})
    assert filled.by_colour[Colour.RED].number == 1.0
    assert as_json(filled) == (
        '{"colour":"red","by_colour":{"red":{"number":1.0,"from":"2026-01-01T12:00:00.000120-02:00"}},"some":null,'
        '"anything":{"text":"é\\"\\\\\u2028","numbers":[1180591620717411303424,-0.0,null],"none":null}}'.encode()
    )
    inner = made(Inner, None, **{"number": 0.5, "from": datetime(2026, 1, 1, tzinfo=UTC)})
    whole = struct_of(Outer)(colour=Colour.RED, by_colour={}, some=[inner], anything=1)
    assert as_members(whole)["some"] == [{"number": 0.5, "from": "2026-01-01T00:00:00Z"}]


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `float`, got `str` - at `\$\.number`"):
        made(Inner, None, **{"number": "no number", "from": datetime(2026, 1, 1, tzinfo=UTC)})
    with pytest.raises(msgspec.ValidationError, match="missing required field `from`"):
        made(Inner, None, number=1.0)
    with pytest.raises(NotImplementedError, match="object cannot be a part of an answer"):
        as_json(struct_of(Outer)(colour=Colour.RED, by_colour={}, anything=object()))


def test_half_of_a_surrogate_pair_is_escaped() -> None:
    assert as_json(struct_of(Outer)(colour=Colour.RED, by_colour={}, some=None, anything="x\ud800")) == (
        b'{"colour":"red","by_colour":{},"some":null,"anything":"x\\ud800"}'
    )
