"""Tests the conversion of the options of Hadoop's file system for Azure to those of Arrow."""

from __future__ import annotations

import pickle
import re

import pytest

from jobs.errors import RefusedError
from jobs.redaction import is_secret
from jobs.storage.azure import OPTIONS, Azure, AzureFiles
from jobs.storage.paths import Storage, of_hadoop
from jobs.storage.store import NotReproducibleError
from jobs.storage.stores import path_of, store_of

HOST = "account.dfs.core.windows.net"
TABLE = f"abfss://lake@{HOST}/t"
KEY = {"fs.azure.account.key": "geheim"}
OAUTH = {"fs.azure.account.auth.type": "OAuth"}
PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2"
APPLICATION = {
    **OAUTH,
    "fs.azure.account.oauth.provider.type": f"{PROVIDERS}.ClientCredsTokenProvider",
    "fs.azure.account.oauth2.client.id": "c",
    "fs.azure.account.oauth2.client.secret": "geheim",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
}
MACHINE = {**OAUTH, "fs.azure.account.oauth.provider.type": f"{PROVIDERS}.MsiTokenProvider"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (KEY, Azure("account", key="geheim")),
        ({f"spark.hadoop.fs.azure.account.key.{HOST}": " own ", **KEY}, Azure("account", key="own")),
        ({**KEY, f"fs.azure.account.auth.type.{HOST}": "SharedKey"}, Azure("account", key="geheim")),
        (APPLICATION, Azure("account", client="c", secret="geheim", tenant="t")),
        ({**MACHINE, "fs.azure.account.oauth2.client.id": "m"}, Azure("account", client="m")),
        (
            {**KEY, "fs.azure.abfs.endpoint": "localhost:10000", "fs.azure.always.use.https": "false"},
            Azure("account", key="geheim", endpoint="localhost:10000", tls=False),
        ),
        ({**KEY, "fs.azure.always.use.https": "false"}, Azure("account", key="geheim")),
    ],
)
def test_the_options_of_hadoop_are_those_of_arrow(options: dict[str, str], expected: Azure) -> None:
    found = store_of(TABLE, options)
    assert found == expected
    assert pickle.loads(pickle.dumps(found)) == found
    assert "geheim" not in repr(found)
    # Builds its client without a request.
    assert isinstance(found.filesystem().handler, AzureFiles)


def test_an_account_of_another_azure_cloud_gets_the_endpoint_of_that_cloud() -> None:
    found = store_of("abfss://lake@account.dfs.core.chinacloudapi.cn/t", KEY)
    assert found == Azure("account", "core.chinacloudapi.cn", key="geheim")
    assert path_of("abfss://lake@account.dfs.core.chinacloudapi.cn//t/x%20 y/") == "lake/t/x%20 y"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fs.azure.account.key", {}),
        ("fs.azure.account.auth.type", {"fs.azure.account.auth.type": "Custom"}),
        ("fs.azure.account.auth.type", {f"fs.azure.account.auth.type.{HOST}": "SAS", **KEY}),
        ("fs.azure.account.oauth.provider.type", OAUTH),
        ("fs.azure.account.oauth2.client.id", MACHINE),
        ("fs.azure.account.oauth2.client.secret", {**APPLICATION, "fs.azure.account.oauth2.client.secret": ""}),
        (
            "fs.azure.account.oauth2.client.endpoint",
            {**APPLICATION, "fs.azure.account.oauth2.client.endpoint": "https://example.org/geheim"},
        ),
        *(
            (name, {**KEY, name: "geheim"})
            for name in (
                "fs.azure.abfs.endpoint",
                "fs.azure.account.keyprovider",
                "fs.azure.client-provided-encryption-key",
                "fs.azure.enable.delegation.token",
                "fs.azure.sas.token.provider.type",
            )
        ),
    ],
)
def test_options_that_arrow_cannot_follow_are_refused_by_name(name: str, options: dict[str, str]) -> None:
    with pytest.raises(NotReproducibleError) as refused:
        store_of(TABLE, options)
    assert name in str(refused.value)
    assert "geheim" not in str(refused.value)


def test_tasks_find_its_files_by_the_same_options() -> None:
    assert of_hadoop(TABLE, KEY) == Storage("lake/t", Azure("account", key="geheim"))
    with pytest.raises(RefusedError) as refused:
        of_hadoop(TABLE, {})
    problem = refused.value.problem()
    assert (problem.type, problem.detail) == ("storage-not-supported", "fs.azure.account.key is not set")


def test_the_driver_reads_these_options_of_hadoop_and_no_others() -> None:
    own = [f"fs.azure.account.key.{HOST}", "fs.azure.abfs.endpoint", *APPLICATION]
    assert all(re.match(OPTIONS, name) for name in own)
    assert not any(re.match(OPTIONS, name) for name in ("fs.azure.account.keys", "fs.azure.io.retry.max.retries"))


@pytest.mark.parametrize("name", [f"fs.azure.account.key.{HOST}", "fs.azure.account.oauth2.client.secret"])
def test_the_secrets_of_azures_options_are_masked(name: str) -> None:
    assert is_secret(name, "a value")
    assert not is_secret("fs.azure.account.auth.type", "OAuth")
