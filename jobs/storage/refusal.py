"""Finds in the text of an error why a storage refused, whether Java, Arrow or the operating system reports it. Only the
text has the reason: Java's local files, S3A and Spark's tasks raise exceptions whose types mean something else (a file
that may not be written is a `FileNotFoundException`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum, auto


class Refusal(Enum):
    """Why a storage refused. `UNKNOWN` concerns the bucket, container or share, `UNKNOWN_HOST` the name of a server,
    and `KEY` a key for encryption."""

    KEY = auto()
    ROLE = auto()
    CERTIFICATE = auto()
    REGION = auto()
    LOGIN = auto()
    FULL = auto()
    READ_ONLY = auto()
    UNKNOWN = auto()
    UNKNOWN_HOST = auto()
    DENIED = auto()


# The first match counts, so a refusal whose texts may also match others is listed before these.
_WORDS: Mapping[Refusal, re.Pattern[str]] = {
    Refusal.KEY: re.compile(
        # The action of a policy that is missing, and S3's error codes for a key that is disabled or deleted.
        r"\bkms:(?:Decrypt|Encrypt|GenerateDataKey\w*|DescribeKey|ReEncrypt\w*)\b|\bKMS\.\w+"
    ),
    Refusal.ROLE: re.compile(
        # The first words are ours (`aws_session`, `storage_login`), the others those of STS to Hadoop's own provider.
        r"assuming the role \S+: (?:AccessDenied|ValidationError|MalformedPolicyDocument|PackedPolicyTooLarge"
        r"|RegionDisabledException)|not authorized to perform: sts:"
    ),
    Refusal.CERTIFICATE: re.compile(
        # Java, Arrow's curl, Python.
        r"PKIX path|unable to find valid certification path|No subject alternative|CertificateException"
        r"|SSL peer certificate|curlCode: (?:51|60|77)\b|CERTIFICATE_VERIFY_FAILED|certificate verify failed"
    ),
    Refusal.REGION: re.compile(
        r"\b(?:AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraintException)\b"
        r"|AWSRedirectException|try again with endpoint|must be addressed using the specified endpoint"
        r"|HTTP response code 301\b|[Ss]tatus [Cc]ode: 301\b"
    ),
    Refusal.LOGIN: re.compile(
        # Hadoop's client without a ticket (`SaslRpcClient`, `Server`), and a task whose token has expired. The types
        # named here also match files without permission.
        r"Client cannot authenticate via|SIMPLE authentication is not enabled|GSS initiate failed|\bLoginError:"
        r"|SecretManager\$InvalidToken"
        # S3's error codes, Arrow's names of them, and errors of clients without a key.
        r"|\b(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken(?:Exception)?|InvalidToken|TokenRefreshRequired"
        r"|InvalidClientTokenId|UnrecognizedClientException|InvalidIdentityToken|IDPRejectedClaim)\b"
        r"|\b(?:INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|EXPIRED_TOKEN"
        r"|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN)\b"
        r"|NoAuthWithAWSException|NoAwsCredentialsException|[Uu]nable to load (?:AWS )?credentials"
        r"|[Uu]nable to locate credentials"
        # Azure and Google.
        r"|Server failed to authenticate the request|\b(?:AuthenticationFailed|InvalidAuthenticationInfo)\b"
        r"|\binvalid_grant\b|\b401 Unauthorized\b|Error getting access token"
    ),
    Refusal.FULL: re.compile(
        r"No space left on device|Disk quota exceeded|\b(?:DS|NS)QuotaExceededException|QuotaByStorageTypeExceeded"
        r"|\[Errno (?:28|122)\]"
    ),
    Refusal.READ_ONLY: re.compile(
        r"Read-only file system|\[Errno 30\]|ReadOnlyFileSystemException|read-only snapshot|SnapshotAccessControl"
    ),
    Refusal.UNKNOWN: re.compile(
        r"\b(?:NoSuchBucket|NO_SUCH_BUCKET|UnknownStoreException|ContainerNotFound|FilesystemNotFound)\b"
        r"|[Tt]he specified (?:bucket|container|filesystem) does not exist|Bucket \S+ does not exist"
    ),
    Refusal.UNKNOWN_HOST: re.compile(
        r"UnknownHostException|Name or service not known|name resolution|[Cc]ould ?n[o']t resolve host"
        r"|COULDNT_RESOLVE_HOST"
    ),
    Refusal.DENIED: re.compile(
        r"Permission denied|Operation not permitted|\[Errno (?:1|13)\]|AccessControlException"
        r"|\b(?:AccessDenied|ACCESS_DENIED|AccessDeniedException|AllAccessDisabled)\b|[Ss]tatus [Cc]ode: 403"
        r"|HTTP response code 403|\b403 Forbidden\b"
        r"|\b(?:AuthorizationPermissionMismatch|AuthorizationFailure|InsufficientAccountPermissions)\b"
        r"|does not have storage\.\S+ access"
    ),
}
# Java's `File.mkdir` gives no reason.
_NO_FOLDER = re.compile(r"Mkdirs failed to create (?:file:)?(?://)?(/[^\s(]*)?")


def refusal_in(text: str) -> Refusal | None:
    """Returns why the storage refused, by the text of the error and of its causes; None if it was something else."""
    for refusal, words in _WORDS.items():
        if words.search(text):
            return refusal
    if missing := _NO_FOLDER.search(text):
        return _why_no_folder(missing[1] or "")
    return None


def _why_no_folder(path: str) -> Refusal:
    """Asks the local file system why a folder could not be made, if the folder is on this machine."""
    while path not in ("", "/"):
        try:
            found = os.statvfs(path)
        except OSError:
            path = os.path.dirname(path)  # noqa: PTH120 - of a text that may be no path here
            continue
        if found.f_flag & os.ST_RDONLY:
            return Refusal.READ_ONLY
        return Refusal.FULL if found.f_bavail == 0 or found.f_favail == 0 < found.f_files else Refusal.DENIED
    return Refusal.DENIED
