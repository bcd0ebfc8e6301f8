"""Tests the conversion of the options of Google's connector for Hadoop to those of Arrow."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING

import pytest

from jobs.errors import RefusedError
from jobs.redaction import is_secret
from jobs.storage import gcs
from jobs.storage.gcs import Gcs
from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Gcs()),
        ({"fs.gs.auth.service.account.json.keyfile": "/k"}, Gcs(key_file="/k")),
        ({"spark.hadoop.google.cloud.auth.service.account.json.keyfile": " /k "}, Gcs(key_file="/k")),
        ({"fs.gs.auth.null.enable": "true", "fs.gs.auth.service.account.enable": "false"}, Gcs(anonymous=True)),
        ({"fs.gs.storage.root.url": "https://storage.googleapis.com/"}, Gcs()),
        ({"fs.gs.storage.root.url": "http://127.0.0.1:4443"}, Gcs(endpoint="127.0.0.1:4443", tls=False)),
    ],
)
def test_the_options_of_the_connector_are_those_of_arrow(options: dict[str, str], expected: Gcs) -> None:
    found = gcs.of_hadoop(options, "lake")
    assert found == expected
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    "name",
    [
        "fs.gs.auth.service.account.private.key",
        "google.cloud.auth.service.account.keyfile",
        "fs.gs.auth.access.token.provider.impl",
        "fs.gs.auth.type",
        "fs.gs.encryption.algorithm",
        "fs.gs.impl",
        "fs.gs.proxy.address",
        "fs.gs.requester.pays.mode",
        "fs.gs.storage.root.url",
    ],
)
def test_options_of_the_connector_that_arrow_cannot_follow_are_refused_by_name(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        of_hadoop("gs://lake/t", {name: "geheim"})
    problem = refused.value.problem()
    assert problem.type == "storage-not-supported"
    assert name.removeprefix("fs.gs.").removeprefix("google.cloud.") in problem.detail
    assert "geheim" not in str(problem)
    assert re.search(gcs.OPTIONS, name)


def test_a_key_file_that_cannot_be_read_is_not_replaced_by_other_credentials(tmp_path: Path) -> None:
    options = {"fs.gs.auth.service.account.json.keyfile": f"{tmp_path}/none.json"}
    with pytest.raises(PermissionError, match=r"none\.json"):
        gcs.of_hadoop(options, "lake").filesystem()


@pytest.mark.parametrize(
    "name",
    ["fs.gs.auth.service.account.private.key", "fs.gs.auth.client.secret", "fs.gs.auth.refresh.token"],
)
def test_the_secrets_of_googles_options_are_masked(name: str) -> None:
    assert is_secret(name, "a value")
    assert not is_secret("fs.gs.auth.service.account.json.keyfile", "/etc/key.json")
