"""Encryption of secrets that must be read back, such as a key that signs messages.

The cipher (Fernet: AES-128-CBC and HMAC-SHA256) has its key outside the database, so that a dump or a backup of the
database alone does not reveal the secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from service.access.errors import SecretKeyMissingError, SecretUnreadableError
from service.model import private_file
from service.model.errors import SettingsError


class SecretCipher:
    """Encrypts with the first key and decrypts with any of them, so that a new key can be added in front.

    A service without secrets needs no keys. Without keys, encryption and decryption fail.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises SettingsError for an invalid key."""
        self._keys = keys
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None
            # The cache helps because the same few secrets sign all messages.
            self.open = lru_cache(maxsize=1024)(self._open)
        except ValueError as error:
            raise SettingsError(
                "A secret key must be 32 random bytes in URL-safe base64.", hint="See GROUNDSKEEPER_SECRET_KEYS."
            ) from error

    @classmethod
    def fresh(cls) -> SecretCipher:
        return cls([Fernet.generate_key().decode()])

    def __reduce__(self) -> tuple[type[SecretCipher], tuple[Sequence[str]]]:
        # Pickling is allowed, because a child process of the service gets the keys over a pipe.
        return SecretCipher, (self._keys,)

    def seal(self, text: str) -> str:
        """Returns the encrypted text. Raises SecretKeyMissingError."""
        if self._fernet is None:
            raise SecretKeyMissingError
        return self._fernet.encrypt(text.encode()).decode()

    def _open(self, sealed: str) -> str:
        """Returns the decrypted text. Raises SecretUnreadableError when it was encrypted with another key."""
        if self._fernet is None:
            raise SecretUnreadableError
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as error:
            raise SecretUnreadableError from error


def key_file(database: Path) -> Path:
    """Returns the key file of an SQLite database, which is used unless the settings have keys."""
    return database.with_suffix(".key")


def key_from(path: Path) -> str:
    """Reads the key from a file that only its owner may read, and creates the file if it is missing. Safe for
    concurrent processes.

    Raises SettingsError when the file can be neither read nor created.
    """
    try:
        private_file.create(path, Fernet.generate_key() + b"\n")
        private_file.tighten(path)
        return path.read_text().strip()
    except OSError as error:
        raise SettingsError(
            f"The key file {path} cannot be used: {error.strerror}.", hint="Or set GROUNDSKEEPER_SECRET_KEYS."
        ) from error
