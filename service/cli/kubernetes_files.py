"""The manifests for Kubernetes and the Helm chart, which are made from the same templates. The manifests get the values
of the command's options. The chart gets expressions that look up the values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    Only = tuple[str, str]

PROGRAM = "groundskeeper"

_PARTS = ("service", "worker", "scaling", "spark", "network")
# A line that ends with this comment is only kept if the option is given (`with`), or only if it is not given
# (`without`). If the first line has only this comment, the comment is about the whole file.
_ONLY = re.compile(r"(?:^|  )# only (with|without) (\w+)$")
_ABOUT = """\
# Groundskeeper on Kubernetes: the service and its workers. `groundskeeper manifests kubernetes` printed this file.
# The pods need a Secret: `groundskeeper manifests secrets --database URL` prints its content for
# `kubectl create secret generic NAME --from-env-file=FILE`.
"""
_CONSTANTS = {
    "spark_version": json.dumps(version("pyspark")),
    # The folder in which the image has its packages.
    "packages": "/opt/groundskeeper/lib/python3.11/site-packages",
}
_DEMAND = "http://groundskeeper.%s:8080/v1/workers/demand?group=default"


def manifests(values: Mapping[str, Any], namespace: str) -> str:
    """Returns the manifests. `values` has the options by name; None and 0 mean that an option is not given."""
    known = {**values, "demand": _DEMAND % namespace}
    # Kubernetes replaces $(NAME) in values, and reads $$ as $.
    known["allowed_roots"] = json.dumps(values["allowed_roots"]).replace("$", "$$")

    def chosen(only: Only, lines: list[str]) -> list[str]:
        word, name = only
        return lines if bool(values[name]) is (word == "with") else []

    parts = [_substituted(part, chosen, {name: json.dumps(value) for name, value in known.items()}) for part in _PARTS]
    return _ABOUT + "---\n".join(filter(None, parts))


def write_chart(folder: Path, values: Mapping[str, Any], about: Mapping[str, str], schema: Mapping[str, Any]) -> None:
    """Writes a Helm chart with these defaults of the options. `about` has a comment for each of them, and `schema` is
    the JSON Schema of the chart's values. Raises OSError."""
    of_chart = {
        "apiVersion": "v2",
        "name": PROGRAM,
        "description": "Table services for Apache Hudi: the service and its workers",
        "type": "application",
        "version": version(PROGRAM),
        "appVersion": version(PROGRAM),
    }
    comments = (f"# {about[name]}\n{camel_case(name)}: {json.dumps(value)}\n" for name, value in values.items())
    expressions = {name: f".Values.{camel_case(name)}" for name in values}
    expressions["allowed_roots"] += ' | toJson | replace "$" "$$"'
    expressions["demand"] = f'printf "{_DEMAND}" .Release.Namespace'
    templates = folder / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    (folder / "Chart.yaml").write_text(yaml.safe_dump(of_chart, sort_keys=False))
    (folder / "values.yaml").write_text("\n".join(comments))
    (folder / "values.schema.json").write_text(json.dumps(schema, indent=2) + "\n")
    for part in _PARTS:
        looked_up = {name: f"{{{{ {expression} | toJson }}}}" for name, expression in expressions.items()}
        (templates / f"{part}.yaml").write_text(_substituted(part, _asked, looked_up))


def camel_case(name: str) -> str:
    """Returns the name of an option in the style of Helm's values."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def substituted(lines: Iterable[str], values: Mapping[str, str]) -> str:
    """Returns a template with the values filled in; they are YAML."""
    return Template("".join(f"{line}\n" for line in lines)).substitute(values)


def template(path: str) -> list[str]:
    """Returns the lines of a template."""
    return (files("service.cli") / "templates" / path).read_text().splitlines()


def _substituted(part: str, decide: Callable[[Only, list[str]], list[str]], values: Mapping[str, str]) -> str:
    """Returns a part of the manifests. `decide` replaces the lines that depend on an option."""
    lines = template(f"kubernetes/{part}.yaml")
    of_all = None if lines[0].startswith(" ") else _only(lines[0])
    kept: list[str] = []
    for only, group in groupby(lines[1:] if of_all else lines, _only):
        plain = [_ONLY.sub("", line) for line in group]
        kept += decide(only, plain) if only else plain
    return substituted(decide(of_all, kept) if of_all else kept, {**_CONSTANTS, **values})


def _only(line: str) -> Only | None:
    found = _ONLY.search(line)
    return (found.group(1), found.group(2)) if found else None


def _asked(only: Only, lines: list[str]) -> list[str]:
    """Returns the lines inside a condition of Helm on the option."""
    word, name = only
    value = f".Values.{camel_case(name)}"
    return [f"{{{{- if {value if word == 'with' else f'not {value}'} }}}}", *lines, "{{- end }}"]
