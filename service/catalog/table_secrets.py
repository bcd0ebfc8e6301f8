"""Secrets among the options of tables.

Only the secrets are encrypted, so that lists, polls and decisions work without the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.redaction import MASK, is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.access.secret_cipher import SecretCipher

_PREFIX = "groundskeeper-sealed:"
"""Marks an encrypted value. If a user sends a value with this prefix, the value is encrypted too, so the mark is never
wrong."""


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """Returns stored options with a mask in place of each secret."""
    return {key: MASK if _must_be_sealed(key, value) else value for key, value in options.items()}


def sealed(cipher: SecretCipher, sent: Mapping[str, str], stored: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns options to be stored, with secrets encrypted. A mask in `sent` stands for the value in `stored`, which is
    kept even if no key can decrypt it.

    Raises SecretKeyMissingError.
    """
    stored = stored or {}

    def value(key: str) -> str:
        if sent[key] == MASK and key in stored:
            return stored[key] if stored[key].startswith(_PREFIX) else _sealed(cipher, key, stored[key])
        return _sealed(cipher, key, sent[key])

    return {key: value(key) for key in sent}


def without_masks(sent: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Returns the sent options, without those whose masks stand for stored values."""
    return {key: value for key, value in sent.items() if value != MASK or key not in stored}


def opened(cipher: SecretCipher, stored: Mapping[str, str]) -> dict[str, str]:
    """Returns the options with their secrets decrypted. Raises SecretUnreadableError."""
    return {
        key: cipher.open(value.removeprefix(_PREFIX)) if value.startswith(_PREFIX) else value
        for key, value in stored.items()
    }


def is_sealed(options: Mapping[str, str]) -> bool:
    """Returns whether all secrets are encrypted. Earlier versions stored secrets in plain text."""
    return all(value.startswith(_PREFIX) for key, value in options.items() if is_secret(key, value))


def _must_be_sealed(key: str, value: str) -> bool:
    return value.startswith(_PREFIX) or is_secret(key, value)


def _sealed(cipher: SecretCipher, key: str, value: str) -> str:
    return _PREFIX + cipher.seal(value) if _must_be_sealed(key, value) else value
