"""Tests with the program Helm that the chart makes the same manifests as the command, and refuses wrong values."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support import helm
from tests.support.commands import called

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]

ODD_ROOTS = ["/a: b#$(c)${d},e", "s3a://lake/<&>'\"é{{ .Values.secret }}"]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart") / "groundskeeper"
    result = called(["manifests", "helm", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ({}, ()),
        (
            {
                "image": "registry.example/team/groundskeeper@sha256:1",
                "allowedRoots": ODD_ROOTS,
                "secret": "other",
                "claim": "lake",
                "replicas": 3,
                "workers": 0,
                "maxWorkers": 12,
                "executors": 5,
                "callers": ["keda", "monitoring"],
            },
            (
                *("--image", "registry.example/team/groundskeeper@sha256:1"),
                *(word for root in ODD_ROOTS for word in ("--allowed-root", root)),
                *("--secret", "other", "--claim", "lake", "--replicas", "3", "--workers", "0", "--max-workers", "12"),
                *("--executors", "5", "--caller", "keda", "--caller", "monitoring"),
            ),
        ),
    ],
)
def test_an_installation_of_the_chart_is_what_the_command_prints(
    chart: Path, tmp_path: Path, values: dict[str, Any], options: tuple[str, ...]
) -> None:
    (tmp_path / "values.json").write_text(json.dumps(values))
    more = ("--namespace", "lake", "--values", str(tmp_path / "values.json"))
    rendered = _helm("template", "any", str(chart), *more)
    assert rendered.returncode == 0, rendered.stderr
    printed = called(["manifests", "kubernetes", "--namespace", "lake", *options]).stdout
    assert _sorted(rendered.stdout) == _sorted(printed)
    assert len(_sorted(printed)) == (15 if values else 6)


def test_another_chart_may_depend_on_the_chart(chart: Path, tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "lake", "version": "1.0.0"}))
    (tmp_path / "values.yaml").write_text(json.dumps({"global": {"region": "a"}, "groundskeeper": {"workers": 3}}))
    shutil.copytree(chart, tmp_path / "charts" / "groundskeeper")
    rendered = _helm("template", "any", str(tmp_path))
    assert rendered.returncode == 0, rendered.stderr
    assert _sorted(rendered.stdout) == _sorted(called(["manifests", "kubernetes", "--workers", "3"]).stdout)


def test_helm_finds_nothing_wrong_and_packs_the_chart(chart: Path, tmp_path: Path) -> None:
    lint = _helm("lint", "--strict", str(chart))
    assert lint.returncode == 0, lint.stdout
    assert _helm("package", str(chart), "--destination", str(tmp_path)).returncode == 0
    assert len(list(tmp_path.glob("groundskeeper-*.tgz"))) == 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *(("workers=-1", "workers"), ('secret="A_b"', "secret"), ("worker=2", "worker")),
        *(('callers=["a b"]', "callers"), ("callers=[]", "callers")),
    ],
)
def test_helm_refuses_what_the_command_refuses(chart: Path, value: str, told: str) -> None:
    refused = _helm("template", "any", str(chart), "--set-json", value)
    assert refused.returncode != 0
    assert told in refused.stderr


def _helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm.program(), *arguments], capture_output=True, text=True, check=False)


def _sorted(manifests: str) -> list[str]:
    return sorted(json.dumps(_parsed(each), sort_keys=True) for each in yaml.safe_load_all(manifests) if each)


def _parsed(part: Any) -> Any:
    """Parses the JSON in the roots, in which Helm escapes other characters than Python does."""
    match part:
        case {"name": "GROUNDSKEEPER_ALLOWED_ROOTS", "value": value}:
            return json.loads(value)
        case dict():
            return {name: _parsed(each) for name, each in part.items()}
        case list():
            return [_parsed(each) for each in part]
    return part
