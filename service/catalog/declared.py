"""Checks a registration's declarations against the administrator's permissions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from jobs.contract import JobKind, Table
from jobs.format.hudi_options import Refusal
from jobs.format.lock_providers import servers_of
from jobs.format.server_addresses import is_among
from jobs.storage.lock_servers import unreachable
from jobs.storage.permissions import Permissions
from service.catalog.errors import MetastoreForbiddenError
from service.lake.location import check_allowed
from service.model.table_errors import LockUnavailableError, OptionNotAllowedError

_CONNECT_SECONDS = 3.0


def check_declared(table: Table, permissions: Permissions) -> None:
    """Checks a registered table again, without accessing its storage, because the settings may have changed since its
    registration.

    Raises PathForbiddenError, OptionNotAllowedError.
    """
    check_allowed(table.base_path, permissions.roots)
    _refuse(permissions.refused_options(table))


def check_metastore(kind: JobKind, params: Mapping[str, Any], permissions: Permissions) -> None:
    """Checks the parameters of a job. Raises MetastoreForbiddenError."""
    if problem := permissions.refused_metastore(kind, params):
        raise MetastoreForbiddenError(problem.detail)


def check_declarations(table: Table, permissions: Permissions, lock_hosts: Collection[str] = ()) -> None:
    """Checks new declarations. Follows links to the file of the lock, and connects to those of the lock's servers that
    are among `lock_hosts`.

    Entries of `lock_hosts` are names or addresses. An entry without a port allows each port. Raises
    OptionNotAllowedError, LockUnavailableError.
    """
    _refuse([*permissions.refused_options(table), *permissions.refused_lock_file(table)])
    servers = servers_of(table.lock)
    # The service connects only to these hosts, because otherwise a registration could be used to find open ports in
    # its network.
    may_connect = all(is_among(lock_hosts, host, port) for host, port in servers)
    if may_connect and (reason := unreachable(servers, _CONNECT_SECONDS)):
        raise LockUnavailableError(f"{reason}.")


def _refuse(refusals: Iterable[Refusal]) -> None:
    if found := list(refusals):
        raise OptionNotAllowedError(
            "; ".join(f"{each.field}: {each.why}" for each in found) + ".",
            hint=" ".join(dict.fromkeys(each.hint for each in found)),
            extensions={"errors": [{"field": each.field, "message": each.why} for each in found]},
        )
