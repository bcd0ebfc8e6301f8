"""Checks run events with OpenLineage's own classes (generated from JSON schemas that are not in its package), and our
own facet with its schema."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import attr
import jsonschema
import msgspec
from openlineage.client import generated
from openlineage.client.generated import base

from service.delivery import lineage_facet

for _module in pkgutil.iter_modules(generated.__path__):
    importlib.import_module(f"{generated.__name__}.{_module.name}")


def _facets() -> dict[str, type]:
    """Returns the classes of all facets by the URLs of their schemas."""
    found: dict[str, type] = {}
    todo = [base.BaseFacet]
    while todo:
        each = todo.pop()
        # attrs replaces each class by a second one; the first one exists until it is garbage-collected.
        if "__attrs_attrs__" in vars(each):
            found[each._get_schema()] = each
        todo += each.__subclasses__()
    return found


FACETS = _facets()
OWN = jsonschema.Draft202012Validator(
    lineage_facet.schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


def check(event: dict[str, Any]) -> None:
    """Asserts that no member is missing, unknown or of another type."""
    assert event["schemaURL"] == base.RunEvent._get_schema()
    base.RunEvent(
        eventType=base.EventType(event["eventType"]),
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=base.Run(runId=event["run"]["runId"], facets=_checked(event["run"]["facets"], base.RunFacet)),
        job=base.Job(**{**event["job"], "facets": _checked(event["job"]["facets"], base.JobFacet)}),
        inputs=[_dataset(each, "input") for each in event["inputs"]],
        outputs=[_dataset(each, "output") for each in event["outputs"]],
    )
    assert set(event) == {"eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"}


def _dataset(given: dict[str, Any], kind: str) -> Any:
    class_, facet = {
        "input": (base.InputDataset, base.InputDatasetFacet),
        "output": (base.OutputDataset, base.OutputDatasetFacet),
    }[kind]
    own = f"{kind}Facets"
    return class_(**{**given, "facets": _checked(given["facets"], base.DatasetFacet), own: _checked(given[own], facet)})


def _checked(facets: dict[str, Any], of: type) -> dict[str, Any]:
    for name, facet in facets.items():
        if name == lineage_facet.NAME:
            assert OWN.schema["$id"] == facet["_schemaURL"]
            OWN.validate(facet)
            # The events have only described members.
            assert facet.keys() == OWN.schema["properties"].keys()
            continue
        class_ = FACETS[facet["_schemaURL"]]
        assert issubclass(class_, of), name
        content = {key: value for key, value in facet.items() if key not in ("_schemaURL", "_producer")}
        class_(**content)
        for field in attr.fields(class_):
            if field.name in content:
                known = attr.resolve_types(class_)
                msgspec.convert(content[field.name], attr.fields_dict(known)[field.name].type)
    return facets
