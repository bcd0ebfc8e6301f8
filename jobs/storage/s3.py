"""Converts the `s3a` options of the owner's Spark jobs to an Arrow file system for S3.

Mirrors hadoop-aws 3.3.4 (`S3AUtils`, `DefaultS3ClientFactory`). Options that Arrow cannot reproduce are refused,
because a small difference in reading or writing would go unnoticed. All functions but `filesystem` and `credentials`
are pure; the service and the jobs share this module.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache

import msgspec
from pyarrow import fs

from jobs.storage import accounts
from jobs.storage.aws_session import Credentials, current
from jobs.storage.renewed_files import RenewedFiles
from jobs.storage.store import NotReproducibleError, not_reproduced

SECRETS = ("access.key", "secret.key", "session.token")
_PROVIDERS = "aws.credentials.provider"
# Options that change the written data or the access to the storage in ways that Arrow does not support, with the values
# of each that are harmless (besides being unset).
_NOT_REPRODUCED = {
    "accesspoint.arn": (),
    "acl.default": (),
    "custom.signers": (),
    "encryption.algorithm": (),
    "impl": ("org.apache.hadoop.fs.s3a.S3AFileSystem",),
    "proxy.host": (),
    "requester.pays.enabled": ("false",),
    "server-side-encryption-algorithm": (),
    "signing-algorithm": (),
}
OPTIONS = (
    *SECRETS,
    accounts.OPTION,
    *_NOT_REPRODUCED,
    _PROVIDERS,
    "attempts.maximum",
    "connection.establish.timeout",
    "connection.ssl.enabled",
    "connection.timeout",
    "endpoint",
    "endpoint.region",
    "path.style.access",
)

_KEYS, _KEYS_WITH_TOKEN, _ENVIRONMENT, _CHAIN, _ANONYMOUS = "keys", "keys with token", "environment", "chain", "none"
_ACCOUNT = "account"
# Hadoop's credential providers, and where Arrow finds the same credentials. `chain` is the chain of Amazon's SDK:
# environment, profiles, web identity, containers and the instance.
_SOURCES = {
    accounts.PROVIDER: _ACCOUNT,
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider": _KEYS_WITH_TOKEN,
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider": _KEYS,
    "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider": _ANONYMOUS,
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider": _CHAIN,
    "com.amazonaws.auth.EnvironmentVariableCredentialsProvider": _ENVIRONMENT,
    "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": _CHAIN,
    "com.amazonaws.auth.InstanceProfileCredentialsProvider": _CHAIN,
    "com.amazonaws.auth.EC2ContainerCredentialsProviderWrapper": _CHAIN,
    "com.amazonaws.auth.WebIdentityTokenCredentialsProvider": _CHAIN,
    "com.amazonaws.auth.profile.ProfileCredentialsProvider": _CHAIN,
}
_DEFAULT_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,"
    "com.amazonaws.auth.EnvironmentVariableCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"
)
_CHECKSUMS = "AWS_REQUEST_CHECKSUM_CALCULATION"
_guard = threading.Lock()
_CENTRAL = "s3.amazonaws.com"
_EXPRESS = "--x-s3"
_REGION_OF_HOST = re.compile(r"(?:^|\.)s3[.-](?:dualstack\.)?([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com")
_DNS_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IP_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


@dataclass(frozen=True)
class S3:
    """The access to one bucket; it can be sent to Spark's tasks. The repr shows no secret.

    `endpoint` is `host[:port]`, None for Amazon's own; `region` None means that it is resolved later. Times in seconds.
    `account` is the JSON of an account (`jobs.storage.accounts`), whose credentials are then used.
    """

    bucket: str
    region: str | None
    endpoint: str | None
    tls: bool
    virtual_hosts: bool
    sources: tuple[str, ...]
    keys: Credentials
    connect_seconds: float = 5.0
    request_seconds: float = 200.0
    attempts: int = 20
    account: str = field(default="", repr=False)
    ca_file: str | None = None

    def credentials(self, environment: Mapping[str, str] | None = None) -> Credentials:
        """Returns the credentials of the first source that has any, in the environment of the calling process, as
        Hadoop does."""
        if self.account:
            return current(self.account).credentials
        variables = os.environ if environment is None else environment
        for source in self.sources:
            if source in {_KEYS, _KEYS_WITH_TOKEN}:
                return self.keys
            if source == _ANONYMOUS:
                return Credentials(anonymous=True)
            if source == _CHAIN:
                break
            access = variables.get("AWS_ACCESS_KEY_ID") or variables.get("AWS_ACCESS_KEY")
            secret = variables.get("AWS_SECRET_KEY") or variables.get("AWS_SECRET_ACCESS_KEY")
            if access and secret:
                return Credentials(access, secret, variables.get("AWS_SESSION_TOKEN") or None)
        return Credentials()

    def filesystem(self) -> fs.FileSystem:
        """Returns Arrow's file system, one per process. Paths are `bucket/key`, without any encoding."""
        return _filesystem(self)

    def with_short_timeouts(self) -> S3:
        return replace(self, attempts=3, request_seconds=10.0)


