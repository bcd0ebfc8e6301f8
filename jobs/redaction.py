"""Recognition of secrets, by the name of an option and by the shape of a value, and their removal from logs and errors.

The module needs the standard library only. If in doubt, something is a secret.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "******"

# A shorter secret would also be found inside other words.
_RECOGNIZABLE = 8

_SECRET_NAME = re.compile(
    # Spark's options with these two names say when delegation tokens are renewed, and by what.
    r"(?<!spark\.security\.)(?<!spark\.kerberos\.renewal\.)credential"
    r"|passw|passphrase|pwd|secret|token|signature|jaas|connection[._-]?string|user[._-]?info"
    r"|(access|account|api|auth|encryption|master|private|sas|session|shared|storage)[._-]?key|session[._-]?id"
    r"|(?<![a-z0-9])(authorization|cookie|pass|pw|sas|sig)(?![a-z0-9])",
    re.IGNORECASE,
)
# `session.token.timeout_ms = 30000` is no secret, and is useful to see. A password may be a number.
_DURATION_NAME = re.compile(r"timeout|_ms$|(?<![a-z])(ms|millis|seconds|interval|expiry)$", re.IGNORECASE)

# Each repetition is bounded, so that the time grows with the length of the text only.
_SHAPES = (
    # `scheme://user:password@host`. Passwords may contain a slash; a port before a path is no password.
    (
        re.compile(r"(://[^\s/?#:@]{0,256}:)(?:[^\s/?#]{1,256}@|(?!\d{1,5}(?!\w))[^\s@]{1,256}@)"),
        rf"\1{MASK}@",
    ),
    # `jdbc:oracle:thin:user/password@host`
    (re.compile(r"(jdbc:oracle:\w{1,16}:[^\s/@]{0,256}/)[^\s@]{1,256}@", re.IGNORECASE), rf"\1{MASK}@"),
    (re.compile(r"\b(Bearer|Basic|Negotiate)(\s{1,4})[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1\2{MASK}"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),  # a JSON web token
    (re.compile(r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,32}PRIVATE KEY-----)?"), MASK),
)
# The beginning of `name=value`, `"name": "value"` or `name:value`. After a colon and a space, plain words
# follow more often than secrets.
_NAME = re.compile(
    r"""(?<![\w.-])([\w.-]{1,128})["']?\s{0,4}(?:=\s{0,4}|:(?=["'\S])|:\s{1,4}(?=["']|[^\s\d]{0,64}\d))"""
)
_VALUE = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|["']?[^\s"']+""")


def is_secret(name: str, value: str) -> bool:
    """Returns whether the value of an option must not be shown."""
    return _is_secret_pair(name, value) or redacted(value) != value


def redacted(text: str, known: Iterable[str] = ()) -> str:
    """Returns the text with a mask in place of each secret. `known` are secrets that have no shape of their own."""
    for secret in known:
        text = text.replace(secret, MASK)
    for shape, shown in _SHAPES:
        text = shape.sub(shown, text)
    kept, end = [], 0
    for name in _NAME.finditer(text):
        # The name is checked before the value is searched, because the rest of the text may be one value.
        if name.start() < end or not _SECRET_NAME.search(name[1]):
            continue
        value = _VALUE.match(text, name.end())
        if value and _is_secret_pair(name[1], value[0].strip("\"'")):
            kept += [text[end : name.end()], MASK]
            end = value.end()
    return "".join([*kept, text[end:]])


def redacted_json(value: Any, known: Iterable[str]) -> Any:
    """Returns a JSON value with a mask in place of each of the `known` secrets. Other values are not masked by their
    shape, because measured values, such as paths, may have the shape of a secret."""
    match value:
        case str():
            for secret in known:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {name: redacted_json(each, known) for name, each in value.items()}
        case list() | tuple():
            return [redacted_json(each, known) for each in value]
        case _:
            return value


def secrets_of(options: Mapping[str, str]) -> set[str]:
    """Returns the secret values of these options that are long enough to be recognized in a text."""
    return {value for name, value in options.items() if len(value) >= _RECOGNIZABLE and is_secret(name, value)}


class RedactingFormatter(logging.Formatter):
    """Formats log records, stack traces included, without secrets. Thread-safe."""

    def __init__(self, fmt: str) -> None:
        super().__init__(fmt)
        self._known: frozenset[str] = frozenset()
        self._guard = threading.Lock()

    def learn(self, secrets: Iterable[str]) -> None:
        """Removes these secrets too from now on."""
        with self._guard:
            self._known = self._known.union(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return self.without_secrets(super().format(record))

    def without_secrets(self, text: str) -> str:
        return redacted(text, self._known)


def _is_secret_pair(name: str, value: str) -> bool:
    if not _SECRET_NAME.search(name) or value.lower() in ("true", "false"):
        return False
    return not (_DURATION_NAME.search(name) and value.isdecimal())
