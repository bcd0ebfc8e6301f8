"""Checks what a registration declares against what the administrator permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.lake.location import check_allowed
from service.model.errors import OptionNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import Table
    from jobs.format.hudi_options import Refusal
    from jobs.storage.permissions import Permissions


def check_declared(table: Table, permissions: Permissions) -> None:
    """Checks a registered table, without accessing its storage: the settings may have changed since.

    Raises PathForbiddenError, OptionNotAllowedError.
    """
    check_allowed(table.base_path, permissions.roots)
    _refuse(permissions.refused_options(table))


def check_declarations(table: Table, permissions: Permissions) -> None:
    """Checks new declarations, and follows links to the file of the lock. Raises OptionNotAllowedError."""
    _refuse([*permissions.refused_options(table), *permissions.refused_lock_file(table)])


def _refuse(refusals: Iterable[Refusal]) -> None:
    if found := list(refusals):
        raise OptionNotAllowedError(
            "; ".join(f"{each.field}: {each.why}" for each in found) + ".",
            hint=" ".join(dict.fromkeys(each.hint for each in found)),
            extensions={"errors": [{"field": each.field, "message": each.why} for each in found]},
        )