@lru_cache(maxsize=16)
def _filesystem(s3: S3) -> fs.FileSystem:
    if s3.account:
        return fs.PyFileSystem(RenewedFiles(s3.account, lambda keys: _opened(s3, keys)))
    return _opened(s3, s3.credentials())


def _opened(s3: S3, credentials: Credentials) -> fs.FileSystem:
    with _checksums(s3):
        return _connected(s3, credentials)


def _connected(s3: S3, credentials: Credentials) -> fs.FileSystem:
    return fs.S3FileSystem(
        access_key=credentials.access_key,
        secret_key=credentials.secret_key,
        session_token=credentials.session_token,
        anonymous=credentials.anonymous,
        region=s3.region or fs.resolve_s3_region(s3.bucket),
        endpoint_override=s3.endpoint,
        scheme="https" if s3.tls else "http",
        force_virtual_addressing=s3.virtual_hosts,
        connect_timeout=s3.connect_seconds,
        request_timeout=s3.request_seconds,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=s3.attempts),
        # A small object then takes one request instead of three.
        allow_delayed_open=True,
        tls_ca_file_path=s3.ca_file,
    )


@contextmanager
def _checksums(s3: S3) -> Iterator[None]:
    """Lets Amazon's SDK, which is being set up, send checksums only where S3 demands them, unless the user decided.

    The SDK's default sends them behind the data, and other stores refuse such uploads. Hadoop's client 3.3 sends none.
    """
    with _guard:
        if s3.endpoint is None or _CHECKSUMS in os.environ:
            yield
            return
        os.environ[_CHECKSUMS] = "when_required"
        try:
            yield
        finally:
            del os.environ[_CHECKSUMS]


