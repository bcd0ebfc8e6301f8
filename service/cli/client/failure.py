"""Failures of commands: a message for people, a problem document for programs, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The exit codes. The code 130 means that Ctrl-C ended the command, as is the convention."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAUTHORISED = 4
    UNREACHABLE = 5
    DIFFERENT = 6
    INTERRUPTED = 130


class CommandError(Exception):
    """A failed command. `document` is a problem document (RFC 9457). It comes from the service, or is made by the
    command and then has no `type`."""

    def __init__(self, code: ExitCode, document: Mapping[str, Any], *, is_passing: bool = False) -> None:
        super().__init__(document.get("title", ""))
        self.code = code
        self.document = dict(document)
        self.is_passing = is_passing
        """Whether the failure may pass by itself, as it does during a restart of the service."""

    @classmethod
    def of(cls, code: ExitCode, title: str, detail: str = "", hint: str = "") -> CommandError:
        return cls(code, {"title": title, "detail": detail, "hint": hint})

    @classmethod
    def usage(cls, detail: str, hint: str = "") -> CommandError:
        return cls.of(ExitCode.USAGE, "The command line is not valid", detail, hint)
