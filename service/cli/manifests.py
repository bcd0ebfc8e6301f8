"""`groundskeeper manifests`: prints files that deploy and monitor this version, made from templates."""

from __future__ import annotations

import base64
import json
import re
import secrets
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Annotated

import typer

from service.access.token import Bearer

app = typer.Typer(
    help="Print manifests for Kubernetes or Compose, their secrets, and what monitoring needs.", no_args_is_help=True
)

# A line that ends with this comment is printed only with the named option.
_ONLY_WITH = re.compile(r"  # only with (\w+)$")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_REFERENCE = re.compile(r"[\w.:/@-]+", re.ASCII)

_PROGRAM = "groundskeeper"

Image = Annotated[str | None, typer.Option(help="Image that was built from the Dockerfile. Default: this version's")]
Roots = Annotated[
    list[str] | None,
    typer.Option("--allowed-root", help="Root of allowed locations of tables; repeat it for several. Default: /lake"),
]
Workers = Annotated[int, typer.Option(min=0, help="Workers, each with a Spark driver")]


@app.command()
def kubernetes(
    *,
    image: Image = None,
    allowed_root: Roots = None,
    secret: Annotated[str, typer.Option(help="Name of the Secret")] = _PROGRAM,
    claim: Annotated[str | None, typer.Option(help="PersistentVolumeClaim to mount at /lake")] = None,
    replicas: Annotated[int, typer.Option(min=1, help="Replicas of the service")] = 2,
    workers: Workers = 1,
) -> None:
    """Print manifests: the service with a database outside the cluster's pods, and its workers."""
    for option, name in (("--secret", secret), ("--claim", claim)):
        if name is not None and not _NAME.fullmatch(name):
            raise typer.BadParameter(f"{name!r} is no name of an object in Kubernetes", param_hint=option)
    typer.echo(
        _rendered(
            "kubernetes.yaml",
            image=_image(image),
            # Kubernetes replaces $(NAME) in values, and takes $$ for a $.
            allowed_roots=_roots(allowed_root).replace("$", "$$"),
            secret=secret,
            claim=claim,
            replicas=replicas,
            workers=workers,
        ),
        nl=False,
    )


@app.command()
def compose(image: Image = None, allowed_root: Roots = None, workers: Workers = 1) -> None:
    """Print a Compose file: PostgreSQL, the service and its workers on one machine."""
    typer.echo(
        _rendered(
            "compose.yaml",
            image=_image(image),
            # Compose replaces ${NAME} in values, and takes $$ for a $.
            allowed_roots=_roots(allowed_root).replace("$", "$$"),
            workers=workers,
        ),
        nl=False,
    )


@app.command()
def grafana() -> None:
    """Print a dashboard for Grafana, of the metrics at /metrics."""
    typer.echo(_of_monitoring("grafana.json"), nl=False)


@app.command()
def alerts() -> None:
    """Print alert rules for Prometheus, of the metrics at /metrics."""
    typer.echo(_of_monitoring("alerts.yaml"), nl=False)


@app.command("secrets")
def print_secrets(
    database: Annotated[
        str | None, typer.Option(help="URL of PostgreSQL. Default: a password for the one of the Compose file")
    ] = None,
) -> None:
    """Print new secrets as lines NAME=value: the file .env of Compose, or the content of a Secret."""
    values = {
        **({"GROUNDSKEEPER_DATABASE": database} if database else {"POSTGRES_PASSWORD": secrets.token_hex(32)}),
        "GROUNDSKEEPER_SECRET_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "GROUNDSKEEPER_ADMIN_TOKEN": str(Bearer.new()),
        "GROUNDSKEEPER_WORKER_TOKEN": str(Bearer.new()),
    }
    for name, value in values.items():
        typer.echo(f"{name}={value}")


def _of_monitoring(template: str) -> str:
    return (files("service.metrics") / "templates" / template).read_text()


def _image(given: str | None) -> str:
    image = given or f"{_PROGRAM}:{version(_PROGRAM)}"
    if not _REFERENCE.fullmatch(image):
        raise typer.BadParameter(f"{image!r} is no reference of an image", param_hint="--image")
    return image


def _roots(given: list[str] | None) -> str:
    """Returns the value of GROUNDSKEEPER_ALLOWED_ROOTS: a JSON list if a comma would split a root."""
    roots = given or ["/lake"]
    return json.dumps(roots) if any("," in root for root in roots) else ",".join(roots)


def _rendered(template: str, **values: str | int | None) -> str:
    """Returns the template with the values, each as JSON and so as YAML. Lines whose value is None are left out."""
    kept = []
    for line in (files("service.cli") / "templates" / template).read_text().splitlines():
        only_with = _ONLY_WITH.search(line)
        if only_with is None or values[only_with.group(1)] is not None:
            kept.append(_ONLY_WITH.sub("", line) + "\n")
    return Template("".join(kept)).substitute({name: json.dumps(value) for name, value in values.items()})
