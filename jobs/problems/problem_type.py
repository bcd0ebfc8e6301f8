"""The types of problems that jobs report without an error class of their own. Each type is declared once."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.contract import Problem

_DECLARED: dict[str, ProblemType] = {}


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A type of problem, with the texts of its page (GET /problems/TYPE).

    `why` says what would go wrong, `example` is the detail of one case. `hint` says what to do. If the advice depends
    on the case, `hint` is an example, and the code that finds the problem gives the real hint. Raises ValueError for a
    name that is taken.
    """

    type: str
    title: str
    why: str
    example: str = ""
    hint: str = ""
    retriable: bool = False

    def __post_init__(self) -> None:
        if _DECLARED.setdefault(self.type, self) is not self:
            raise ValueError(f"two problem types are named {self.type}")

    def because(
        self, detail: str = "", *, title: str | None = None, hint: str | None = None, retriable: bool | None = None
    ) -> Problem:
        """Returns a problem of this type. `detail` says what was found in this case."""
        return Problem(
            self.type,
            self.title if title is None else title,
            detail,
            self.hint if hint is None else hint,
            self.retriable if retriable is None else retriable,
        )


def declared() -> list[ProblemType]:
    """Returns all types whose modules are imported."""
    return list(_DECLARED.values())
