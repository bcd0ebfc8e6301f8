"""Reads Hadoop's configuration from the JVM, for Arrow."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from jobs.errors import JobError, RefusedError
from jobs.hudi.delegation_tokens import token_of
from jobs.hudi.jvm import Jvm, translated
from jobs.hudi.table import HudiTable
from jobs.storage import azure, gcs, hdfs, s3
from jobs.storage.paths import Storage, not_supported, of_hadoop

# `CommonPathCapabilities.FS_ACLS`: Hadoop's `abfs` has access control lists only if there is a hierarchical namespace.
_ACCESS_CONTROL = "fs.capability.paths.acls"
_STORES_OF_ALL = "hadoop.security.credential.provider.path"
_STORES_OF_S3A = "fs.s3a.security.credential.provider.path"


def close_file_system(jvm: Jvm, path: str) -> None:
    """Closes Hadoop's cached file system of this path's bucket, with all its connections; the next use opens a new one.

    Hudi's own wrapper (`HoodieWrapperFileSystem`) is closed too, because it is cached and would keep the closed file
    system.
    """
    scheme = path.partition(":")[0]
    with suppress(JobError, OSError), translated("closing a file system"):
        conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
        conf.set(f"fs.hoodie-{scheme}.impl", "org.apache.hudi.hadoop.fs.HoodieWrapperFileSystem")
        for each in (f"hoodie-{path}", path):
            jvm.java.org.apache.hadoop.fs.Path(each).getFileSystem(conf).close()


def storage_of(table: HudiTable) -> Storage:
    """Returns the storage of the table's files for Arrow.

    Raises `RefusedError` if Arrow cannot reach it as Hadoop does.
    """
    conf = table.jvm.hadoop_conf
    with translated("reading Hadoop's configuration"):
        options = {"fs.defaultFS": str(conf.get("fs.defaultFS", "file:///"))}
        scheme, _, rest = table.base_path.partition("://")
        if scheme == "s3a":
            options |= _s3a_options(table, rest.partition("/")[0])
        elif scheme == "hdfs":
            options |= table.jvm.read(conf.getValByRegex(hdfs.OPTIONS))
        elif scheme == "gs":
            options |= table.jvm.read(conf.getValByRegex(gcs.OPTIONS))
        elif scheme == "abfss":
            options |= table.jvm.read(conf.getValByRegex(azure.OPTIONS))
            _require_atomic_commits(table)
    storage = of_hadoop(table.base_path, options)
    if isinstance(storage.store, hdfs.Hdfs) and storage.store.user is None:
        # Executors have no Kerberos ticket, so the storage gets a delegation token.
        storage = replace(storage, store=replace(storage.store, token=token_of(table)))
    return storage


def _require_atomic_commits(table: HudiTable) -> None:
    """Raises `RefusedError` if readers could see an incomplete commit (`whole_instants`)."""
    path = table.jvm.java.org.apache.hadoop.fs.Path(table.base_path)
    if not path.getFileSystem(table.jvm.hadoop_conf).hasPathCapability(path, _ACCESS_CONTROL):
        detail = f"the storage account of {table.base_path} has no hierarchical namespace"
        hint = "Without one, renames are not known to be atomic. Upgrade the account to a hierarchical namespace."
        raise RefusedError([not_supported(detail, hint)])
    if not table.storage.needCreateTempFile():
        detail = f"Hudi does not complete an instant by a rename in {table.base_path}"
        raise RefusedError([not_supported(detail, "Let the worker run with Hudi 1.2.0.")])


def _s3a_options(table: HudiTable, bucket: str) -> dict[str, str]:
    conf = table.jvm.hadoop_conf
    names = "|".join(re.escape(name) for name in s3.OPTIONS)
    pattern = rf"^fs\.s3a\.(bucket\.{re.escape(bucket)}\.)?({names})$"
    options: dict[str, str] = table.jvm.read(conf.getValByRegex(pattern))
    return options | _from_credential_stores(table, bucket)


def _from_credential_stores(table: HudiTable, bucket: str) -> dict[str, str]:
    """Returns secrets from Hadoop's key stores (`S3AUtils.lookupPassword`)."""
    java: Any = table.jvm.java
    conf = table.jvm.hadoop_conf
    of_bucket = f"fs.s3a.bucket.{bucket}.security.credential.provider.path"
    stores = [conf.get(name) for name in (of_bucket, _STORES_OF_S3A, _STORES_OF_ALL)]
    if not any(stores):
        return {}
    conf = java.org.apache.hadoop.conf.Configuration(conf)
    conf.set(_STORES_OF_ALL, ",".join(paths for paths in (stores[0] or stores[1], stores[2]) if paths))
    names = [f"fs.s3a.{prefix}{name}" for prefix in ("", f"bucket.{bucket}.") for name in s3.SECRETS]
    found = {name: conf.getPassword(name) for name in names}
    return {name: str(java.java.lang.String.valueOf(value)) for name, value in found.items() if value is not None}
