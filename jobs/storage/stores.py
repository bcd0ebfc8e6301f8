"""Finds the store of a base path by its scheme."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jobs.storage import accounts, azure, gcs, hdfs, s3
from jobs.storage.store import NotReproducibleError, Store

_OF_HADOOP: dict[str, Callable[[Mapping[str, str], str], Store]] = {
    "s3a": s3.of_hadoop,
    "hdfs": hdfs.of_hadoop,
    "gs": gcs.of_hadoop,
    "abfss": azure.of_hadoop,
}
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]+)(.*)", re.DOTALL)

REWRITABLE = ("file", *_OF_HADOOP)


def store_of(location: str, options: Mapping[str, str]) -> Store:
    """Returns the access to the bucket or cluster of a location that is not on a local disk.

    `options` are Hadoop's, with or without `spark.hadoop.`. Raises NotReproducibleError, also for other schemes.
    """
    match = _REMOTE.fullmatch(location)
    if match is None or (scheme := match[1].lower()) not in _OF_HADOOP:
        raise NotReproducibleError(location)
    return _OF_HADOOP[scheme](_of_account(location, options, match[2]), match[2])


def _of_account(location: str, options: Mapping[str, str], bucket: str) -> Mapping[str, str]:
    """Returns the options with the account that is declared for this location alone, if the bucket has any."""
    name = f"fs.s3a.bucket.{bucket}.{accounts.OPTION}"
    found = accounts.of_bucket(options[name]) if options.get(name) else None
    return options if found is None else {**options, name: accounts.encoded([accounts.chosen(location, found)])}


def path_of(location: str) -> str:
    """Converts Hadoop's absolute path to Arrow's: `file:/x` and `file:///x` to `/x`, `s3a://bucket/x` to `bucket/x`,
    `hdfs://cluster/x` to `/x`, `abfss://container@host/x` to `container/x`. Percent signs are literal."""
    scheme, colon, rest = location.partition(":")
    if location.startswith("/") or not colon:
        return location.rstrip("/") or "/"
    if scheme.lower() == "file":
        return "/" + rest.strip("/")
    if scheme.lower() == "hdfs":
        rest = rest.removeprefix("//").partition("/")[2]
        return "/" + re.sub("/+", "/", rest.strip("/"))
    if scheme.lower() == "abfss":
        authority, slash, path = rest.strip("/").partition("/")
        rest = authority.partition("@")[0] + slash + path
    return re.sub("/+", "/", rest.strip("/"))
