"""An S3 server with the accounts of a company: a user assumes a role of a hub account, and that role assumes, with an
external id, a role in the account of the lake. Only the last role may use the bucket. The server (moto) checks
signatures, policies and trust, and ends its sessions early (`tests.support.s3`)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobs.storage import accounts
from tests.support import s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ACCOUNT = "123456789012"
EXTERNAL_ID = "groundskeeper-7f3a"


def role(name: str, **members: Any) -> dict[str, Any]:
    return {"arn": f"arn:aws:iam::{_ACCOUNT}:role/{name}", **members}


HUB, LAKE = role("hub"), role("lake", external_id=EXTERNAL_ID, tags={"team": "data"}, transitive_tags=["team"])


class Company:
    """`declared` is the account with the whole chain of roles."""

    def __init__(self, server: s3.Server) -> None:
        import boto3

        self.server = server
        iam = boto3.client(
            "iam",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="someone",
            aws_secret_access_key="anything",
            verify=server.ca_file,
        )
        iam.create_user(UserName="gk")
        key = iam.create_access_key(UserName="gk")["AccessKey"]
        iam.put_user_policy(UserName="gk", PolicyName="own", PolicyDocument=_policy("sts:AssumeRole"))
        trusted = {
            "hub": (f"arn:aws:iam::{_ACCOUNT}:user/gk", {}, "sts:AssumeRole"),
            "lake": (
                f"arn:aws:sts::{_ACCOUNT}:assumed-role/hub/groundskeeper",
                {"Condition": {"StringEquals": {"sts:ExternalId": EXTERNAL_ID}}},
                "s3:*",
            ),
            "idle": (f"arn:aws:iam::{_ACCOUNT}:user/gk", {}, "s3:DeleteBucket"),
        }
        for name, (principal, condition, action) in trusted.items():
            trust = _policy("sts:AssumeRole", Principal={"AWS": principal}, **condition)
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
            iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=_policy(action))
        self.declared: dict[str, Any] = {
            "roots": ["s3a://lake"],
            "source": "keys",
            "access_key": key["AccessKeyId"],
            "secret_key": key["SecretAccessKey"],
            "roles": [HUB, LAKE],
            "endpoint": server.endpoint,
            "sts_endpoint": server.endpoint,
            "region": "us-east-1",
            "path_style": True,
        }
        if server.ca_file:
            self.declared["ca_file"] = server.ca_file

    def options(self, **changes: Any) -> dict[str, str]:
        """Returns Hadoop's options of the account with other members; None takes a member away."""
        changed = {name: value for name, value in {**self.declared, **changes}.items() if value is not None}
        return accounts.options(accounts.parse([changed]))


@contextmanager
def company(*, certificate: tuple[Path, Path] | None = None) -> Iterator[Company]:
    with s3.running(certificate=certificate) as server:
        found = Company(server)
        server.counted(needs_keys=1)
        yield found


def _policy(action: str, **members: Any) -> str:
    resource = {} if "Principal" in members else {"Resource": "*"}
    statement = {"Effect": "Allow", "Action": action, **resource, **members}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
