"""Accounts of object storage as a company declares them: where the first credentials come from, and which roles are
assumed with them. Hadoop's options for the workers' JVM and the access of Arrow both follow from one declaration.

The options of `s3a` name a credential provider of ours (`jobs.hudi.storage_login`), because those of hadoop-aws 3.3.4
know neither chains of roles nor external ids and tags. All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from jobs.contract import converted
from jobs.redaction import MASK
from jobs.storage.location import AZURE_ACCOUNT, LocationError, canonical, is_below
from jobs.storage.store import NotReproducibleError

PROVIDER = "groundskeeper.StorageLogin"
"""The Java class that `s3a` asks for credentials."""
OPTION = "groundskeeper.credentials"
"""The option of a bucket, without `fs.s3a.`, with the JSON list of its accounts. Its name says that it is a secret."""
MARGIN = 0.25
"""The last share of a session's time in which the session is renewed, but at most its last 15 minutes. Python and the
Java class both use it."""
# The limits of STS (`AssumeRole`).
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}", re.ASCII)
_SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_SECONDS = range(900, 43_201)
_MOST_ACCOUNTS, _MOST_ROOTS, _MOST_ROLES, _MOST_TAGS = 200, 50, 5, 50
_URL = re.compile(r"https?://[A-Za-z0-9._-]+(:\d{1,5})?/?", re.ASCII)
_AZURES = "org.apache.hadoop.fs.azurebfs.oauth2."


class Source(StrEnum):
    """Where the first credentials come from. `machine` is EC2's metadata, a managed identity of Azure or Google's
    metadata server; `container` is ECS; `web_identity` a token file as in EKS; `profile` one of `~/.aws`, also by SSO.
    """

    KEYS = "keys"
    ENVIRONMENT = "environment"
    MACHINE = "machine"
    CONTAINER = "container"
    WEB_IDENTITY = "web_identity"
    PROFILE = "profile"
    ANONYMOUS = "anonymous"
    APPLICATION = "application"
    KEY_FILE = "key_file"


# Members that a source needs, and those that it may have, by the scheme of the roots.
_MEMBERS: Mapping[str, Mapping[Source, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "s3a": {
        Source.KEYS: (("access_key", "secret_key"), ("session_token",)),
        Source.ENVIRONMENT: ((), ()),
        Source.MACHINE: ((), ()),
        Source.CONTAINER: ((), ()),
        Source.WEB_IDENTITY: (("roles",), ("token_file",)),
        Source.PROFILE: (("profile",), ()),
        Source.ANONYMOUS: ((), ()),
    },
    "gs": {
        Source.MACHINE: ((), ("service_account",)),
        Source.KEY_FILE: (("key_file",), ("service_account",)),
        Source.ANONYMOUS: ((), ()),
    },
    "abfss": {
        Source.KEYS: (("secret_key",), ()),
        Source.MACHINE: (("client_id",), ()),
        Source.APPLICATION: (("client_id", "client_secret", "tenant"), ()),
    },
}
_OF_BUCKET = ("endpoint", "region", "path_style", "ca_file")
_OF_S3 = (*_OF_BUCKET, "roles", "sts_endpoint")


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role to assume, as in a request of STS. `seconds` is how long each session lasts."""

    arn: str
    external_id: str = ""
    session_name: str = "groundskeeper"
    seconds: int = 3600
    tags: dict[str, str] = {}
    transitive_tags: tuple[str, ...] = ()
    policy: str = ""


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The access to all that lies below `roots`, by the credentials of `source` and then by each of `roles` in turn.

    `endpoint`, `region`, `path_style` and `ca_file` (PEM, beside the authorities of the machine) belong to the bucket.
    """

    roots: tuple[str, ...]
    source: Source
    roles: tuple[Role, ...] = ()
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    profile: str = ""
    token_file: str = ""
    key_file: str = ""
    service_account: str = ""
    client_id: str = ""
    client_secret: str = ""
    tenant: str = ""
    endpoint: str = ""
    sts_endpoint: str = ""
    region: str = ""
    path_style: bool = False
    ca_file: str = ""

    def __repr__(self) -> str:
        return f"Account({self.shown()})"

    def shown(self) -> dict[str, Any]:
        """Returns the declaration with secrets masked."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("access_key", "secret_key", "session_token", "client_secret"):
            if name in found:
                found[name] = MASK
        for role in found.get("roles", ()):
            role |= {name: MASK for name in ("external_id", "policy") if role[name]}
        return found

    @property
    def scheme(self) -> str:
        return self.roots[0].partition(":")[0]

    def buckets(self) -> list[str]:
        return sorted({root.partition("://")[2].partition("/")[0] for root in self.roots})


