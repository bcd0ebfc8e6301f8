"""Completes the OpenAPI document with a description of each member, the schemas of values that are stored as JSON, and
an example of each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from jobs.contract import WorkOrder
from jobs.kinds.registry import KINDS
from service.api.document.struct_schemas import schemas as schemas_of_structs
from service.api.document.texts import COMMON, PARAMETERS
from service.lake.table import TableProfile

_MOMENT = "2026-01-01T12:00:00Z"
_DEEPEST = 6


class Examples:
    """Makes examples of values. `schemas` are those of an OpenAPI 3.1 document, by name."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def of(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Returns a value that the schema allows: the schema's own example, or one that is made from the examples of
        its parts."""
        given = self._given(schema)
        if given is not None:
            return given[0]
        if "$ref" in schema:
            return self.of(self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        if "anyOf" in schema:
            return self._of_any(schema, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "default" in schema and not isinstance(schema["default"], dict | list):
            return schema["default"]
        return self._of_type(schema, depth)

    def _given(self, schema: Mapping[str, Any]) -> list[Any] | None:
        if "example" in schema:
            return [schema["example"]]
        return schema["examples"][:1] if schema.get("examples") else None

    def _of_any(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Returns an example of one of several types; an object is preferred to null."""
        choices = [each for each in schema["anyOf"] if each.get("type") != "null"]
        is_nullable = len(choices) < len(schema["anyOf"])
        if is_nullable and (depth >= _DEEPEST or not any("$ref" in each for each in choices)):
            return None
        return self.of(choices[0], depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            return None if "null" in kind else self._of_type({**schema, "type": kind[0]}, depth)
        match kind:
            case "object":
                members = schema.get("properties", {})
                return {name: self.of(each, depth + 1) for name, each in members.items()}
            case "array":
                return [] if depth >= _DEEPEST else [self.of(schema.get("items", {}), depth + 1)]
            case "integer":
                return schema.get("minimum", 0)
            case "number":
                return schema.get("minimum", 0.0)
            case "boolean":
                return False
            case "string":
                return _MOMENT if schema.get("format") == "date-time" else "..."
        return None


_REF = "#/components/schemas/{model}"
_METHODS = ("get", "put", "post", "patch", "delete")
_JOBS = ("JobOut", "JobDetail")
_NULL = {"type": "null"}
_KEPT = ("title", "description", "examples")
# Values of these types are stored as JSON, and shown as they are.
_STORED = {"WorkOrder": WorkOrder, "TableProfile": TableProfile}


def complete(document: dict[str, Any], problems: Mapping[str, Mapping[str, Any]]) -> None:
    """Changes the document in place. `problems` are examples of problem documents by type."""
    schemas = document["components"]["schemas"]
    _name_pages(document)
    for name, kind in _STORED.items():
        schema = TypeAdapter(kind).json_schema(ref_template=_REF, mode="serialization")
        for inner, each in schema.pop("$defs", {}).items():
            schemas.setdefault(inner, each)
        # Values that earlier versions stored may lack members, so no member is required.
        schemas[name] = {**schema, "required": []}
    for schema in schemas.values():
        for member, each in schema.get("properties", {}).items():
            describe(member, each)
    # Results are added after `describe`, because members such as `engine` and `partitions` have another meaning there.
    schemas |= schemas_of_structs()
    _refer(schemas)
    document["components"]["examples"] = {
        name: {"summary": example["title"], "value": dict(example)} for name, example in problems.items()
    }
    examples = Examples(schemas)
    for operation in _operations(document):
        for parameter in operation.get("parameters", ()):
            _describe_parameter(parameter)
        for status, response in operation["responses"].items():
            for media_type, content in response.get("content", {}).items():
                _exemplify(content, media_type, response["description"] if status >= "400" else None, examples)


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for item in document["paths"].values():
        yield from (item[method] for method in _METHODS if method in item)


def _name_pages(document: Mapping[str, Any]) -> None:
    """Renames the schemas of pages and lists: `PageOf_JobOut_` becomes `JobPage`."""
    schemas = document["components"]["schemas"]
    titles = {name: schema["title"] for name, schema in schemas.items() if name.endswith("Out_")}
    for name, title in titles.items():
        schemas[title] = schemas.pop(name)
    for operation in _operations(document):
        for content in operation["responses"].get("200", {}).get("content", {}).values():
            name = content["schema"].get("$ref", "").rpartition("/")[2]
            if name in titles:
                content["schema"] = {"$ref": _REF.format(model=titles[name])}


def _refer(schemas: dict[str, Any]) -> None:
    """Gives named schemas to members that are plain objects in the models."""
    schemas["ProblemExample"] = {
        **schemas["ProblemDocument"],
        "title": "ProblemExample",
        "description": "A problem document, without `status` if it is the error of a job.",
        "required": [each for each in schemas["ProblemDocument"]["required"] if each != "status"],
    }
    params = [{"$ref": _REF.format(model=name)} for name in sorted(schemas) if name.endswith("Params")]
    results = [{"$ref": _REF.format(model=f"{kind.type_name}Result")} for kind in KINDS.values()]
    for model, member, schema in (
        *((model, "result", {"anyOf": [*results, {"type": "null"}]}) for model in _JOBS),
        *((model, "params", {"anyOf": params}) for model in _JOBS),
        ("DecisionOut", "params", {"anyOf": params}),
        ("EffectivePolicyOut", "policy", _relaxed(schemas["PolicyIn"], schemas)),
        ("IncidentOut", "details", {"$ref": _REF.format(model="IncidentDetails")}),
        ("EventTypeOut", "example", {"$ref": _REF.format(model="CloudEvent")}),
        ("TableOut", "profile", {"$ref": _REF.format(model="TableProfile")}),
        ("TableDetected", "profile", {"$ref": _REF.format(model="TableProfile")}),
        ("LeaseOut", "plan", {"$ref": _REF.format(model="WorkOrder")}),
        ("PatternPolicyOut", "settings", {"$ref": _REF.format(model="PolicyIn")}),
        ("ListedPolicyOut", "settings", {"$ref": _REF.format(model="PolicyIn")}),
        ("ShadowOut", "settings", {"$ref": _REF.format(model="PolicyIn")}),
        ("ProblemType", "example", {"$ref": _REF.format(model="ProblemExample")}),
    ):
        known = schemas[model]["properties"][member]
        kept = {name: known[name] for name in ("title", "description", "examples") if name in known}
        schemas[model]["properties"][member] = {**kept, **schema}


def _relaxed(schema: dict[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of a request without its limits. Each member may be null."""
    if "$ref" in schema:
        target = schemas[schema["$ref"].rpartition("/")[2]]
        if "properties" not in target:
            return {"anyOf": [{"$ref": schema["$ref"]}, _NULL]}
        return _relaxed(target, schemas)
    if "properties" in schema:
        members = schema["properties"]
        return {
            "type": "object",
            "properties": {
                name: {**{key: each[key] for key in _KEPT if key in each}, **_relaxed(each, schemas)}
                for name, each in members.items()
            },
        }
    for several in ("anyOf", "oneOf"):
        if several in schema:
            choices = [each for each in schema[several] if each != _NULL]
            return {"anyOf": [*(_relaxed(each, schemas) for each in choices), _NULL]}
    if schema["type"] == "array":
        return {"type": ["array", "null"], "items": _relaxed(schema["items"], schemas)}
    return {"type": [schema["type"], "null"]}


def describe(member: str, schema: dict[str, Any]) -> None:
    """Adds a text and an example to a member whose model has none."""
    text, example = COMMON.get(member, ("", None))
    if text:
        schema.setdefault("description", text)
    # Objects have the examples of their members, and enumerations show their values.
    if example is not None and not ("$ref" in str(schema) or {"const", "enum"} & schema.keys()):
        schema.setdefault("examples", [example])


def _describe_parameter(parameter: dict[str, Any]) -> None:
    name = parameter["name"]
    text = PARAMETERS.get(name) or COMMON.get(name, ("", None))[0]
    if text:
        parameter.setdefault("description", text)


def _exemplify(content: dict[str, Any], media_type: str, description: str | None, examples: Examples) -> None:
    """Adds an example to an answer. If the answer is a problem, its description links to types of problems, and the
    answer gets an example of each type."""
    if "example" in content or "examples" in content:
        return
    if description is not None:
        names = [part.partition(")")[0] for part in description.split("](/problems/")[1:]]
        content["examples"] = {name: {"$ref": f"#/components/examples/{name}"} for name in names}
    elif media_type == "text/html":
        content["example"] = "<!doctype html><html><body><h1>...</h1></body></html>"
    else:
        content["example"] = examples.of(content["schema"])
