"""Tests the conversion of Hadoop's options for S3 to those of Arrow."""

from __future__ import annotations

import pickle

import pytest

from jobs.errors import RefusedError
from jobs.storage import s3
from jobs.storage.aws_session import Credentials
from jobs.storage.paths import Storage, of_hadoop

KEYS = {"fs.s3a.access.key": "AKIA", "fs.s3a.secret.key": "geheim"}
PROVIDERS = "fs.s3a.aws.credentials.provider"
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
ENVIRONMENT = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
ASSUMED = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"


def test_without_options_amazons_endpoint_is_used_and_the_region_is_resolved_later() -> None:
    found = s3.of_hadoop({}, "lake")
    assert (found.endpoint, found.region, found.tls, found.virtual_hosts) == (None, None, True, True)
    assert found.credentials({}) == Credentials()


def test_options_of_one_bucket_override_general_ones_for_this_bucket_only() -> None:
    options = {
        **KEYS,
        "fs.s3a.endpoint": "http://all:9000",
        "spark.hadoop.fs.s3a.bucket.lake.endpoint": "https://own:9443/",
        "fs.s3a.bucket.lake.access.key": " OWN ",
        "fs.s3a.bucket.lake.path.style.access": "TRUE",
    }
    own, other = s3.of_hadoop(options, "lake"), s3.of_hadoop(options, "lake.2")
    assert (own.endpoint, own.tls, own.virtual_hosts) == ("own:9443", True, False)
    assert own.credentials({}) == Credentials("OWN", "geheim")
    assert (other.endpoint, other.tls, other.virtual_hosts) == ("all:9000", False, True)
    assert other.credentials({}) == Credentials("AKIA", "geheim")


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("s3.amazonaws.com", None),
        ("s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://s3-ap-south-1.amazonaws.com", "ap-south-1"),
        ("s3.dualstack.us-west-2.amazonaws.com", "us-west-2"),
        ("s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("bucket.vpce-1a2b-3c4d.s3.us-east-2.vpce.amazonaws.com", "us-east-2"),
        ("minio.local:9000", "us-east-1"),
    ],
)
def test_the_region_follows_from_the_endpoint(endpoint: str, region: str | None) -> None:
    assert s3.of_hadoop({"fs.s3a.endpoint": endpoint}, "lake").region == region
    assert s3.of_hadoop({"fs.s3a.endpoint": endpoint, "fs.s3a.endpoint.region": "me"}, "lake").region == "me"


@pytest.mark.parametrize(("bucket", "host", "expected"), [("lake", "10.0.0.1:9000", False), ("My_Lake", "m", False)])
def test_addresses_and_odd_bucket_names_are_never_virtual_hosts(bucket: str, host: str, expected: bool) -> None:
    assert s3.of_hadoop({"fs.s3a.endpoint": host}, bucket).virtual_hosts is expected


def test_a_token_counts_only_where_the_providers_ask_for_it() -> None:
    options = {**KEYS, "fs.s3a.session.token": "t"}
    assert s3.of_hadoop(options, "lake").credentials({}) == Credentials("AKIA", "geheim", "t")
    assert s3.of_hadoop({**options, PROVIDERS: SIMPLE}, "lake").credentials({}) == Credentials("AKIA", "geheim")


def test_providers_are_asked_in_their_order() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    first = s3.of_hadoop({**KEYS, PROVIDERS: f"{ENVIRONMENT}, {SIMPLE}"}, "lake")
    assert first.credentials(environment) == Credentials("ENV", "s", "t")
    assert first.credentials({}) == Credentials("AKIA", "geheim")
    assert s3.of_hadoop(KEYS, "lake").credentials(environment) == Credentials("AKIA", "geheim")
    nobody = s3.of_hadoop({**KEYS, PROVIDERS: ANONYMOUS}, "lake")
    assert nobody.credentials(environment) == Credentials(anonymous=True)


@pytest.mark.parametrize(
    "options",
    [
        {PROVIDERS: ASSUMED},
        {PROVIDERS: f"{SIMPLE},com.example.Vault"},
        {PROVIDERS: SIMPLE},  # The provider reads keys from options, and there are none.
        {**KEYS, "fs.s3a.encryption.algorithm": "SSE-KMS"},
        {**KEYS, "fs.s3a.bucket.lake.server-side-encryption-algorithm": "SSE-C"},
        {**KEYS, "fs.s3a.acl.default": "BucketOwnerFullControl"},
        {**KEYS, "fs.s3a.proxy.host": "proxy"},
        {**KEYS, "fs.s3a.impl": "com.example.Other"},
        {**KEYS, "fs.s3a.connection.timeout": "200s"},
    ],
)
def test_options_that_arrow_cannot_follow_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(RefusedError) as refused:
        of_hadoop("s3a://lake/t", options)
    problem = refused.value.problem()
    assert problem.type == "storage-not-supported"
    assert "fs.s3a." in problem.detail
    assert "geheim" not in str(problem)
    assert problem.hint


def test_no_repr_shows_a_secret_and_yet_it_goes_with_the_tasks() -> None:
    storage = of_hadoop("s3a://lake/t", {**KEYS, "fs.s3a.session.token": "t0k3n"})
    assert not any(secret in f"{storage!r} {storage}" for secret in ("AKIA", "geheim", "t0k3n"))
    sent = pickle.loads(pickle.dumps(storage))
    assert sent == storage
    assert sent.store.credentials({}) == Credentials("AKIA", "geheim", "t0k3n")


@pytest.mark.parametrize("spelling", ["/lake/100% a=ü", "file:/lake/100% a=ü", "file:///lake/100% a=ü/"])
def test_local_spellings_are_one_place_and_percent_signs_stay(spelling: str) -> None:
    assert of_hadoop(spelling, {"fs.defaultFS": "file:///"}) == Storage("/lake/100% a=ü")


def test_keys_of_s3_are_what_hadoop_makes_of_the_path() -> None:
    assert of_hadoop("s3a://lake//a/100%20 b=ü/", KEYS).root == "lake/a/100%20 b=ü"


@pytest.mark.parametrize(("path", "default"), [("wasbs://c@a/t", "file:///"), ("/t", "hdfs://n")])
def test_other_file_systems_are_refused(path: str, default: str) -> None:
    with pytest.raises(RefusedError) as refused:
        of_hadoop(path, {"fs.defaultFS": default})
    assert refused.value.problem().type == "storage-not-supported"
    assert path in refused.value.problem().detail
