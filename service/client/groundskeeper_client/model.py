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
    """Returns this type of an answer, when msgspec knows it.

    msgspec 0.22 describes a type to itself when it first meets it. A second thread that meets it meanwhile reads what
    is half made, which ends the interpreter; so one thread at a time shows it a new type.
    """
    if kind not in _described:
        with _describing, suppress(msgspec.DecodeError):
            try:
                msgspec.json.decode(b"null", type=kind)
            finally:
                _described.add(kind)
    return kind


def typed(model: type[M], value: object) -> M:
    """Returns a dictionary of an answer as a model, such as a job's result, whose members depend on the kind.

    Raises NoAnswerError if it is not one.
    """
    try:
        return msgspec.convert(value, described(model))
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