def parse(declared: object) -> tuple[Account, ...]:
    """Returns the accounts of a JSON list, with canonical roots. Raises ValueError, whose text has no secret."""
    if not isinstance(declared, list | tuple) or len(declared) > _MOST_ACCOUNTS:
        raise ValueError(f"must be a list of at most {_MOST_ACCOUNTS} accounts")
    accounts = tuple(_parsed(each, number) for number, each in enumerate(declared))
    if wrong := next(_conflicts(accounts), None):
        raise ValueError(wrong)
    return accounts


def options(accounts: Iterable[Account]) -> dict[str, str]:
    """Returns Hadoop's options for these accounts."""
    found: dict[str, str] = {}
    of_buckets: dict[str, list[Account]] = {}
    for account in accounts:
        if account.scheme == "gs":
            found |= _of_gs(account)
        elif account.scheme == "abfss":
            found |= _of_azure(account)
        else:
            for bucket in account.buckets():
                of_buckets.setdefault(bucket, []).append(account)
    for bucket, found_there in of_buckets.items():
        first = found_there[0]
        own = {
            "aws.credentials.provider": PROVIDER,
            OPTION: encoded(found_there),
            "endpoint": first.endpoint,
            "endpoint.region": first.region,
            "path.style.access": "true" if first.path_style else "",
        }
        found |= {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items() if value}
    return found


def encoded(accounts: list[Account]) -> str:
    """Returns the value of a bucket's option."""
    return msgspec.json.encode(accounts).decode()


def of_bucket(text: str) -> list[Account]:
    """Returns the accounts of a bucket's option."""
    return msgspec.json.decode(text, type=list[Account])


def chosen(location: str, found: Iterable[Account]) -> Account:
    """Returns the account whose root is the nearest one above a canonical location. Raises NotReproducibleError."""
    above = [(len(root), account) for account in found for root in account.roots if is_below(location, [root])]
    if not above:
        raise NotReproducibleError(f"no root of GROUNDSKEEPER_STORAGE_ACCOUNTS is above {location}")
    return max(above, key=lambda each: each[0])[1]


def reason_against(location: str, found: list[Account]) -> str | None:
    """Returns why one JVM cannot reach a location as its account: `s3a` has one login for a whole bucket."""
    bucket = location.partition("://")[2].partition("/")[0]
    if len(found) > 1:
        return f"the bucket {bucket} has {len(found)} accounts in the worker's settings"
    if found and not is_below(location, found[0].roots):
        return f"the account of the bucket {bucket} in the worker's settings is for {', '.join(found[0].roots)}"
    return None


def _parsed(declared: object, number: int) -> Account:
    try:
        account = converted(declared, Account)
    except msgspec.ValidationError as error:
        raise ValueError(f"[{number}]: {error}") from error
    if not 0 < len(account.roots) <= _MOST_ROOTS:
        raise ValueError(f"[{number}]: roots must have 1 to {_MOST_ROOTS} members")
    try:
        account = msgspec.structs.replace(account, roots=tuple(map(canonical, account.roots)))
    except LocationError as error:
        raise ValueError(f"[{number}]: {error}") from error
    if wrong := next(_faults(account), None):
        raise ValueError(f"[{number}] ({account.roots[0]}): {wrong}")
    return account


