"""The bases of the generated models."""

from __future__ import annotations

import threading
from contextlib import suppress
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from groundskeeper_client.errors import NoAnswerError


class Model(msgspec.Struct, frozen=True):
    """An object of the API. A member that is `UNSET` is not sent. Members that a later service adds are ignored."""


M = TypeVar("M", bound=Model)
Known = TypeVar("Known")

_described: set[Any] = set()
_describing = threading.Lock()


def described(kind: type[Known]) -> type[Known]:
    """Lets msgspec prepare a type of answers, and returns the type. msgspec 0.22 prepares a type at its first use. If a
    second thread uses the type meanwhile, the interpreter crashes. So only one thread at a time prepares new types."""
    if kind not in _described:
        with _describing, suppress(msgspec.DecodeError):
            try:
                msgspec.json.decode(b"null", type=kind)
            finally:
                _described.add(kind)
    return kind


def typed(model: type[M], value: object) -> M:
    """Converts a dictionary of an answer into a model. An example is a job's result, whose members depend on the kind
    of job. Raises NoAnswerError if the dictionary does not fit the model."""
    try:
        return msgspec.convert(value, described(model))
    except msgspec.ValidationError as error:
        raise NoAnswerError(f"This is no {model.__name__}: {error}") from error


class Word(StrEnum):
    """One of a set of words. A later version of the service may have more words, so an unknown word is kept
    unchanged."""

    @classmethod
    def _missing_(cls, value: object) -> Word | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
