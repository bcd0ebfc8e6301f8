"""The errors of files whose row groups cannot be copied as bytes."""

from __future__ import annotations


class NotCopyableError(ValueError):
    """The file's row groups cannot be copied as bytes; their rows may still be readable."""


class EncryptedError(NotCopyableError):
    """The file is encrypted, at least in part (Parquet's modular encryption)."""


class DamagedFooterError(NotCopyableError):
    """The footer contradicts itself, so readers may differ about the file's rows."""
