"""The manifests are valid by the schemas of Kubernetes and Compose, and fit this version's commands and settings."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import yaml

from service.access.secret_cipher import SecretCipher
from service.access.token import Bearer
from service.cli.main import app
from service.runtime.settings import Settings
from tests.support.commands import called

OPTIONS = ("--image", "registry.example/team/groundskeeper:1", "--allowed-root", "s3a://lake/a", "--workers", "3")


def test_kubernetes_accepts_the_manifests() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for extra in ((), ("--claim", "lake", "--secret", "other", "--replicas", "1")):
        for manifest in _kubernetes(*OPTIONS, *extra):
            for release in ("1.31", validate.latest_version()):
                validate.validate(manifest, release, strict=True)


def test_compose_accepts_the_file() -> None:
    package = find_spec("check_jsonschema")
    if package is None or package.origin is None:
        pytest.skip("pip install check-jsonschema")
    schema = Path(package.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(_compose(*OPTIONS), json.loads(schema.read_text()))


def test_the_options_get_to_their_places() -> None:
    service, worker = _deployments(*OPTIONS, "--claim", "tables", "--secret", "other", "--replicas", "4")
    assert (service["spec"]["replicas"], worker["spec"]["replicas"]) == (4, 3)
    for deployment in (service, worker):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["image"] == "registry.example/team/groundskeeper:1"
        assert _variables(container)["GROUNDSKEEPER_ALLOWED_ROOTS"] == "s3a://lake/a"
        assert {"name": "lake", "persistentVolumeClaim": {"claimName": "tables"}} in pod["volumes"]
        assert {"name": "lake", "mountPath": "/lake"} in container["volumeMounts"]
        of_secret = [each["valueFrom"]["secretKeyRef"]["name"] for each in container["env"] if "valueFrom" in each]
        assert set(of_secret) == {"other"}
    assert all("lake" not in json.dumps(each["spec"]["template"]["spec"]["volumes"]) for each in _deployments(*OPTIONS))
    assert _compose(*OPTIONS)["services"]["worker"]["deploy"]["replicas"] == 3


def test_values_are_quoted_for_yaml_and_against_replacement() -> None:
    root = "/a: b#$(c)${d},e"
    _, worker = _deployments("--allowed-root", root, "--allowed-root", "/f")
    value = _variables(worker["spec"]["template"]["spec"]["containers"][0])["GROUNDSKEEPER_ALLOWED_ROOTS"]
    assert json.loads(value.replace("$$", "$")) == [root, "/f"]
    value = _compose("--allowed-root", root)["services"]["worker"]["environment"]["GROUNDSKEEPER_ALLOWED_ROOTS"]
    assert json.loads(value.replace("$$", "$")) == [root]


@pytest.mark.parametrize("options", [("--image", "a b"), ("--secret", "A_b"), ("--claim", ""), ("--replicas", "0")])
def test_values_that_kubernetes_would_refuse_are_refused(options: tuple[str, ...]) -> None:
    assert called(["manifests", "kubernetes", *options]).exit_code == 2


def test_containers_start_commands_and_set_variables_that_exist() -> None:
    pods = [each["spec"]["template"]["spec"]["containers"][0] for each in _deployments()]
    composed = [_compose()["services"][name] for name in ("service", "worker")]
    commands = [each["args"] for each in pods] + [each["command"] for each in composed]
    root = typer.main.get_command(app)
    for name, *arguments in commands:
        # The call parses the options and starts nothing.
        root.commands[name].make_context(name, list(arguments))  # type: ignore[attr-defined]
    for variables in (*(_variables(each) for each in pods), *(each["environment"] for each in composed)):
        assert {name.removeprefix("GROUNDSKEEPER_").lower() for name in variables} <= set(Settings.model_fields)


def test_pods_may_little_and_kubernetes_probes_the_service() -> None:
    service, worker = _deployments()
    for deployment in (service, worker):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["enableServiceLinks"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {"/data", "/tmp"} <= {each["mountPath"] for each in container["volumeMounts"]}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    container = service["spec"]["template"]["spec"]["containers"][0]
    probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


def test_selectors_match_the_pods_and_workers_get_no_secret_of_the_service() -> None:
    manifests = _kubernetes()
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in _deployments()]
    budgets = [each["spec"]["selector"]["matchLabels"] for each in manifests if each["kind"] == "PodDisruptionBudget"]
    assert budgets == labels
    assert [each["spec"]["selector"] for each in manifests if each["kind"] == "Service"] == labels[:1]
    worker = _deployments()[1]["spec"]["template"]["spec"]["containers"][0]
    for variables in (_variables(worker), _compose()["services"]["worker"]["environment"]):
        assert not {f"GROUNDSKEEPER_{name}" for name in ("DATABASE", "SECRET_KEYS", "ADMIN_TOKEN")} & set(variables)


def test_the_secrets_are_the_ones_that_the_manifests_name() -> None:
    printed = dict(line.split("=", 1) for line in _printed("secrets").splitlines())
    SecretCipher([printed["GROUNDSKEEPER_SECRET_KEYS"]])
    assert Bearer.parse(printed["GROUNDSKEEPER_ADMIN_TOKEN"])
    named = set(re.findall(r"\$\{(\w+):\?\}", _printed("compose")))
    assert set(printed) == named

    url = "postgresql://a:b=c@db/x"
    printed = dict(line.split("=", 1) for line in _printed("secrets", "--database", url).splitlines())
    assert printed["GROUNDSKEEPER_DATABASE"] == url
    service = _deployments()[0]["spec"]["template"]["spec"]["containers"][0]
    references = [each["valueFrom"]["secretKeyRef"] for each in service["env"] if "valueFrom" in each]
    assert {each["key"] for each in references if not each.get("optional")} == set(printed)
    assert all(
        each["name"] == each["valueFrom"]["secretKeyRef"]["key"] for each in service["env"] if "valueFrom" in each
    )


def _printed(*arguments: str) -> str:
    result = called(["manifests", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _kubernetes(*options: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_printed("kubernetes", *options)))


def _deployments(*options: str) -> list[dict[str, Any]]:
    """Returns the Deployments of the service and of the workers."""
    return [each for each in _kubernetes(*options) if each["kind"] == "Deployment"]


def _compose(*options: str) -> dict[str, Any]:
    composed: dict[str, Any] = yaml.safe_load(_printed("compose", *options))
    return composed


def _variables(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container["env"]}
