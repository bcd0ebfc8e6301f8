"""Checks the OpenAPI document: members have descriptions, answers have valid examples, and objects have schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from service.api.app import create_app
from service.api.requests import OTHERWISE
from service.api.structs import as_json, struct_of
from service.db.engine import open_engine
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI

LOOSE = {
    "ActionOut/body": "the body of whatever call `path` names",
    "EventTypeOut/data_schema": "a JSON Schema",
    "/openlineage/groundskeeper_job.json/get/responses/content/application/json/schema": "a JSON Schema",
    "ResultIn/details": "of a worker, which may be newer than the service",
    "CloudEvent/data": "each type of event has its schema: GET /v1/event-types",
    "WorkOrder/params": "for a worker, which may be newer; the service adds what the kind needs",
    "AuditEntryOut/before": "each type of object has members of its own; secrets are masked, large objects left out",
    "AuditEntryOut/after": "as before",
    "ProblemDocument": "RFC 9457 has extension members",
    "ProblemExample": "RFC 9457 has extension members",
    "Result/clock": "as the timeline tells it; GET /v1/tables/{table_id} has the same with its schema",
    "LineageDatasetIn/facets": "of OpenLineage and of other tools, which may be newer or broken",
    "Cure/params": "parameters of whatever kind of job cures the damage",
}
"""The objects without a schema, with the reasons."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app(context_of(open_engine(f"sqlite:///{tmp_path_factory.mktemp('document')}/none.db")))


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def nodes(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yields every object of the document that is not part of an example, with its path. A member of an object that is
    called `example` or `default` is a schema."""
    if isinstance(value, dict):
        yield path, value
        of_members = path[-1:] == ("properties",) and path[-2:-1] != ("properties",)
        for name, each in value.items():
            if of_members or name not in ("example", "examples", "default", "enum", "const"):
                yield from nodes(each, (*path, str(name)))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from nodes(each, (*path, str(number)))


def schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every schema of the document, also nested ones, with its path of names."""
    containers = ("properties", "schemas", "patternProperties", "anyOf", "oneOf", "allOf", "prefixItems")
    for path, node in nodes(document):
        if path[-1:] in (("items",), ("schema",), ("additionalProperties",)) or path[-2:-1] in (
            (c,) for c in containers
        ):
            names = (part for part in path if part not in ("components", *containers) and not part.isdigit())
            yield "/".join(names), node


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in document["paths"].values():
        yield from item.values()


def test_every_pattern_has_words_for_texts_that_do_not_match(document: dict[str, Any]) -> None:
    patterns = {each["pattern"] for _, each in schemas(document) if isinstance(each.get("pattern"), str)}
    patterns |= {pattern for _, each in schemas(document) for pattern in each.get("patternProperties", ())}

    assert patterns == OTHERWISE.keys()


def test_every_member_and_parameter_has_a_description(document: dict[str, Any]) -> None:
    missing = [
        "/".join((*path, name))
        for path, node in nodes(document)
        if isinstance(node.get("properties"), dict) and (not path or path[-1] != "properties")
        for name, member in node["properties"].items()
        if len(member.get("description", "")) < 2
    ]
    missing += [
        f"{operation['operationId']} {parameter['name']}"
        for operation in operations(document)
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ]
    assert not missing, "\n".join(missing)


def test_every_operation_has_a_name_a_summary_and_an_example_of_each_answer(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(document)]
    assert len(set(names)) == len(names) > 70
    for operation in operations(document):
        assert operation["summary"]
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items():
                where = (operation["operationId"], status, media_type)
                assert "example" in content or content.get("examples"), where
                for each in content.get("examples", {}).values():
                    name = each["$ref"].removeprefix("#/components/examples/") if "$ref" in each else None
                    assert name is None or name in document["components"]["examples"], where


def test_every_example_of_an_answer_is_one_that_the_schema_allows(document: dict[str, Any]) -> None:
    wrong = []
    for operation in operations(document):
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items():
                if media_type == "text/html" or "example" not in content:
                    continue
                schema = {**content["schema"], "components": document["components"]}
                found = jsonschema.Draft202012Validator(schema).iter_errors(content["example"])
                wrong += [f"{operation['operationId']} {status} {each.json_path}: {each.message}" for each in found]
    assert not wrong, "\n".join(wrong)


def test_the_examples_of_problems_are_problem_documents(document: dict[str, Any]) -> None:
    schema = {"$ref": "#/components/schemas/ProblemDocument", "components": document["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    examples = document["components"]["examples"]
    assert len(examples) > 60
    for name, example in examples.items():
        if "status" in example["value"]:
            assert not list(validator.iter_errors(example["value"])), name


def test_no_object_is_loose_where_its_schema_is_known(document: dict[str, Any]) -> None:
    known = {"properties", "additionalProperties", "patternProperties"}
    found = set()
    for path, schema in schemas(document):
        is_object = "object" in types(schema)
        is_loose = (is_object and not known & schema.keys()) or schema.get("additionalProperties") is True
        if is_loose and "headers" not in path:
            found.add(path)
    unexplained = [each for each in found if not any(each.endswith(name) for name in LOOSE)]
    assert not unexplained, unexplained
    assert all(any(each.endswith(name) for each in found) for name in LOOSE)


def test_no_schema_is_empty_and_every_array_tells_its_items(document: dict[str, Any]) -> None:
    about = {"title", "description", "default", "example", "examples", "deprecated"}
    found = list(schemas(document))
    assert len(found) > 1000
    assert not [path for path, schema in found if schema.keys() <= about]
    assert not [path for path, schema in found if "array" in types(schema) and "items" not in schema]


@pytest.mark.parametrize("loose", [{}, {"description": "anything"}, {"type": "array"}, {"type": ["array", "null"]}])
@pytest.mark.parametrize("name", ["example", "default", "properties", "items"])
def test_a_loose_object_is_found_wherever_it_is(document: dict[str, Any], name: str, loose: dict[str, Any]) -> None:
    inside = {"components": {"schemas": {"Some": {"type": "object", "properties": {name: loose}}}}}
    with pytest.raises(AssertionError):
        test_no_schema_is_empty_and_every_array_tells_its_items({**document, **inside})


def test_every_example_of_a_member_is_one_that_its_schema_allows(document: dict[str, Any]) -> None:
    wrong = []
    for path, schema in schemas(document):
        validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
        for example in schema.get("examples", ()):
            wrong += [f"{path}: {each.message}" for each in validator.iter_errors(example)]
    assert not wrong, "\n".join(wrong)


def types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return given if isinstance(given, list) else [given]


def test_every_kind_of_job_has_a_schema_of_its_result(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert all(len(schemas[f"{KINDS[kind].type_name}Result"]["properties"]) > 4 for kind in JobKind)
    choices = schemas["JobDetail"]["properties"]["result"]["anyOf"]
    assert len(choices) == len(JobKind) + 1


def models(app: FastAPI) -> Iterator[tuple[str, Any, Any]]:
    """Yields each call with a model as its answer, the model, and the example in the document."""
    for route in app.routes:
        if isinstance(route, APIRoute) and isinstance(model := route.response_model, type):
            (method,) = route.methods
            answers = app.openapi()["paths"][route.path_format][method.lower()]["responses"]
            if issubclass(model, BaseModel):
                content = answers[str(int(route.status_code or 200))]["content"]
                yield f"{method} {route.path_format}", model, content["application/json"]["example"]


def test_each_answer_is_written_as_its_model_would_write_it(app: FastAPI) -> None:
    calls = 0
    for call, model, example in models(app):
        described = TypeAdapter(model).validate_python(example)
        filled = msgspec.convert(example, struct_of(model))
        assert as_json(filled) == TypeAdapter(model).dump_json(described, by_alias=True), call
        assert as_json(described) == as_json(filled), call
        calls += 1
    assert calls > 80


def test_each_answer_has_the_members_of_its_schema_in_the_same_order(app: FastAPI) -> None:
    schemas = app.openapi()["components"]["schemas"]
    compared = 0
    for call, model, _ in models(app):
        for each in structs(struct_of(model)):
            if each.__name__ in schemas:
                assert list(each.__struct_encode_fields__) == list(schemas[each.__name__]["properties"]), call
                compared += 1
    assert compared > 200


def structs(hint: Any) -> Iterator[Any]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
        for each in msgspec.structs.fields(hint):
            yield from structs(each.type)
    for each in getattr(hint, "__args__", ()):
        yield from structs(each)
