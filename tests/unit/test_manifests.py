"""The manifests are valid by the schemas of Kubernetes and Compose, and fit this version's commands and settings."""

from __future__ import annotations

import json
import re
import zipfile
from importlib.metadata import version
from importlib.resources import files
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
from tests.image.dockerfile import ROOT, stages
from tests.support.commands import called

OPTIONS = ("--image", "registry.example/team/groundskeeper:1", "--allowed-root", "s3a://lake/a", "--workers", "3")
EVERYTHING = ("--max-workers", "9", "--executors", "5", "--caller", "keda", "--caller", "monitoring", "--claim", "lake")


@pytest.mark.parametrize("options", [OPTIONS, (*OPTIONS, *EVERYTHING, "--secret", "other", "--replicas", "1")])
def test_kubernetes_accepts_the_manifests(options: tuple[str, ...]) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for manifest in _kubernetes(*options):
        if manifest["kind"] == "SparkApplication":
            # Kubernetes has no schema of the Spark operator, but one of the pods that it starts.
            checked = [
                {"apiVersion": "v1", "kind": "PodTemplate", "template": manifest["spec"][of]["template"]}
                for of in ("driver", "executor")
            ]
        else:
            checked = [] if manifest["apiVersion"].startswith("keda.sh/") else [manifest]
        for each in checked:
            for release in ("1.31", validate.latest_version()):
                validate.validate(each, release, strict=True)


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
        assert _variables(container)["GROUNDSKEEPER_ALLOWED_ROOTS"] == '["s3a://lake/a"]'
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


@pytest.mark.parametrize(
    "options",
    [
        *(("--image", "a b"), ("--secret", "A_b"), ("--claim", ""), ("--replicas", "0"), ("--caller", "a b")),
        *(("--namespace", "a/b"), ("--workers", "3", "--max-workers", "2"), ("--executors", "0")),
    ],
)
def test_values_that_kubernetes_would_refuse_are_refused(options: tuple[str, ...]) -> None:
    assert called(["manifests", "kubernetes", *options]).exit_code == 2


def test_containers_start_commands_and_set_variables_that_exist() -> None:
    pods = [each["spec"]["template"]["spec"]["containers"][0] for each in _deployments()]
    composed = [_compose()["services"][name] for name in ("service", "worker")]
    spark = _of_kind("SparkApplication", *EVERYTHING)["spec"]
    commands = [each["args"] for each in pods] + [each["command"] for each in composed] + [spark["arguments"]]
    pods.append(spark["driver"]["template"]["spec"]["containers"][0])
    root = typer.main.get_command(app)
    for name, *arguments in commands:
        # The call parses the options and starts nothing.
        root.commands[name].make_context(name, list(arguments))  # type: ignore[attr-defined]
    for variables in (*(_variables(each) for each in pods), *(each["environment"] for each in composed)):
        assert {name.removeprefix("GROUNDSKEEPER_").lower() for name in variables} <= set(Settings.model_fields)


def test_pods_have_few_rights_and_kubernetes_probes_the_service() -> None:
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


def test_an_application_of_the_spark_operator_runs_the_command_line_of_the_image_with_its_spark() -> None:
    spark = _of_kind("SparkApplication", *EVERYTHING)["spec"]
    environment = stages()[-1].last("ENV").words
    packages = next(each for each in environment if each.startswith("SPARK_HOME=")).removeprefix("SPARK_HOME=")
    program = spark["mainApplicationFile"].removeprefix(f"local://{packages.removesuffix('/pyspark')}/")
    assert (ROOT / program).is_file(), spark["mainApplicationFile"]
    assert spark["sparkVersion"] == version("pyspark")
    assert (spark["dynamicAllocation"]["minExecutors"], spark["dynamicAllocation"]["maxExecutors"]) == (0, 5)
    for pod in (spark[of]["template"]["spec"] for of in ("driver", "executor")):
        (container,) = pod["containers"]
        # Spark merges its own container into the container of this name.
        assert container["name"] in ("spark-kubernetes-driver", "spark-kubernetes-executor")
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {"/data", "/tmp", "/lake"} == {each["mountPath"] for each in container["volumeMounts"]}
        assert {each["name"] for each in pod["volumes"]} == {each["name"] for each in container["volumeMounts"]}


def test_keda_sets_the_number_of_workers_where_it_is_asked_to() -> None:
    worker = _deployments(*EVERYTHING)[1]
    scaled = _of_kind("ScaledObject", *EVERYTHING)["spec"]
    assert scaled["scaleTargetRef"] == {"name": worker["metadata"]["name"]}
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 9)
    # Otherwise each new `kubectl apply` would undo what KEDA has set.
    assert "replicas" not in worker["spec"]
    (trigger,) = scaled["triggers"]
    authentication = _of_kind("TriggerAuthentication", *EVERYTHING)
    assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}
    (token,) = authentication["spec"]["secretTargetRef"]
    assert (token["parameter"], token["key"]) == ("token", "GROUNDSKEEPER_READER_TOKEN")
    assert (
        "//groundskeeper.lake:"
        in _of_kind("ScaledObject", *EVERYTHING, "--namespace", "lake")["spec"]["triggers"][0]["metadata"]["url"]
    )


