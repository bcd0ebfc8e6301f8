"""Makes the generated files from the document of the application and the code of the client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import create_engine

from service.api.app import create_app
from service.api.dependencies import AppContext
from service.client.generator import async_code, call_code, model_code
from service.client.generator.names import refers_to
from service.events.database import Database
from service.observation.lake_access import LakeAccess

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parents[1] / "groundskeeper_client" / "generated"


def files() -> dict[str, str]:
    """Returns the formatted text of each file by its name."""
    document = _with_short_names(
        create_app(AppContext(Database(create_engine("sqlite://")), LakeAccess(_never))).openapi()
    )
    everything: dict[str, Any] = document["components"]["schemas"]
    found = list(call_code.operations(document))
    parameters = [each.schema.get("parameters", []) for each in found]
    requests = _reached([[each.body for each in found], parameters], everything)
    answers = _reached([content for each in found for content in each.answers], everything)
    schemas = {name: everything[name] for name in requests | answers}
    written = {
        "__init__.py": '"""Generated from the API\'s OpenAPI document by `python -m service.client.generator`."""\n',
        "async_client.py": async_code.code((FOLDER.parent / "client.py").read_text()),
        "calls.py": call_code.code(found, schemas),
        "models.py": model_code.code(schemas, requests - answers),
        "problems.py": call_code.problems_code(found),
    }
    return {name: _formatted(name, text) for name, text in written.items()}


def _with_short_names(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document with short names such as `JobVerdict`. If several models have the same name, pydantic calls
    one `service__queue__job__Verdict`, for example."""
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        if "__" in name:
            *_, module, own = name.split("__")
            short = "".join(part.capitalize() for part in module.split("_")) + own
            assert short not in document["components"]["schemas"], short
            text = text.replace(f'"{name}"', f'"{short}"').replace(f'/{name}"', f'/{short}"')
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def _reached(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Returns the names of the schemas to which a part of the document refers, directly or by way of other schemas."""
    found: set[str] = set()
    todo = [part]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            name = refers_to(part)
            if name is not None and name not in found:
                found.add(name)
                todo.append(schemas[name])
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return found


def _formatted(name: str, text: str) -> str:
    for command in (["check", "--fix-only", "--select", "I,F401", "-q"], ["format", "-q"]):
        ruff = [Path(sys.executable).parent / "ruff", *command, "--stdin-filename", FOLDER / name, "-"]
        text = subprocess.run(
            [str(part) for part in ruff], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text


def _never(*_arguments: object, **_more: object) -> NoReturn:
    raise AssertionError
