"""Converts the `fs.azure` options of the owner's Spark jobs to an Arrow file system for Azure's Data Lake Storage.

Mirrors Hadoop's `abfs` (3.3.4: `AbfsConfiguration`, `AzureBlobFileSystemStore`). Options that Arrow cannot reproduce
are refused, because a small difference in reading would go unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pyarrow import fs

from jobs.storage.location import AZURE_ACCOUNT
from jobs.storage.store import NotReproducibleError, not_reproduced
from jobs.storage.wrapped_files import WrappedFiles

_PREFIX = "fs.azure."
_KEY, _AUTH = "account.key", "account.auth.type"
_PROVIDER, _TOKENS = "account.oauth.provider.type", "account.oauth2.client.endpoint"
_CLIENT, _SECRET = "account.oauth2.client.id", "account.oauth2.client.secret"
_ENDPOINT, _ALWAYS_TLS = "abfs.endpoint", "always.use.https"
_CLIENT_SECRETS = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
_MACHINES = "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"
# Options that change what is read or how, with the values of each that are harmless (besides being unset).
_NOT_REPRODUCED = {
    "account.keyprovider": ("org.apache.hadoop.fs.azurebfs.services.SimpleKeyProvider",),
    "client-provided-encryption-key": (),
    "delegation.token.provider.type": (),
    "enable.delegation.token": ("false",),
    "identity.transformer.class": (),
    "sas.token.provider.type": (),
}
_READ = (_KEY, _AUTH, _PROVIDER, _TOKENS, _CLIENT, _SECRET, _ENDPOINT, _ALWAYS_TLS)
# A regular expression for `Configuration.getValByRegex`; any of the options may end in the host of an account.
OPTIONS = rf"^fs\.azure\.({'|'.join(map(re.escape, (*_READ, *_NOT_REPRODUCED)))})(\..+)?$"
_TENANT = re.compile(r"https://login\.microsoftonline\.com/([A-Za-z0-9.-]+)/oauth2(?:/v2\.0)?/token")


@dataclass(frozen=True)
class Azure:
    """The access to one storage account.

    `domain` comes after `dfs.` and `blob.`. A `key` is used if there is one, else `client`: with a secret it is an
    application of the `tenant`, without a secret an identity of the machine. `endpoint` is `host:port` of an emulator.
    """

    account: str
    domain: str = "core.windows.net"
    key: str | None = field(default=None, repr=False)
    client: str | None = None
    secret: str | None = field(default=None, repr=False)
    tenant: str | None = None
    endpoint: str | None = None
    tls: bool = True

    def filesystem(self) -> fs.FileSystem:
        """Returns Arrow's file system, one per process. Paths are `container/path`, without any encoding."""
        return _filesystem(self)

    def with_short_timeouts(self) -> Azure:
        """Returns the same access, because Arrow's client of Azure has no limits that could be set."""
        return self


@lru_cache(maxsize=16)
def _filesystem(azure: Azure) -> fs.FileSystem:
    scheme = "https" if azure.tls else "http"
    inner = fs.AzureFileSystem(
        azure.account,
        account_key=azure.key,
        client_id=azure.client,
        client_secret=azure.secret,
        tenant_id=azure.tenant,
        blob_storage_authority=azure.endpoint or f".blob.{azure.domain}",
        dfs_storage_authority=azure.endpoint or f".dfs.{azure.domain}",
        blob_storage_scheme=scheme,
        dfs_storage_scheme=scheme,
    )
    return fs.PyFileSystem(AzureFiles(inner))


def of_hadoop(options: Mapping[str, str], authority: str) -> Azure:
    """Returns the access to `container@account.dfs.domain`. Raises `NotReproducibleError`."""
    match = AZURE_ACCOUNT.fullmatch(authority)
    if match is None:
        raise NotReproducibleError(authority)
    chosen = _of_account(options, authority.partition("@")[2])
    # The message has only names, because some values are secrets.
    reasons = not_reproduced(chosen, _NOT_REPRODUCED, _PREFIX)
    endpoint = chosen.get(_ENDPOINT)
    if endpoint and not re.fullmatch(r"[A-Za-z0-9._-]+:\d{1,5}", endpoint):
        reasons.append(f"{_PREFIX}{_ENDPOINT}")
    credentials, missing = _credentials(chosen)
    if reasons + missing:
        raise NotReproducibleError("; ".join(reasons + missing))
    tls = not endpoint or chosen.get(_ALWAYS_TLS, "true").lower() != "false"
    return Azure(match[2], match[3], endpoint=endpoint, tls=tls, **credentials)


def _of_account(options: Mapping[str, str], host: str) -> dict[str, str]:
    """Returns the options without their prefix; an option of the account overrides the general one."""
    plain = {name.removeprefix("spark.hadoop."): value.strip() for name, value in options.items() if value.strip()}
    known = (*_READ, *_NOT_REPRODUCED)
    found = ((name, plain.get(f"{_PREFIX}{name}.{host}") or plain.get(f"{_PREFIX}{name}")) for name in known)
    return {name: value for name, value in found if value is not None}


def _credentials(chosen: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Returns Arrow's arguments, and the options that are wrong or missing for them."""
    kind = chosen.get(_AUTH, "SharedKey")
    if kind.lower() == "sharedkey":
        wanted, names = {"key": chosen.get(_KEY)}, [_KEY]
    elif kind.lower() != "oauth":
        return {}, [f"{_PREFIX}{_AUTH}"]
    elif chosen.get(_PROVIDER) == _CLIENT_SECRETS:
        tenant = _TENANT.fullmatch(chosen.get(_TOKENS, ""))
        if _TOKENS in chosen and not tenant:
            return {}, [f"{_PREFIX}{_TOKENS}"]
        wanted = {"client": chosen.get(_CLIENT), "secret": chosen.get(_SECRET), "tenant": tenant and tenant[1]}
        names = [_CLIENT, _SECRET, _TOKENS]
    elif chosen.get(_PROVIDER) == _MACHINES:
        # Without an explicit kind Arrow would try several kinds of credentials, and might find those of somebody else.
        wanted, names = {"client": chosen.get(_CLIENT)}, [_CLIENT]
    else:
        return {}, [f"{_PREFIX}{_PROVIDER}"]
    missing = [f"{_PREFIX}{name} is not set" for name, value in zip(names, wanted.values(), strict=True) if not value]
    return {name: value for name, value in wanted.items() if value}, missing


class AzureFiles(WrappedFiles):
    """Shows each folder once in a listing. In an account without a hierarchical namespace a folder is at most an empty
    blob with a mark in its metadata (`hdi_isfolder`). Arrow (26) ignores that mark: it lists the folder as a file, and
    again as a folder if it has files.

    A folder without files still looks like an empty file, because to tell them apart a listing would need one more
    request for each empty file."""

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [
            fs.FileInfo(info.path, fs.FileType.Directory) if self._is_folder(info) else info
            for info in self._inner.get_file_info(list(paths))
        ]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        listed = self._inner.get_file_info(selector)
        folders = {info.path for info in listed if info.type == fs.FileType.Directory}
        return [info for info in listed if info.type == fs.FileType.Directory or info.path not in folders]

    def _is_folder(self, info: fs.FileInfo) -> bool:
        if info.type != fs.FileType.File or info.size:
            return False
        try:
            return bool(self._inner.get_file_info(fs.FileSelector(info.path, allow_not_found=True)))
        except NotADirectoryError:
            # In an account with a hierarchical namespace a listing of a file has the file, which Arrow refuses.
            return False
