"""`groundskeeper manifests`: files for deploying and monitoring this version, made from templates."""

from __future__ import annotations

import base64
import json
import re
import secrets
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from service.access.token import Bearer
from service.cli import kubernetes_files
from service.cli.kubernetes_files import PROGRAM
from service.metrics import grafana as grafana_dashboard

app = typer.Typer(
    help="Print manifests for Kubernetes or Compose, their secrets, and what monitoring needs; write a Helm chart.",
    no_args_is_help=True,
)

_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_REFERENCE = r"[A-Za-z0-9_.:/@-]+"
_SEVERAL = "; repeat it for several"  # Only for the command line, because a value of the chart is a list.

Image = Annotated[str | None, typer.Option(help="Image that was built from the Dockerfile. Default: this version's")]
Roots = Annotated[
    list[str] | None,
    typer.Option("--allowed-root", help=f"Roots below which tables may lie. Default: /lake{_SEVERAL}"),
]
Workers = Annotated[int, typer.Option(min=0, help="Number of workers, each with a Spark driver")]


@app.command()
def kubernetes(
    *,
    image: Image = None,
    allowed_roots: Roots = None,
    secret: Annotated[str, typer.Option(help="Name of the Secret")] = PROGRAM,
    claim: Annotated[str | None, typer.Option(help="PersistentVolumeClaim to mount at /lake")] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Number of replicas of the service")] = 2,
    workers: Workers = 1,
    max_workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of workers. KEDA starts as many as the forecast demands, but at least `workers`"
        ),
    ] = None,
    executors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of executors of one further worker, which is an application of the Spark operator",
        ),
    ] = None,
    callers: Annotated[
        list[str] | None,
        typer.Option("--caller", help=f"Namespaces that may call the service besides its own{_SEVERAL}"),
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the service, where KEDA calls the service")] = "default",
) -> None:
    """Print manifests: the service with a database outside the cluster's pods, and its workers."""
    names = {
        "--secret": [secret],
        "--claim": [claim] if claim is not None else [],
        "--caller": callers or [],
        "--namespace": [namespace],
    }
    for option, given in names.items():
        for name in given:
            if not re.fullmatch(_NAME, name):
                raise typer.BadParameter(f"{name!r} is no name of an object in Kubernetes", param_hint=option)
    if max_workers is not None and max_workers < workers:
        raise typer.BadParameter(f"{max_workers} is less than --workers {workers}", param_hint="--max-workers")
    values = {
        "image": _image(image),
        "allowed_roots": _roots(allowed_roots),
        "secret": secret,
        "claim": claim,
        "replicas": replicas,
        "workers": workers,
        "max_workers": max_workers,
        "executors": executors,
        "callers": callers,
    }
    typer.echo(kubernetes_files.manifests(values, namespace), nl=False)


@app.command()
def helm(
    folder: Annotated[Path, typer.Argument(help="Folder of the chart. Files of an older chart are replaced")],
) -> None:
    """Write a Helm chart: the manifests for Kubernetes, whose options are the chart's values."""
    options = {name: option for name, option in _options_of_kubernetes().items() if name != "namespace"}
    values = {name: option.default for name, option in options.items()}
    values |= {"image": _image(None), "allowed_roots": _roots(None)}
    about = {name: option.help.replace(_SEVERAL, "") for name, option in options.items()}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            # Helm adds this value to the values of each chart on which another chart depends.
            "global": {"type": "object"},
            **{
                kubernetes_files.camel_case(name): _or_null(option.schema, values[name])
                for name, option in options.items()
            },
        },
        "additionalProperties": False,
    }
    try:
        kubernetes_files.write_chart(folder, values, about, schema)
    except OSError as error:
        raise typer.BadParameter(f"{folder} cannot be written: {error.strerror}", param_hint="FOLDER") from error


@dataclass(frozen=True)
class _Option:
    """An option of `kubernetes`. `schema` is the JSON Schema of its values in the chart."""

    help: str
    default: Any
    schema: dict[str, Any]


def _or_null(schema: dict[str, Any], default: object) -> dict[str, Any]:
    return schema if default is not None else {**schema, "type": [schema["type"], "null"]}


def _options_of_kubernetes() -> dict[str, _Option]:
    patterns = {"image": _REFERENCE, "secret": _NAME, "claim": _NAME, "callers": _NAME}
    found = {}
    for name, parameter in signature(kubernetes, eval_str=True).parameters.items():
        kind, about = get_args(parameter.annotation)
        kinds = {kind, *get_args(kind)}
        one: dict[str, Any] = {"type": "integer", "minimum": about.min} if int in kinds else {"type": "string"}
        if name in patterns:
            one["pattern"] = f"^{patterns[name]}$"
        if list[str] in kinds:
            # An empty list would have no effect: without callers, for example, there is no NetworkPolicy.
            one = {"type": "array", "items": one, "minItems": 1}
        found[name] = _Option(about.help, parameter.default, one)
    return found


@app.command()
def compose(image: Image = None, allowed_roots: Roots = None, workers: Workers = 1) -> None:
    """Print a Compose file: PostgreSQL, the service and its workers on one machine."""
    values = {
        "image": _image(image),
        # Compose replaces ${NAME} in values, and reads $$ as $.
        "allowed_roots": json.dumps(_roots(allowed_roots)).replace("$", "$$"),
        "workers": workers,
    }
    known = {name: json.dumps(value) for name, value in values.items()}
    typer.echo(kubernetes_files.substituted(kubernetes_files.template("compose.yaml"), known), nl=False)


@app.command()
def grafana() -> None:
    """Print a dashboard for Grafana, of the metrics at /metrics."""
    typer.echo(json.dumps(grafana_dashboard.dashboard(), indent=2))


@app.command()
def alerts() -> None:
    """Print alert rules for Prometheus, of the metrics at /metrics."""
    typer.echo((files("service.metrics") / "templates" / "alerts.yaml").read_text(), nl=False)


@app.command("secrets")
def print_secrets(
    database: Annotated[
        str | None,
        typer.Option(help="URL of PostgreSQL. Without it, prints a new password for the database of the Compose file"),
    ] = None,
) -> None:
    """Print new secrets as lines NAME=value: the file .env of Compose, or the content of a Secret."""
    values = {
        **({"GROUNDSKEEPER_DATABASE": database} if database else {"POSTGRES_PASSWORD": secrets.token_hex(32)}),
        "GROUNDSKEEPER_SECRET_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "GROUNDSKEEPER_ADMIN_TOKEN": str(Bearer.new()),
        "GROUNDSKEEPER_WORKER_TOKEN": str(Bearer.new()),
        "GROUNDSKEEPER_READER_TOKEN": str(Bearer.new()),
    }
    for name, value in values.items():
        typer.echo(f"{name}={value}")


def _image(given: str | None) -> str:
    image = given or f"{PROGRAM}:{version(PROGRAM)}"
    if not re.fullmatch(_REFERENCE, image):
        raise typer.BadParameter(f"{image!r} is no reference of an image", param_hint="--image")
    return image


def _roots(given: list[str] | None) -> list[str]:
    return given or ["/lake"]
