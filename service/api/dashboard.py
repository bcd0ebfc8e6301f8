"""Serves the dashboard at /: one page and its files from `service/dashboard`. The page gets all data from the REST API.

The page contains the script that requests its first data, and the page's security policy has the digest of this script.
The style sheets are joined, and so are the modules that the page imports at its start. So the browser makes one request
instead of twenty. Joined modules may only have named imports and exports, of functions, classes and constants, each at
the beginning of a line. Each module becomes a function that returns its exports, so that equal names in two modules do
not clash.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import mimetypes
import re
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from jobs.kinds.kind import Kind
from jobs.kinds.registry import KINDS
from service.api.freezes import FreezeIn
from service.api.notification_forms import NotificationIn
from service.api.params import model_of
from service.api.policy_models import PatternPolicyIn, PolicyIn
from service.health.problem import ProblemKind

FOLDER = Path(__file__).resolve().parent.parent / "dashboard"
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # The modules import each other without a version, so browsers must revalidate them (ETag). Versions then never mix.
    "Cache-Control": "no-cache",
}
_ENTRY = "main.js"
_EARLY = '<script async src="dashboard/preload.js"></script>'
_SHEET = re.compile(r'^ *<link rel="stylesheet" href="dashboard/([a-z]+\.css)">\n', re.MULTILINE)
# The path of these files has the hash of their content, so a browser may keep them forever.
_FOREVER = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


class Bundle:
    """Keeps the files in memory, and the page that names their version. The modules of the overview are one file. The
    module of another page is imported when that page is opened."""

    def __init__(self, folder: Path) -> None:
        self._files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
        modules = scripts(folder)
        self._files |= {name: text.encode() for name, text in joined(modules, _ENTRY).items()}
        page = self._files["index.html"].decode()
        first, *others = _SHEET.finditer(page)
        self._files[first[1]] = b"".join(self._files[each[1]] for each in (first, *others))
        for each in others:
            page = page.replace(each[0], "", 1)
        early = self._files["preload.js"].decode()
        page = page.replace(_EARLY, f"<script>{early}</script>", 1)
        digest = hashlib.sha256()
        for name, content in self._files.items():
            digest.update(b"%s %d " % (name.encode(), len(content)) + content)
        self.version = digest.hexdigest()[:16]
        self.page = page.replace('"dashboard/', f'"dashboard/{self.version}/')
        of_early = base64.b64encode(hashlib.sha256(early.encode()).digest()).decode()
        policy = f"{_HEADERS['Content-Security-Policy']}; script-src 'self' 'sha256-{of_early}'"
        self.headers = {**_HEADERS, "Content-Security-Policy": policy}
        self._packed = {name: gzip.compress(content, mtime=0) for name, content in self._files.items()}

    def response(self, version: str, name: str, *, is_packed: bool) -> Response:
        """Raises HTTPException if there is no such file. A request for the version of another replica gets this
        replica's file, so that the page does not stay empty."""
        if name not in self._files:
            raise HTTPException(404)
        media_type = mimetypes.guess_type(name)[0]
        headers = {**(_FOREVER if version == self.version else _HEADERS), "Vary": "Accept-Encoding"}
        if not is_packed:
            return Response(self._files[name], media_type=media_type, headers=headers)
        return Response(self._packed[name], media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})


def scripts(folder: Path) -> dict[str, str]:
    """Returns the text of all modules by name, including the ones that are generated from the kinds of jobs."""
    return {path.name: path.read_text() for path in sorted(folder.glob("*.js"))} | modules()


def modules() -> dict[str, str]:
    """Returns the text of the generated modules by name. `kinds.js` has the kinds of jobs and of tables' problems, for
    every page. `job_kinds.js` is for the form of jobs; its `params` are the JSON Schema of the parameters.
    `form_schemas.js` is for all other forms."""
    names = {kind.value: each.title for kind, each in KINDS.items()}
    letters = {kind.value: each.letters for kind, each in KINDS.items()}
    problems = [kind.value for kind in ProblemKind if kind.is_of_table]
    forms = {kind.value: _form(each) for kind, each in KINDS.items()}
    return {
        "kinds.js": "".join(
            f"export const {name} = {json.dumps(each)};\n"
            for name, each in {"KINDS": names, "LETTERS": letters, "PROBLEMS": problems}.items()
        ),
        "job_kinds.js": f"export const JOB_KINDS = {json.dumps(forms)};\n",
        "form_schemas.js": f"export const SCHEMAS = {json.dumps(_schemas())};\n",
    }