def _faults(account: Account) -> Iterator[str]:
    schemes = {root.partition(":")[0] for root in account.roots}
    if len(schemes) > 1 or account.scheme not in _MEMBERS:
        yield f"roots must all be on one of {', '.join(f'{scheme}:' for scheme in _MEMBERS)}"
        return
    sources = _MEMBERS[account.scheme]
    if account.source not in sources:
        yield f"source {account.source} is not possible on {account.scheme}:, only {', '.join(sources)}"
        return
    given = {name for name, value in msgspec.structs.asdict(account).items() if value} - {"roots", "source"}
    needed, possible = sources[account.source]
    if missing := sorted(set(needed) - given):
        yield f"source {account.source} needs {', '.join(missing)}"
    if odd := sorted(given - {*needed, *possible, *(_OF_S3 if account.scheme == "s3a" else ())}):
        yield f"source {account.source} on {account.scheme}: does not use {', '.join(odd)}"
    if account.source is Source.ANONYMOUS and account.roles:
        yield "an anonymous caller cannot assume roles"
    for name in ("endpoint", "sts_endpoint"):
        if (url := getattr(account, name)) and not _URL.fullmatch(url):
            yield f"{name} must be http(s)://host[:port]"
    if len(account.roles) > _MOST_ROLES:
        yield f"roles must have at most {_MOST_ROLES} members"
    for role in account.roles:
        yield from _faults_of(role)


def _faults_of(role: Role) -> Iterator[str]:
    if not _ROLE.fullmatch(role.arn):
        yield "arn of a role must be arn:aws:iam::ACCOUNT:role/NAME"
    if role.external_id and not _EXTERNAL_ID.fullmatch(role.external_id):
        yield f"external_id of {role.arn} has characters that STS refuses"
    if not _SESSION_NAME.fullmatch(role.session_name):
        yield f"session_name of {role.arn} must have 2 to 64 letters, digits or any of +=,.@-"
    if role.seconds not in _SECONDS:
        yield f"seconds of {role.arn} must be {_SECONDS[0]} to {_SECONDS[-1]}"
    if len(role.tags) > _MOST_TAGS or not set(role.transitive_tags) <= role.tags.keys():
        yield f"tags of {role.arn} must be at most {_MOST_TAGS}, and transitive_tags must be among them"


def _conflicts(accounts: tuple[Account, ...]) -> Iterator[str]:
    roots = [root for account in accounts for root in account.roots]
    yield from (f"{root} is a root of two accounts" for root in roots if roots.count(root) > 1)
    facts: dict[str, tuple[object, ...]] = {}
    for account in accounts:
        if account.scheme == "s3a":
            settings = tuple(getattr(account, name) for name in _OF_BUCKET)
            for bucket in account.buckets():
                if facts.setdefault(bucket, settings) != settings:
                    yield f"accounts of the bucket {bucket} differ in one of {', '.join(_OF_BUCKET)}"
    if len({msgspec.structs.replace(each, roots=()) for each in accounts if each.scheme == "gs"}) > 1:
        yield "Google's connector for Hadoop has one login for all buckets, and accounts on gs: differ"
    hosts = [host for account in accounts if account.scheme == "abfss" for host in _hosts(account)]
    yield from (f"{host} has two accounts" for host in hosts if hosts.count(host) > 1)


def _of_gs(account: Account) -> dict[str, str]:
    found = {
        "fs.gs.auth.service.account.json.keyfile": account.key_file,
        "fs.gs.auth.impersonation.service.account": account.service_account,
        "fs.gs.auth.null.enable": "true" if account.source is Source.ANONYMOUS else "",
        "fs.gs.auth.service.account.enable": "false" if account.source is Source.ANONYMOUS else "",
    }
    return {name: value for name, value in found.items() if value}


def _of_azure(account: Account) -> dict[str, str]:
    if account.source is Source.KEYS:
        login = {"account.auth.type": "SharedKey", "account.key": account.secret_key}
    elif account.source is Source.MACHINE:
        login = {
            "account.auth.type": "OAuth",
            "account.oauth.provider.type": f"{_AZURES}MsiTokenProvider",
            "account.oauth2.client.id": account.client_id,
        }
    else:
        login = {
            "account.auth.type": "OAuth",
            "account.oauth.provider.type": f"{_AZURES}ClientCredsTokenProvider",
            "account.oauth2.client.endpoint": f"https://login.microsoftonline.com/{account.tenant}/oauth2/token",
            "account.oauth2.client.id": account.client_id,
            "account.oauth2.client.secret": account.client_secret,
        }
    return {f"fs.azure.{name}.{host}": value for host in _hosts(account) for name, value in login.items()}


def _hosts(account: Account) -> list[str]:
    matches = (AZURE_ACCOUNT.fullmatch(each) for each in account.buckets())
    return sorted({f"{found[2]}.dfs.{found[3]}" for found in matches if found})
