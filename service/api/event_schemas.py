"""JSON Schemas (2020-12) of the events, made from the models of the objects that an event contains."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from service.api.document.completion import Examples, describe

Schema = dict[str, Any]


class CloudEvent(TypedDict):
    """An event: CloudEvents 1.0, JSON"""

    specversion: Annotated[Literal["1.0"], Field(description="Version of CloudEvents")]
    id: Annotated[str, Field(description="Id of the event", examples=["evt_3b0f2a9d5e7b1c44"])]
    source: Annotated[str, Field(description="The service", examples=["/groundskeeper"])]
    type: Annotated[str, Field(description="Type of the event", examples=["commit.published"])]
    time: Annotated[datetime, Field(description="When the event happened")]
    sequence: Annotated[
        str,
        Field(
            description="Position of the event. If positions are sorted as texts, they are in the order of the events",
            examples=["00000000000000004711"],
        ),
    ]
    datacontenttype: Annotated[Literal["application/json"], Field(description="Media type of `data`")]
    subject: NotRequired[Annotated[str, Field(description="Id of the table", examples=["tbl_0f3c2a9d5e7b1c44"])]]
    data: Annotated[
        dict[str, Any],
        Field(
            description="The event itself; GET /v1/event-types has its schema",
            examples=[{"table": {"id": "tbl_0f3c2a9d5e7b1c44", "name": "orders"}}],
        ),
    ]


class EventPage(TypedDict):
    items: Annotated[list[CloudEvent], Field(description="Events, oldest first")]
    next_after: Annotated[int | None, Field(description="Value of `after` for the next page", examples=[4711])]


STREAM: Final = """id: 4711
event: commit.published
data: {"specversion":"1.0","id":"evt_3b0f2a9d5e7b1c44","type":"commit.published"}

"""


def part(model: type[BaseModel], *names: str, **further: Schema) -> Schema:
    """Returns the schema of an object that has the named members of a model, and the `further` ones. All are
    required."""
    whole = model.model_json_schema(mode="serialization")
    named = {model.__name__: whole, **whole.get("$defs", {})}
    for schema in named.values():
        for member, each in schema.get("properties", {}).items():
            describe(member, each)
    return object_of(**{name: _inlined(whole["properties"][name], named) for name in names}, **further)


def object_of(**properties: Schema) -> Schema:
    """Returns the schema of an object whose members are all required. Later versions may add members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def document_of(**properties: Schema) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **object_of(**properties)}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def example_of(schema: Schema, **members: Any) -> dict[str, Any]:
    """Returns an example of an object; `members` replace examples of the schema."""
    return {**Examples({}).of(schema), **members}


def _inlined(schema: Any, named: dict[str, Schema]) -> Any:
    """Returns the schema without references and titles."""
    if isinstance(schema, list):
        return [_inlined(each, named) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {name: _inlined(each, named) for name, each in schema.items() if name not in ("$ref", "title")}
    if "$ref" not in schema:
        return rest
    return {**_inlined(named[schema["$ref"].rpartition("/")[2]], named), **rest}