def of_hadoop(options: Mapping[str, str], bucket: str) -> S3:
    """Returns the access to this bucket by Hadoop's options (`fs.s3a.*`, also as `spark.hadoop.fs.s3a.*`).

    Options of the bucket (`fs.s3a.bucket.<bucket>.*`) override general ones (`S3AUtils.propagateBucketOptions`). Raises
    `NotReproducibleError`.
    """
    chosen = _of_bucket(options, bucket)
    reasons = [f"fs.s3a.{name} = {chosen[name]}" for name in not_reproduced(chosen, _NOT_REPRODUCED)]
    providers = [name.strip() for name in chosen.get(_PROVIDERS, _DEFAULT_PROVIDERS).split(",") if name.strip()]
    reasons += [f"fs.s3a.{_PROVIDERS} = {name}" for name in providers if name not in _SOURCES]
    if reasons:
        raise NotReproducibleError("; ".join(reasons))
    if bucket.endswith(_EXPRESS):
        raise NotReproducibleError(f"{bucket} is a bucket of S3 Express, whose sessions hadoop-aws 3.3.4 does not know")
    account = _account(chosen, providers)
    access, secret, token = (chosen.get(name) for name in SECRETS)
    sources = tuple(_usable((_SOURCES[name] for name in providers), access, secret, token))
    if not sources:
        raise NotReproducibleError(f"fs.s3a.{_PROVIDERS} = {', '.join(providers)}, and there are no keys")
    with_token = token if _KEYS_WITH_TOKEN in sources else None
    endpoint, tls = _endpoint(chosen)
    host = (endpoint or "").partition(":")[0]
    is_path_style = chosen.get("path.style.access", "").lower() == "true"
    return S3(
        bucket=bucket,
        region=chosen.get("endpoint.region") or _region(host),
        endpoint=endpoint,
        tls=tls,
        # The rule of Amazon's SDK (`S3RequestEndpointResolver`).
        virtual_hosts=not is_path_style and not _IP_ADDRESS.fullmatch(host) and bool(_DNS_NAME.fullmatch(bucket)),
        sources=sources,
        keys=Credentials(access, secret, with_token) if {_KEYS, _KEYS_WITH_TOKEN} & {*sources} else Credentials(),
        connect_seconds=_number(chosen, "connection.establish.timeout", 5000) / 1000,
        request_seconds=_number(chosen, "connection.timeout", 200_000) / 1000,
        attempts=_number(chosen, "attempts.maximum", 20),
        account=msgspec.json.encode(account).decode() if account else "",
        ca_file=(account and account.ca_file) or None,
    )


def _account(chosen: Mapping[str, str], providers: list[str]) -> accounts.Account | None:
    if accounts.PROVIDER not in providers:
        return None
    found = accounts.of_bucket(chosen.get(accounts.OPTION, "[]"))
    if len(providers) > 1 or len(found) != 1:
        raise NotReproducibleError(f"fs.s3a.{_PROVIDERS} = {', '.join(providers)} with {len(found)} accounts")
    return found[0]


def _number(chosen: Mapping[str, str], name: str, default: int) -> int:
    value = chosen.get(name, str(default))
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        raise NotReproducibleError(f"fs.s3a.{name} = {value}, which is no number")
    return int(value)


def _of_bucket(options: Mapping[str, str], bucket: str) -> dict[str, str]:
    """Returns the bucket's options: names without `fs.s3a.`, values stripped, empty ones left out."""
    plain = {name.removeprefix("spark.hadoop."): value.strip() for name, value in options.items()}
    prefix = f"fs.s3a.bucket.{bucket}."
    chosen = {
        name.removeprefix("fs.s3a."): value
        for name, value in plain.items()
        if name.startswith("fs.s3a.") and not name.startswith("fs.s3a.bucket.")
    }
    chosen |= {name.removeprefix(prefix): value for name, value in plain.items() if name.startswith(prefix)}
    return {name: value for name, value in chosen.items() if value}


def _usable(sources: Iterator[str], access: str | None, secret: str | None, token: str | None) -> Iterator[str]:
    """Yields the sources that may have credentials, and ends after the first that certainly has some."""
    for source in sources:
        if source == _KEYS_WITH_TOKEN and not (access and secret and token):
            continue
        if source == _KEYS and not (access and secret):
            continue
        yield source
        if source != _ENVIRONMENT:
            return


def _endpoint(chosen: Mapping[str, str]) -> tuple[str | None, bool]:
    """Returns `host[:port]` (None for Amazon's central endpoint) and whether TLS is used."""
    tls = chosen.get("connection.ssl.enabled", "true").lower() != "false"
    endpoint = chosen.get("endpoint")
    if endpoint and "://" in endpoint:
        scheme, _, endpoint = endpoint.partition("://")
        tls = scheme.lower() == "https"
    endpoint = endpoint.rstrip("/") if endpoint else None
    return (None if endpoint == _CENTRAL else endpoint), tls


def _region(host: str) -> str | None:
    if not host:
        return None
    match = _REGION_OF_HOST.search(host)
    return match.group(1) if match else "us-east-1"
