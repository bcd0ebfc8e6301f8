"""Tests which options of Spark a worker accepts from GROUNDSKEEPER_SPARK_CONF or --conf."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import typer

from jobs.format import spark_options
from service.cli.main import app as command_line
from service.model.errors import SettingsError
from service.runtime import settings
from tests.support.guides import ROOT, shell_blocks

_GUIDE = ROOT / ".docs" / "spark-clusters.md"


def test_resources_dynamic_allocation_and_their_numbers_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = '{"spark.executor.instances": 4, "spark.dynamicAllocation.enabled": true, "spark.executor.memory": "4g"}'
    monkeypatch.setenv("GROUNDSKEEPER_SPARK_CONF", conf)
    chosen = settings.load()
    assert chosen.spark_conf == {
        "spark.executor.instances": "4",
        "spark.dynamicAllocation.enabled": "true",
        "spark.executor.memory": "4g",
    }
    options = settings.with_spark_conf(chosen, ["spark.executor.memory=8g", "spark.executor.extraJavaOptions=-Da=b"])
    assert options.spark_conf["spark.executor.memory"] == "8g"
    assert options.spark_conf["spark.executor.extraJavaOptions"] == "-Da=b"
    assert options.spark_conf["spark.executor.instances"] == "4"


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("spark.serializer=org.apache.spark.serializer.JavaSerializer", "spark.serializer belongs to Groundskeeper"),
        ("spark.kryo.registrator=x", "belongs to Groundskeeper"),
        ("spark.sql.extensions=x", "belongs to Groundskeeper"),
        ("spark.sql.catalog.spark_catalog=x", "belongs to Groundskeeper"),
        ("spark.scheduler.mode=FIFO", "whose jobs need FAIR"),
        ("spark.speculation=true", "belongs to Groundskeeper"),
        ("spark.master=yarn", "Set GROUNDSKEEPER_MASTER or --master"),
        ("spark.driver.memory=8g", "Set GROUNDSKEEPER_DRIVER_MEMORY"),
        ("spark.jars.packages=a:b:c", "Set GROUNDSKEEPER_PACKAGES or GROUNDSKEEPER_JARS"),
        ("spark.submit.deployMode=cluster", "by spark-submit"),
        ("spark.hadoop.fs.s3a.secret.key=hush-hush", "Set GROUNDSKEEPER_STORAGE_OPTIONS"),
        ("spark.authenticate.secret=hush-hush", "is a secret"),
        ("spark.ssl.keyPassword=hush-hush", "is a secret"),
        ("spark.task.maxFailures=3", "must be 4 at least"),
        ("spark.task.maxFailures=many", "must be 4 at least"),
        ("executor.memory=4g", "must begin with `spark.`"),
        ("spark.executor.memory", "is not of the form name=value"),
        ("spark.executor.memory=a\nb", "without control characters"),
    ],
)
def test_options_that_jobs_need_or_that_have_their_own_setting_are_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, pair: str, said: str
) -> None:
    with pytest.raises(SettingsError, match="--conf: ") as caught:
        settings.with_spark_conf(settings.load(), [pair])
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_setting_is_checked_like_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_SPARK_CONF", '{"spark.scheduler.mode": "FIFO", "spark.master": "yarn"}')
    with pytest.raises(SettingsError, match=r"GROUNDSKEEPER_SPARK_CONF: .*FAIR.*GROUNDSKEEPER_MASTER"):
        settings.load()
    monkeypatch.setenv("GROUNDSKEEPER_SPARK_CONF", "spark.executor.memory=4g")
    with pytest.raises(SettingsError):
        settings.load()


@pytest.mark.parametrize(
    ("master", "with_retries", "is_local"),
    [
        ("local", "local[1,4]", True),
        ("local[*]", "local[*,4]", True),
        ("local[2]", "local[2,4]", True),
        ("local[2,9]", "local[2,9]", True),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]", False),
        ("spark://host:7077", "spark://host:7077", False),
        ("yarn", "yarn", False),
        ("k8s://https://host", "k8s://https://host", False),
    ],
)
def test_local_masters_retry_failed_tasks_and_clusters_do_so_by_themselves(
    master: str, with_retries: str, is_local: bool
) -> None:
    assert spark_options.with_retries(master) == with_retries
    assert spark_options.is_local(master) is is_local


def test_the_given_options_and_the_resources_are_shown_without_secrets() -> None:
    effective = {
        "spark.executor.memory": "4g",
        "spark.executor.extraJavaOptions": "-Dpassword=hush-hush",
        "spark.cores.max": "8",
        "spark.app.id": "app-1",
        "spark.yarn.queue": "night",
        "spark.executorEnv.API_TOKEN": "hush-hush",
    }
    shown = spark_options.shown(effective, {"spark.yarn.queue": "night", "spark.executorEnv.API_TOKEN": "hush-hush"})
    assert shown == {
        "spark.cores.max": "8",
        "spark.executor.memory": "4g",
        "spark.executorEnv.API_TOKEN": "******",
        "spark.yarn.queue": "night",
    }


def _commands() -> list[list[str]]:
    """Returns the words of every line of the guide that starts a worker."""
    lines = "".join(shell_blocks(_GUIDE)).splitlines()
    return [shlex.split(line) for line in lines if line.startswith(("groundskeeper worker ", "spark-submit "))]


def test_every_command_line_of_the_guide_is_one_that_a_worker_accepts() -> None:
    worker = typer.main.get_command(command_line).commands["worker"]  # type: ignore[attr-defined]
    known = {name for param in worker.params for name in param.opts}
    masters = set()
    for words in _commands():
        pairs = [words[at + 1] for at, word in enumerate(words) if word == "--conf"]
        assert list(spark_options.problems(spark_options.parsed(pairs))) == []
        master = words[words.index("--master") + 1]
        assert not spark_options.is_local(master)
        masters.add(master.partition(":")[0])
        if words[0] == "groundskeeper":
            assert {word for word in words if word.startswith("--")} <= known, words
            assert settings.load(master=master).master == master
    assert masters == {"spark", "yarn", "k8s"}


def test_the_guide_names_the_options_that_are_refused_and_the_versions_of_the_executors() -> None:
    guide = _GUIDE.read_text()
    [owned] = [line for line in guide.splitlines() if line.startswith("| `spark.serializer`")]
    assert set(re.findall(r"`(spark\.[\w.]+)`", owned)) == set(spark_options.OWNED)
    for conf in re.findall(r"SPARK_CONF='(\{.*\})'", guide):
        assert list(spark_options.problems({name: str(value) for name, value in json.loads(conf).items()})) == []
    declared = (ROOT / "pyproject.toml").read_text()
    pinned = re.findall(r"(?:pyarrow|numpy|msgspec)==[\d.]+", guide)
    assert len(pinned) == 3
    assert all(f'"{each}"' in declared for each in pinned), pinned
