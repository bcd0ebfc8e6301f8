"""The codes of errors of AWS Glue, by what they mean."""

from __future__ import annotations

GONE = "EntityNotFoundException"
LOGIN = frozenset(
    {"ExpiredTokenException", "IncompleteSignature", "InvalidClientTokenId", "InvalidSignatureException"}
    | {"MissingAuthenticationTokenException", "SignatureDoesNotMatch", "UnrecognizedClientException"}
)
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "GlueEncryptionException"})
THROTTLED = frozenset({"RequestLimitExceeded", "ThrottledException", "Throttling", "ThrottlingException"})
AWAY = frozenset({"InternalServiceException", "OperationTimeoutException", "ServiceUnavailable"})
CHANGED_MEANWHILE = frozenset({"ConcurrentModificationException", "VersionMismatchException"})
