"""The bases of the generated models."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Model(msgspec.Struct, frozen=True):
    """An object of the API. A member that is `UNSET` is not sent. Members that a later service adds are ignored."""


class Word(StrEnum):
    """One of a set of words. A later service may know more: an unknown word is kept as it is."""

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
