"""Tests declarations of accounts, and the options of Hadoop that follow from them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.storage import accounts, gcs
from jobs.storage.azure import Azure
from jobs.storage.store import NotReproducibleError
from jobs.storage.stores import store_of
from service.runtime import settings
from service.runtime.effective_settings import shown

ARN = "arn:aws:iam::123456789012:role/lake"
KEYS = {"roots": ["s3://lake/a/"], "source": "keys", "access_key": "AKIA", "secret_key": "geheim"}


def test_accounts_of_google_and_azure_become_the_options_of_their_clients() -> None:
    declared = [
        {"roots": ["gs://lake"], "source": "machine", "service_account": "gk@p.iam.gserviceaccount.com"},
        {"roots": ["abfss://c@acc.dfs.core.windows.net/"], "source": "machine", "client_id": "id"},
    ]
    options = accounts.options(accounts.parse(declared))
    assert store_of("gs://lake/t", options) == gcs.Gcs(service_account="gk@p.iam.gserviceaccount.com")
    found = store_of("abfss://c@acc.dfs.core.windows.net/t", options)
    assert isinstance(found, Azure)
    assert (found.client, found.secret) == ("id", None)


def test_the_options_of_one_bucket_have_its_account_alone() -> None:
    options = accounts.options(accounts.parse([{**KEYS, "endpoint": "https://s3:9", "path_style": True}]))
    assert {name.removeprefix("fs.s3a.bucket.lake.") for name in options} == {
        "aws.credentials.provider",
        accounts.OPTION,
        "endpoint",
        "path.style.access",
    }
    assert "geheim" not in repr(store_of("s3a://lake/a/t", options))
    with pytest.raises(NotReproducibleError, match="s3a://lake/ab"):
        store_of("s3a://lake/ab", options)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({**KEYS, "colour": "red"}, "colour"),
        ({**KEYS, "source": "vault"}, "source"),
        ({**KEYS, "roots": []}, "roots"),
        ({**KEYS, "roots": ["s3a://lake", "gs://lake"]}, "one of"),
        ({**KEYS, "roots": ["hdfs://n/x"]}, "one of"),
        ({**KEYS, "secret_key": ""}, "needs secret_key"),
        ({**KEYS, "token_file": "/t"}, "does not use token_file"),
        ({**KEYS, "roles": [{"arn": "lake"}]}, "arn"),
        ({**KEYS, "roles": [{"arn": ARN, "seconds": 60}]}, "seconds"),
        ({**KEYS, "roles": [{"arn": ARN, "transitive_tags": ["team"]}]}, "tags"),
        ({**KEYS, "endpoint": "s3"}, "endpoint"),
        ({"roots": ["s3a://lake"], "source": "web_identity"}, "needs roles"),
        ({"roots": ["abfss://c@acc.dfs.core.windows.net"], "source": "web_identity"}, "not possible on abfss"),
    ],
)
def test_a_wrong_declaration_is_refused_without_its_secrets(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"\[0\]") as refused:
        accounts.parse([declared])
    assert said in str(refused.value)
    assert "geheim" not in str(refused.value)


def test_accounts_that_exclude_each_other_are_refused() -> None:
    google = {"roots": ["gs://a"], "source": "machine"}
    for others, said in (
        ([KEYS], "two accounts"),
        ([{**KEYS, "roots": ["s3a://lake/b"], "region": "eu-west-1"}], "differ"),
        ([google, {**google, "roots": ["gs://b"], "service_account": "x"}], "gs:"),
    ):
        with pytest.raises(ValueError, match=said):
            accounts.parse([KEYS, *others])
    assert len(accounts.parse([KEYS, google, {**google, "roots": ["gs://b"]}])) == 3


def test_settings_show_an_account_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    role = {"arn": ARN, "external_id": "outside", "policy": "{}"}
    monkeypatch.setenv("GROUNDSKEEPER_STORAGE_ACCOUNTS", json.dumps([{**KEYS, "roles": [role]}]))
    chosen = settings.load()
    text = f"{shown('storage_accounts', chosen.storage_accounts)} {chosen!r} {chosen.storage_accounts}"
    assert ARN in text
    assert not any(secret in text for secret in ("geheim", "AKIA", "outside"))
    assert chosen.hadoop_options["fs.s3a.bucket.lake.aws.credentials.provider"] == accounts.PROVIDER
