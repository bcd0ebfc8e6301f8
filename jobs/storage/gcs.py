"""Converts the `gs` options of the owner's Spark jobs to an Arrow file system for Google Cloud Storage.

Mirrors gcs-connector hadoop3-2.2 (`GoogleHadoopFileSystemConfiguration`, `HadoopCredentialConfiguration`). Options that
Arrow cannot reproduce are refused, because a small difference in reading or writing would go unnoticed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache

from pyarrow import fs

from jobs.storage.store import NotReproducibleError, not_reproduced
from jobs.storage.wrapped_files import WrappedFiles

# The connector reads options of credentials with both prefixes.
_PREFIXES = ("fs.gs.", "google.cloud.")
_ENABLED, _ANONYMOUS = "auth.service.account.enable", "auth.null.enable"
_KEY_FILE, _ENDPOINT = "auth.service.account.json.keyfile", "storage.root.url"
_AS = "auth.impersonation.service.account"
# Options that change the written data or the access to the storage in ways that Arrow does not support, with the values
# of each that are harmless (besides being unset).
_NOT_REPRODUCED = {
    "auth.access.token.provider.impl": (),
    "auth.client.id": (),
    "auth.refresh.token": (),
    "auth.service.account.keyfile": (),
    "auth.service.account.private.key": (),
    "auth.type": (),
    "encryption.algorithm": (),
    "impl": ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",),
    "proxy.address": (),
    "requester.pays.mode": ("DISABLED",),
    "storage.service.path": ("storage/v1/",),
}
# A regular expression for `Configuration.getValByRegex`.
OPTIONS = (
    rf"^(fs\.gs|google\.cloud)\.("
    rf"{'|'.join(map(re.escape, (*_NOT_REPRODUCED, _ENABLED, _ANONYMOUS, _KEY_FILE, _AS, _ENDPOINT)))})$"
)
_CENTRAL = "https://storage.googleapis.com/"


@dataclass(frozen=True)
class Gcs:
    """The access to Google Cloud Storage; it can be sent to Spark's tasks.

    `key_file` must be on each machine; None for the credentials of the environment or of the machine. `endpoint` is
    `host[:port]`, None for Google's own. `seconds` limits the repetition of a request.
    `service_account` is impersonated.
    """

    key_file: str | None = None
    anonymous: bool = False
    endpoint: str | None = None
    tls: bool = True
    seconds: int = 300
    service_account: str | None = None

    def filesystem(self) -> fs.FileSystem:
        """Returns Arrow's file system, one per process. Paths are `bucket/key`, without any encoding."""
        return _filesystem(self)

    def with_short_timeouts(self) -> Gcs:
        return replace(self, seconds=10)


@lru_cache(maxsize=16)
def _filesystem(gcs: Gcs) -> fs.FileSystem:
    if gcs.key_file:
        if not os.access(gcs.key_file, os.R_OK):
            # Without this check Arrow would ask the machine for credentials, and find those of somebody else.
            raise PermissionError(f"The key file {gcs.key_file} cannot be read on this machine")
        # Arrow takes a key file from the environment only, and reads it at the first request.
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = gcs.key_file
    inner = fs.GcsFileSystem(
        anonymous=gcs.anonymous,
        target_service_account=gcs.service_account,
        scheme="https" if gcs.tls else "http",
        endpoint_override=gcs.endpoint,
        retry_time_limit=timedelta(seconds=gcs.seconds),
    )
    return fs.PyFileSystem(GcsFiles(inner))


def of_hadoop(options: Mapping[str, str], bucket: str) -> Gcs:  # noqa: ARG001 - one access for all buckets
    """Returns the access by the connector's options. Raises `NotReproducibleError`."""
    chosen: dict[str, str] = {}
    for prefix in reversed(_PREFIXES):
        for name, value in options.items():
            plain = name.removeprefix("spark.hadoop.")
            if plain.startswith(prefix) and value.strip():
                chosen[plain.removeprefix(prefix)] = value.strip()
    # The message has only names, because some values are secrets.
    reasons = not_reproduced(chosen, _NOT_REPRODUCED, "fs.gs.")
    anonymous = chosen.get(_ANONYMOUS, "false").lower() == "true"
    if chosen.get(_ENABLED, "true").lower() == "false" and not anonymous:
        reasons.append(f"fs.gs.{_ENABLED} = false")
    endpoint = re.fullmatch(r"(https?)://([A-Za-z0-9._-]+(?::\d{1,5})?)/?", chosen.get(_ENDPOINT, _CENTRAL))
    if endpoint is None:
        reasons.append(f"fs.gs.{_ENDPOINT}")
    if reasons or endpoint is None:
        raise NotReproducibleError("; ".join(reasons))
    is_googles = endpoint[0].rstrip("/") == _CENTRAL.rstrip("/")
    return Gcs(
        key_file=None if anonymous else chosen.get(_KEY_FILE),
        anonymous=anonymous,
        endpoint=None if is_googles else endpoint[2],
        tls=endpoint[1] == "https",
        service_account=None if anonymous else chosen.get(_AS),
    )


class GcsFiles(WrappedFiles):
    """Shows folders in listings as well. Arrow (26) lists objects only, so it shows a folder only if there is an object
    for it, which Google's connector for Hadoop creates now and then."""

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Costs a request for each thousand objects at any depth, because the folders are found only by the names of
        the objects."""
        base = selector.base_dir.rstrip("/")
        start = len(base) + 1
        everything = self._inner.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
        found: dict[str, fs.FileInfo] = {}
        for info in everything:
            parts = info.path[start:].split("/")
            for depth in range(1, len(parts)):
                folder = f"{base}/{'/'.join(parts[:depth])}"
                found.setdefault(folder, fs.FileInfo(folder, fs.FileType.Directory))
            found[info.path] = info
        is_missing = not everything and self._inner.get_file_info(base).type != fs.FileType.Directory
        if is_missing and not selector.allow_not_found:
            raise FileNotFoundError(base)
        return [info for path, info in found.items() if selector.recursive or "/" not in path[start:]]
