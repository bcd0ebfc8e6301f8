"""Credentials of an account on AWS, renewed in time: first the credentials of its source, then of each role in turn.
All but plain keys need `boto3` (extra `aws`).

Arrow's own client can assume one role by the credentials of the machine; it knows no chains, tags or profiles.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from jobs.storage.accounts import MARGIN, Account, Role, Source
from jobs.storage.store import LoginError

# Names of botocore's providers. Only the declared provider is asked, because others may have the credentials of
# somebody else.
_PROVIDERS = {Source.ENVIRONMENT: "env", Source.MACHINE: "iam-role", Source.CONTAINER: "container-role"}
_CONNECT_SECONDS, _SILENCE_SECONDS, _ATTEMPTS = 3, 10, 3
# Credentials from a file or an environment without an end may be replaced there.
_READ_AGAIN_SECONDS = 300.0
_PAUSE_SECONDS = 30.0
_MOST_MARGIN_SECONDS = 900.0
_LOGIN_CODES = {
    "ExpiredToken", "ExpiredTokenException", "IDPRejectedClaim", "InvalidClientTokenId", "InvalidIdentityToken",
    "SignatureDoesNotMatch", "UnrecognizedClientException",
}  # fmt: skip


@dataclass(frozen=True)
class Credentials:
    """Credentials of S3. If `access_key` is None, the usual sources of Amazon's SDK apply, unless `anonymous`."""

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    anonymous: bool = False


@dataclass(frozen=True)
class Session:
    """Credentials, and when to renew them, in seconds of `time.time`; infinity for keys of a declaration."""

    credentials: Credentials
    renew_at: float
    ends_at: float


_sessions: dict[str, Session] = {}
_guard = threading.Lock()
_renewing: dict[str, threading.Lock] = {}


def current(text: str) -> Session:
    """Returns valid credentials of the account with this JSON, one session for the whole process.

    Raises LoginError, and OSError with the words of STS (`jobs.storage.refusal`). While a session is still valid, an
    error of its renewal is not raised.
    """
    with _guard:
        renewing = _renewing.setdefault(text, threading.Lock())
    found = _sessions.get(text)
    if found and time.time() < found.renew_at:
        return found
    with renewing:
        found = _sessions.get(text)
        if found and time.time() < found.renew_at:
            return found
        try:
            _sessions[text] = _begun(msgspec.json.decode(text, type=Account))
        except OSError:
            if found is None or time.time() >= found.ends_at:
                raise
            _sessions[text] = replace(found, renew_at=min(time.time() + _PAUSE_SECONDS, found.ends_at))
        return _sessions[text]


def _begun(account: Account) -> Session:
    if account.source is Source.ANONYMOUS:
        return Session(Credentials(anonymous=True), float("inf"), float("inf"))
    if account.source is Source.KEYS:
        keys = Credentials(account.access_key, account.secret_key, account.session_token or None)
        first = Session(keys, float("inf"), float("inf"))
    elif account.source is Source.WEB_IDENTITY:
        first = _session(_by_web_identity(account))
    else:
        first = _of_provider(account)
    for number, role in enumerate(account.roles):
        if account.source is not Source.WEB_IDENTITY or number:
            request = {**_request(role), **({"ExternalId": role.external_id} if role.external_id else {})}
            first = _session(_assumed(account, first.credentials, "assume_role", request))
    return first


def _session(answer: dict[str, Any]) -> Session:
    found = answer["Credentials"]
    keys = Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
    return _until(keys, found["Expiration"].timestamp())


def _until(keys: Credentials, ends_at: float) -> Session:
    return Session(keys, ends_at - min(_MOST_MARGIN_SECONDS, MARGIN * (ends_at - time.time())), ends_at)


