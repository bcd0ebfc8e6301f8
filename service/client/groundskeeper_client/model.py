"""The bases of the generated models."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import msgspec

from groundskeeper_client.errors import NoAnswerError


class Model(msgspec.Struct, frozen=True):
    """An object of the API. A member that is `UNSET` is not sent. Members that a later service adds are ignored."""


M = TypeVar("M", bound=Model)


def typed(model: type[M], value: object) -> M:
    """Returns a dictionary of an answer as a model, such as a job's result, whose members depend on the kind.

    Raises NoAnswerError if it is not one.
    """
    try:
        return msgspec.convert(value, model)
    except msgspec.ValidationError as error:
        raise NoAnswerError(f"This is no {model.__name__}: {error}") from error


class Word(StrEnum):
    """One of a set of words. A later service may know more: an unknown word is kept as it is."""

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
