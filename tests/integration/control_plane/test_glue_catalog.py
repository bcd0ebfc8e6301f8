"""The tables of AWS Glue are listed, registered and polled, with the keys and roles of an account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest

from jobs.storage import accounts
from service.registration.catalogs.catalog import CatalogKind, Source
from service.registration.catalogs.errors import CatalogDeniedError, CatalogLoginError, CatalogUnavailableError
from service.registration.catalogs.listing import read
from tests.integration.control_plane.listed_lake import Lake
from tests.integration.serving import Serving, eventually
from tests.support import s3
from tests.support.aws_company import HUB, LAKE, Company, role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def aws() -> Iterator[s3.Server]:
    with s3.running() as running:
        yield running


KEYS = {"aws_access_key_id": "someone", "aws_secret_access_key": "anything", "region_name": "eu-central-1"}
HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


def entry(name: str, location: str, **more: Any) -> dict[str, Any]:
    storage = {"Location": location, "InputFormat": more.pop("input_format", ""), "Columns": []}
    return {"Name": name, "StorageDescriptor": storage, **more}


def test_a_service_registers_the_tables_of_glue_and_polls_them(
    aws: s3.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    glue = boto3.client("glue", endpoint_url=aws.endpoint, **KEYS)
    glue.create_database(DatabaseInput={"Name": "shop"})
    glue.create_database(DatabaseInput={"Name": "scratch"})
    told = {
        "by_format": {"input_format": HUDI},
        "by_provider": {"Parameters": {"spark.sql.sources.provider": "HUDI", "team": "shop"}, "Owner": "shop@x.com"},
        "by_connector": {"Parameters": {"connector": "hudi"}},
        "by_property": {"Parameters": {"kind": "lakehouse"}},
        "by_spark": {"Parameters": {"spark.sql.sources.provider": "hudi"}},
        "plain": {"input_format": "org.apache.hadoop.mapred.TextInputFormat"},
    }
    for name, more in told.items():
        table = entry(name, f"file:{lake.table(f'x.{name}', at=name)}", **more)
        if name == "by_spark":
            storage = table["StorageDescriptor"]
            storage["SerdeInfo"] = {"Parameters": {"path": storage["Location"]}}
            storage["Location"] = f"file:{lake.path}/shop.db/by_spark-__PLACEHOLDER__"
        glue.create_table(DatabaseName="shop", TableInput=table)
    # Glue answers with pages of at most 100 tables, so these need a second page.
    for number in range(130):
        glue.create_table(DatabaseName="shop", TableInput=entry(f"view{number}", ""))
    glue.create_table(DatabaseName="scratch", TableInput=entry("t", str(lake.table("x.t", at="t")), input_format=HUDI))
    declared = {
        "name": "glue",
        "kind": "glue",
        "address": aws.endpoint.replace("http://", "glue+http://"),
        "region": "eu-central-1",
        "databases": ["!scratch"],
        "property": "kind=lakehouse",
        "tag_parameters": ["team"],
        "new": "register",
        "roots": [str(lake.path)],
    }
    with Serving(tmp_path, AUTOMATIC="false", CATALOGS=json.dumps([declared])) as service:

        def tables() -> dict[str, Any]:
            items = httpx.get(f"{service.url}/v1/tables").json()["items"]
            return {each["base_path"].rpartition("/")[2]: each for each in items}

        wanted = {"by_format", "by_provider", "by_connector", "by_property", "by_spark"}
        assert eventually(lambda: set(tables()) == wanted, 60)
        by_provider = tables()["by_provider"]
        assert (by_provider["owner"], by_provider["tags"]) == ("shop@x.com", {"team": "shop"})
        address = f"{service.url}/v1/commits?table_id={by_provider['id']}"
        assert eventually(lambda: len(httpx.get(address).json()["items"]) == 1, 60)
        shown = httpx.get(f"{service.url}/v1/catalogs/glue").json()
        assert (shown["report"]["entries"], shown["report"]["in_step"]) == (136, 0)
        entries = httpx.get(f"{service.url}/v1/audit").json()["items"]
        assert {(each["who"], each["operation"]) for each in entries} == {("GROUNDSKEEPER_CATALOGS", "syncCatalog")}


def test_errors_of_glue_have_their_true_names(aws: s3.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    of_aws = aws.endpoint.replace("http://", "glue+http://")
    with pytest.raises(CatalogLoginError):
        read(Source(CatalogKind.GLUE, of_aws, region="eu-central-1"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with pytest.raises(CatalogUnavailableError):
        read(Source(CatalogKind.GLUE, "glue+http://127.0.0.1:1", region="eu-central-1"))
    with s3.running() as strict:
        strict.counted(needs_keys=1)
        of_strict = strict.endpoint.replace("http://", "glue+http://")
        with pytest.raises(CatalogLoginError):
            read(Source(CatalogKind.GLUE, of_strict, region="eu-central-1"))


def test_glue_is_read_by_the_roles_of_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with s3.running() as server:
        aws = Company(server)
        iam = boto3.client("iam", endpoint_url=server.endpoint, **KEYS)
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "glue:*", "Resource": "*"}]}
        iam.put_role_policy(RoleName="lake", PolicyName="own", PolicyDocument=json.dumps(policy))
        server.counted(needs_keys=1)

        def listed(**changes: Any) -> Any:
            account = accounts.encoded([*accounts.parse([{**aws.declared, **changes}])])[1:-1]
            return read(Source(CatalogKind.GLUE, server.endpoint.replace("http://", "glue+http://"), account=account))

        assert (listed().entries, listed().is_complete) == (0, True)
        # The role `idle` may not list tables. Without a role, the user may only assume roles.
        for roles in ([role("idle")], []):
            with pytest.raises(CatalogDeniedError, match="glue:GetDatabases"):
                listed(roles=roles)
        with pytest.raises(CatalogDeniedError, match="assuming the role"):
            listed(roles=[HUB, {**LAKE, "external_id": "wrong"}])
        with pytest.raises(CatalogLoginError):
            listed(secret_key="wrong", roles=[])