@pytest.mark.parametrize(("options", "seconds"), [((), 300), (EVERYTHING, 3600)])
def test_kubernetes_waits_longer_than_a_worker_for_its_jobs_and_longest_where_an_autoscaler_ends_it(
    options: tuple[str, ...], seconds: int
) -> None:
    pod = _deployments(*options)[1]["spec"]["template"]["spec"]
    drain = int(_variables(pod["containers"][0])["GROUNDSKEEPER_DRAIN_SECONDS"])
    assert drain == seconds
    assert drain < pod["terminationGracePeriodSeconds"] <= drain + 60


def test_only_callers_get_to_the_service_and_only_executors_to_a_worker() -> None:
    assert "NetworkPolicy" not in {each["kind"] for each in _kubernetes()}
    manifests = _kubernetes(*EVERYTHING)
    policies = {each["metadata"]["name"]: each["spec"] for each in manifests if each["kind"] == "NetworkPolicy"}
    service, worker = (each["spec"]["template"]["metadata"]["labels"] for each in _deployments())
    assert policies["groundskeeper"]["podSelector"]["matchLabels"] == service
    (rule,) = policies["groundskeeper"]["ingress"]
    assert rule["from"][1]["namespaceSelector"]["matchExpressions"][0]["values"] == ["keda", "monitoring"]
    assert policies["groundskeeper-worker"] == {
        "podSelector": {"matchLabels": worker},
        "policyTypes": ["Ingress"],
        # At all ports, since Spark chooses them.
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"spark-role": "executor"}}}]}],
    }
    spark = _of_kind("SparkApplication", *EVERYTHING)["spec"]
    assert spark["driver"]["labels"] == spark["executor"]["labels"]
    of_spark = policies["groundskeeper-spark"]
    assert of_spark["podSelector"]["matchLabels"] == spark["driver"]["labels"]
    assert of_spark["ingress"] == [{"from": [{"podSelector": of_spark["podSelector"]}]}]
    # Otherwise a policy would keep a worker's executors, which have only Spark's labels, from their driver.
    assert all("app.kubernetes.io/name" in each["podSelector"]["matchLabels"] for each in policies.values())


def test_spark_gives_executors_the_label_by_which_a_worker_lets_them_in() -> None:
    (jar,) = (Path(str(files("pyspark"))) / "jars").glob("spark-kubernetes_*.jar")
    constants = zipfile.ZipFile(jar).read("org/apache/spark/deploy/k8s/Constants$.class")
    # Strings in a class: their length in two bytes, then UTF-8.
    assert b"\x00\x0aspark-role" in constants
    assert b"\x00\x08executor" in constants


def test_the_chart_has_the_options_of_the_command_and_no_other_value(tmp_path: Path) -> None:
    assert called(["manifests", "helm", str(tmp_path)]).exit_code == 0
    values = yaml.safe_load((tmp_path / "values.yaml").read_text())
    schema = json.loads((tmp_path / "values.schema.json").read_text())
    jsonschema.validate(values, schema)
    # Helm adds this value if another chart depends on the chart.
    jsonschema.validate({**values, "global": {"of": "the other chart"}}, schema)
    empty: tuple[dict[str, Any], ...] = ({"callers": []}, {"allowedRoots": []})
    for wrong in (*empty, {"workers": -1}, {"secret": "A_b"}, {"callers": [""]}, {"image": None}, {"worker": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**values, **wrong}, schema)
    templates = "".join(path.read_text() for path in (tmp_path / "templates").iterdir())
    assert set(re.findall(r"\.Values\.(\w+)", templates)) == set(values)
    assert yaml.safe_load((tmp_path / "Chart.yaml").read_text())["appVersion"] == version("groundskeeper")


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
    printed = dict(line.split("=", 1) for line in _printed_manifests("secrets").splitlines())
    SecretCipher([printed["GROUNDSKEEPER_SECRET_KEYS"]])
    assert Bearer.parse(printed["GROUNDSKEEPER_ADMIN_TOKEN"])
    named = set(re.findall(r"\$\{(\w+):\?\}", _printed_manifests("compose")))
    assert set(printed) == named | {"GROUNDSKEEPER_READER_TOKEN"}

    url = "postgresql://a:b=c@db/x"
    printed = dict(line.split("=", 1) for line in _printed_manifests("secrets", "--database", url).splitlines())
    assert printed["GROUNDSKEEPER_DATABASE"] == url
    service = _deployments()[0]["spec"]["template"]["spec"]["containers"][0]
    references = [each["valueFrom"]["secretKeyRef"] for each in service["env"] if "valueFrom" in each]
    assert (
        {each["key"] for each in references if not each.get("optional")}
        < set(printed)
        <= {each["key"] for each in references}
    )
    assert all(
        each["name"] == each["valueFrom"]["secretKeyRef"]["key"] for each in service["env"] if "valueFrom" in each
    )


def _printed_manifests(*arguments: str) -> str:
    result = called(["manifests", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _kubernetes(*options: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_printed_manifests("kubernetes", *options)))


def _of_kind(kind: str, *options: str) -> dict[str, Any]:
    (found,) = [each for each in _kubernetes(*options) if each["kind"] == kind]
    return found


def _deployments(*options: str) -> list[dict[str, Any]]:
    """Returns the Deployments of the service and of the workers."""
    return [each for each in _kubernetes(*options) if each["kind"] == "Deployment"]


def _compose(*options: str) -> dict[str, Any]:
    composed: dict[str, Any] = yaml.safe_load(_printed_manifests("compose", *options))
    return composed


def _variables(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container["env"]}