def _schemas() -> dict[str, Any]:
    """Returns, by name, the schemas of the requests that have forms, and the schemas to which these refer."""
    models = [TypeAdapter(each) for each in (PolicyIn, PatternPolicyIn, FreezeIn, NotificationIn)]
    _, found = TypeAdapter.json_schemas([(number, "validation", each) for number, each in enumerate(models)])
    return dict(found["$defs"])


def _form(kind: Kind) -> dict[str, Any]:
    schema = model_of(kind.params).model_json_schema()
    return {
        "summary": kind.summary,
        "hasPlan": kind.has_plan,
        "needsBuckets": kind.changes_bucket_number,
        "needsPartitions": kind.needs_partitions,
        "about": _plain(schema.get("description", "")),
        "required": schema.get("required", []),
        "params": {name: _flat(each, schema.get("$defs", {})) for name, each in schema.get("properties", {}).items()},
    }


def _flat(schema: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a member without references, and without null among its types, because a form leaves out an
    empty member."""
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


@cache
def _own() -> Bundle:
    return Bundle(FOLDER)


def install(app: FastAPI, provider: str | None = None) -> None:
    """Adds the routes. The page and its files need no token, because they contain no data of tables. `provider` is the
    host of the OpenID provider by which people may log in."""
    bundle = _own()
    shown = (
        bundle.page.replace('<html lang="en">', f'<html lang="en" data-provider="{escape(provider)}">', 1)
        if provider
        else bundle.page
    )

    async def page(_: Request) -> Response:
        return Response(shown, media_type="text/html", headers=bundle.headers)

    async def file(version: str, name: str, request: Request) -> Response:
        accepted = request.headers.get("accept-encoding", "")
        return bundle.response(version, name, is_packed=re.search(r"\bgzip\b(?!\s*;\s*q=0)", accepted) is not None)

    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/dashboard/{version}/{name}", file, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/dashboard", _Files(directory=FOLDER), name="dashboard")


_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([a-z_]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import\s|export\s|await\s).*$", re.MULTILINE)


def joined(modules: Mapping[str, str], entry: str) -> dict[str, str]:
    """Joins all modules that `entry` imports into it, and returns the modules. The other modules then import the joined
    ones from the entry, so that each exists only once. Raises ValueError for modules that cannot be joined, such as two
    that import each other."""
    order = list(TopologicalSorter(_imported(modules, entry)).static_order())
    inner = {name: _scope(name) for name in order if name != entry}
    parts = [f"const {_scope(name)} = {_function(modules[name])};\n" for name in order]
    result = {
        name: text if name in inner else _IMPORT.sub(lambda found: _from_entry(found, inner, entry), text)
        for name, text in modules.items()
    }
    return result | {entry: f"{''.join(parts)}export {{ {', '.join(inner.values())} }};\n"}


def _imported(modules: Mapping[str, str], entry: str) -> dict[str, list[str]]:
    """Returns the static imports of the entry, and of each module that it imports directly or indirectly."""
    found: dict[str, list[str]] = {}
    wanted = [entry]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = [other for _, other in _IMPORT.findall(modules[name])]
            wanted += found[name]
    return found


def _function(text: str) -> str:
    exported = [name for _, name in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(lambda found: _taken(found[1], _scope(found[2])), text))
    if unknown := _UNKNOWN.search(body):
        raise ValueError(f"cannot be joined: {unknown[0]}")
    return f"(() => {{\n{body}return {{ {', '.join(exported)} }};\n}})()"


def _from_entry(found: re.Match[str], inner: Mapping[str, str], entry: str) -> str:
    names, module = found.groups()
    scope = inner.get(module)
    return f'import {{ {scope} }} from "./{entry}"; {_taken(names, scope)}' if scope else found[0]


def _taken(names: str, scope: str) -> str:
    return f"const {{ {names} }} = {scope};"


def _scope(module: str) -> str:
    """Returns the name of the variable that holds a module's exports. No module uses this name for anything else."""
    return f"${module.removesuffix('.js')}"
