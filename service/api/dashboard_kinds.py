"""Modules of the dashboard that are made of the declarations of the kinds of jobs: their names, and their forms."""

from __future__ import annotations

import json
from typing import Any

from jobs.kinds.kind import Kind
from jobs.kinds.registry import KINDS
from service.api.param_models import model_of


def modules() -> dict[str, str]:
    """Returns the text of each module by its name: `kinds.js`, which every page needs, and `job_kinds.js`, which the
    form of jobs needs: `params` there is the JSON Schema of the parameters."""
    names = {kind.value: each.title for kind, each in KINDS.items()}
    letters = {kind.value: each.letters for kind, each in KINDS.items()}
    forms = {kind.value: _form(each) for kind, each in KINDS.items()}
    return {
        "kinds.js": f"export const KINDS = {json.dumps(names)};\nexport const LETTERS = {json.dumps(letters)};\n",
        "job_kinds.js": f"export const JOB_KINDS = {json.dumps(forms)};\n",
    }


def _form(kind: Kind) -> dict[str, Any]:
    schema = model_of(kind.params).model_json_schema()
    return {
        "summary": kind.summary,
        "hasPlan": kind.has_plan,
        "needsBuckets": kind.changes_bucket_number,
        "about": _plain(schema.get("description", "")),
        "required": schema.get("required", []),
        "params": {name: _flat(each, schema.get("$defs", {})) for name, each in schema.get("properties", {}).items()},
    }


def _flat(schema: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a member without references, and without null among its types: it may be left out."""
    found = dict(schema)
    if (reference := found.pop("$ref", None)) is not None:
        found = {**named[reference.rpartition("/")[2]], **found}
    some = [each for each in (*found.pop("anyOf", ()), *found.pop("oneOf", ())) if each != {"type": "null"}]
    if len(some) == 1:
        found = {**_flat(some[0], named), **found}
    elif some:
        found["type"] = "choice"
    if "description" in found:
        found["description"] = _plain(found["description"])
    if isinstance(found.get("items"), dict):
        found["items"] = _flat(found["items"], named)
    return {name: value for name, value in found.items() if name not in ("title", "default") or value is not None}


def _plain(text: str) -> str:
    return text.replace("`", "")
