"""Tests the errors of storages by the texts of their clients, and real refusals of the operating system."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jobs.storage.refusal import Refusal, refusal_in
from tests.support import unwritable

if TYPE_CHECKING:
    from pathlib import Path

_S3 = "com.amazonaws.services.s3.model.AmazonS3Exception"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("java.io.FileNotFoundException: /lake/t/.hoodie/lock (Permission denied)", Refusal.DENIED),
        ("java.io.FileNotFoundException: /lake/t/.hoodie/lock (Operation not permitted)", Refusal.DENIED),
        (
            'AccessControlException: Permission denied: user=spark, access=WRITE, inode="/lake":hdfs:hdfs:drwxr-xr-x',
            Refusal.DENIED,
        ),
        (f"{_S3}: Forbidden (Service: Amazon S3; Status Code: 403; Error Code: 403 Forbidden)", Refusal.DENIED),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", Refusal.DENIED),
        ("This request is not authorized to perform this operation. AuthorizationPermissionMismatch", Refusal.DENIED),
        ("worker@p.iam does not have storage.objects.create access to the Google Cloud Storage object", Refusal.DENIED),
        ("java.io.FileNotFoundException: /snap/t/lock (Read-only file system)", Refusal.READ_ONLY),
        ("SnapshotAccessControlException: Modification on a read-only snapshot is disallowed", Refusal.READ_ONLY),
        ("OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device", Refusal.FULL),
        ("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota of /lake", Refusal.FULL),
        ("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException: The NameSpace quota", Refusal.FULL),
        (f"{_S3}: (Service: Amazon S3; Status Code: 403; Error Code: InvalidAccessKeyId)", Refusal.LOGIN),
        (f"{_S3}: (Service: Amazon S3; Status Code: 400; Error Code: ExpiredToken)", Refusal.LOGIN),
        ("AWS Error SIGNATURE_DOES_NOT_MATCH during PutObject operation", Refusal.LOGIN),
        ("Server failed to authenticate the request. 403", Refusal.LOGIN),
        (
            "AccessControlException: Client cannot authenticate via:[TOKEN, KERBEROS]",
            Refusal.LOGIN,
        ),
        ("UnknownStoreException: `s3a://lkae/t': ... (Status Code: 404; Error Code: NoSuchBucket)", Refusal.UNKNOWN),
        ("java.net.UnknownHostException: namenode.example", Refusal.UNKNOWN_HOST),
        ("java.io.FileNotFoundException: File file:/lake/t/x.parquet does not exist", None),
        ("java.net.ConnectException: Connection refused", None),
        ("HoodieLockException: Unable to acquire lock", None),
        ("java.security.AccessController.doPrivileged(AccessController.java:712)", None),
    ],
)
def test_a_refusal_is_known_by_its_words(text: str, refusal: Refusal | None) -> None:
    assert refusal_in(text) is refusal


_SEEN_BY_OTHERS = """
import sys
from jobs.storage.refusal import refusal_in
from service.lake.storage import open_storage
from service.model.storage_errors import StorageDeniedError
base = sys.argv[1]
for path in ("", ".hoodie"):
    try:
        open_storage(base, {}).names(path)
    except StorageDeniedError as error:
        print(type(error).type, error.detail)
try:
    open(f"{base}/x", "w")
except OSError as error:
    print(refusal_in(str(error)).name)
print(refusal_in(f"java.io.IOException: Mkdirs failed to create file:{base}/dt=1 (exists=false, cwd=file:/)").name)
"""


def test_reading_or_writing_a_folder_without_permissions_is_refused_as_such(base: Path) -> None:
    (base / ".hoodie").mkdir(parents=True)
    base.chmod(0)
    try:
        done = subprocess.run(
            unwritable.powerless(sys.executable, "-c", _SEEN_BY_OTHERS, str(base)),
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        base.chmod(0o700)
    names, hoodie, *refused = done.stdout.splitlines()
    assert names.startswith("storage-access-denied"), done.stdout
    assert hoodie.startswith("storage-access-denied"), done.stdout
    assert refused == ["DENIED", "DENIED"]
