"""A log-in between its beginning here and the browser's return from the provider. The browser keeps the attempt,
encrypted, so that nobody can fill the database by beginning log-ins."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from service.access.errors import LoginExpiredError, SecretUnreadableError
from service.access.secret_cipher import SecretCipher

LIFETIME = timedelta(minutes=10)
_LONGEST = 8192


@dataclass(frozen=True)
class LoginAttempt:
    """A log-in that has begun. `page` is the page of the dashboard to show afterwards: `#/...`, or empty. `began_at` is
    in seconds since 1970."""

    state: str
    nonce: str
    verifier: str
    page: str
    began_at: float

    @classmethod
    def new(cls, page: str, now: datetime) -> LoginAttempt:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, page, now.timestamp())

    @property
    def challenge(self) -> str:
        """The code challenge of the method S256 (RFC 7636)."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")

    @property
    def session_id(self) -> str:
        """The id of the session that this log-in opens. The id is derived from the state, so that one log-in opens only
        one session."""
        return hashlib.sha256(self.state.encode()).hexdigest()[:32]

    def sealed(self, cipher: SecretCipher) -> str:
        return cipher.seal(json.dumps(asdict(self)))

    @classmethod
    def opened(cls, text: str | None, state: str, cipher: SecretCipher, now: datetime) -> LoginAttempt:
        """Returns the log-in of this browser. Raises LoginExpiredError."""
        if not text or len(text) > _LONGEST:
            raise LoginExpiredError("This browser has begun no log-in, or its log-in has ended.")
        try:
            found = cls(**json.loads(cipher.open(text)))
        except (SecretUnreadableError, ValueError, TypeError) as error:
            raise LoginExpiredError("This browser has begun no log-in.") from error
        if not hmac.compare_digest(found.state.encode(), state.encode()):
            raise LoginExpiredError("The provider's answer belongs to another log-in, perhaps of another tab.")
        if not 0 <= now.timestamp() - found.began_at < LIFETIME.total_seconds():
            raise LoginExpiredError("The log-in took longer than 10 min.")
        return found