def _of_provider(account: Account) -> Session:
    """Returns the credentials of one source of Amazon's SDK for Python."""
    with _translated(f"credentials of the source {account.source}"):
        import botocore.session

        profile = account.profile or None
        session = botocore.session.Session(profile=profile)
        if profile:
            found = session.get_credentials()
        else:
            resolver = session.get_component("credential_provider")
            found = resolver.get_provider(_PROVIDERS[account.source]).load()
        if found is None:
            raise LoginError(f"there are no credentials of the source {account.source}")
        frozen = found.get_frozen_credentials()
        ends = getattr(found, "_expiry_time", None)
    keys = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
    return _until(keys, ends.timestamp()) if ends else _until(keys, time.time() + _READ_AGAIN_SECONDS)


def _by_web_identity(account: Account) -> dict[str, Any]:
    path = account.token_file or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE") or ""
    try:
        # The file is read anew each time, because Kubernetes replaces it.
        token = Path(path).read_text(encoding="ascii").strip() if path else ""
    except (OSError, UnicodeError) as error:
        raise LoginError(f"the web identity token {path} cannot be read: {error}") from error
    if not token:
        raise LoginError("there is no web identity token: set token_file or AWS_WEB_IDENTITY_TOKEN_FILE")
    request = {**_request(account.roles[0]), "WebIdentityToken": token}
    # The token has the tags.
    request.pop("Tags", None)
    request.pop("TransitiveTagKeys", None)
    return _assumed(account, Credentials(anonymous=True), "assume_role_with_web_identity", request)


def _request(role: Role) -> dict[str, Any]:
    found: dict[str, Any] = {
        "RoleArn": role.arn,
        "RoleSessionName": role.session_name,
        "DurationSeconds": role.seconds,
        "Policy": role.policy,
        "Tags": [{"Key": name, "Value": value} for name, value in role.tags.items()],
        "TransitiveTagKeys": list(role.transitive_tags),
    }
    return {name: value for name, value in found.items() if value}


def _assumed(account: Account, keys: Credentials, call: str, request: dict[str, Any]) -> dict[str, Any]:
    with _translated(f"assuming the role {request['RoleArn']}"):
        import botocore.session
        from botocore import UNSIGNED
        from botocore.config import Config

        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_SILENCE_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            signature_version=UNSIGNED if keys.anonymous else None,
        )
        session = botocore.session.Session()
        region = account.region or session.get_config_variable("region") or "us-east-1"
        client = session.create_client(
            "sts",
            region_name=region,
            endpoint_url=account.sts_endpoint or None,
            verify=account.ca_file or None,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.session_token,
            config=config,
        )
        try:
            answer: dict[str, Any] = getattr(client, call)(**request)
        finally:
            client.close()
    return answer


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turns errors of botocore into an OSError in the words of the refusal that it means."""
    try:
        from botocore import exceptions, parsers
    except ImportError as error:
        raise LoginError(f"{what} needs the extra `aws`: pip install 'groundskeeper[aws]'") from error
    try:
        yield
    except exceptions.ClientError as error:
        answer = error.response.get("Error") or {}
        detail = f"{what}: {answer.get('Code')}: {answer.get('Message')}"[:600]
        raise (LoginError if answer.get("Code") in _LOGIN_CODES else OSError)(detail) from error
    except (exceptions.HTTPClientError, exceptions.ConnectionError, parsers.ResponseParserError) as error:
        # Only the cause says that a name is unknown or a certificate not trusted.
        cause = getattr(error, "kwargs", {}).get("error", "")
        raise OSError(f"{what}: {error}: {cause}"[:600]) from error
    except exceptions.BotoCoreError as error:
        raise LoginError(f"{what}: {error}"[:600]) from error


def main(profile: str) -> None:
    """Prints the credentials of a profile, as Amazon's SDKs expect it of a `credential_process`. A worker's JVM runs
    this, because the SDK for Java that `s3a` has knows no SSO."""
    found = _begun(Account(roots=(), source=Source.PROFILE, profile=profile))
    keys = found.credentials
    answer = {
        "Version": 1,
        "AccessKeyId": keys.access_key,
        "SecretAccessKey": keys.secret_key,
        "SessionToken": keys.session_token,
        "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.ends_at)),
    }
    print(json.dumps({name: value for name, value in answer.items() if value}))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(str(error))
