"""The administrator's permissions: the places of tables and of their locks, options, classes and metastores.

The service checks the permissions when a table is registered or changed and when a job is submitted or leased. Each
worker checks them again at the beginning of an attempt, because it must not trust the work order, and links may have
been created meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.contract import JobKind, Problem, Table
from jobs.format import hudi_options, lock_providers
from jobs.format.hudi_options import Refusal
from jobs.format.server_addresses import is_among, metastores
from jobs.kinds.registry import KINDS
from jobs.problems.permissions import METASTORE_NOT_ALLOWED, PATH_NOT_ALLOWED
from jobs.storage.location import LocationError, canonical, is_below


@dataclass(frozen=True)
class Permissions:
    """Tables may lie below one of `roots`; None means anywhere. The file of a lock may lie below its table or below one
    of `lock_roots`. Beside Hudi's own classes, tables may name `classes`. Jobs may connect to Hive metastores on
    `metastore_hosts`. An entry is a name or an address; without a port it allows any port."""

    roots: tuple[str, ...] | None = None
    lock_roots: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    metastore_hosts: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, variables: Mapping[str, str]) -> Permissions:
        """Reads the variables of `service.runtime.settings`, for a worker that runs without the service's packages."""
        roots = variables.get("GROUNDSKEEPER_ALLOWED_ROOTS")
        return cls(
            None if roots is None else listed(roots),
            listed(variables.get("GROUNDSKEEPER_LOCK_ROOTS", "")),
            listed(variables.get("GROUNDSKEEPER_ALLOWED_CLASSES", "")),
            listed(variables.get("GROUNDSKEEPER_METASTORE_HOSTS", "")),
        )

    def problems(self, table: Table) -> list[Problem]:
        """Returns everything about a table that is not permitted. Follows links on local disks."""
        found = [refusal.problem() for refusal in (*self.refused_options(table), *self.refused_lock_file(table))]
        return found if self._allows(table.base_path) else [_outside_roots(table.base_path), *found]

    def refused_metastore(self, kind: JobKind, params: Mapping[str, Any]) -> Problem | None:
        """Returns a refusal of the metastore in a job's parameters, if it is not permitted. Connects to nothing."""
        if not KINDS[kind].connects_to_metastore:
            return None
        uris = str(params.get("metastore_uris") or "")
        try:
            servers = metastores(uris)
        except ValueError:
            servers = []
        if servers and all(is_among(self.metastore_hosts, host, port) for host, port in servers):
            return None
        return METASTORE_NOT_ALLOWED.because(uris)

    def refused_options(self, table: Table) -> Iterator[Refusal]:
        """Yields refusals of options that are not permitted. Accesses no storage."""
        yield from hudi_options.refusals(table.hudi_options, self.classes)
        yield from lock_providers.refusals(table.lock, self.classes, base_path=table.base_path)

    def refused_lock_file(self, table: Table) -> Iterator[Refusal]:
        """Yields a refusal of the file of a filesystem lock, which is deleted when its owner has died."""
        folder = lock_providers.folder_of(table.lock, table.base_path)
        is_named = lock_providers.FOLDER in table.lock.options
        if not is_named and not lock_providers.is_in_a_file(table.lock.provider):
            return
        try:
            roots = [canonical(root) for root in (table.base_path, *self.lock_roots)]
            # The file itself may be a link.
            is_allowed = ".." not in folder.split("/") and is_below(canonical(f"{folder}/lock"), roots)
        except LocationError:
            is_allowed = False
        if not is_allowed:
            yield Refusal(
                f"lock.options.{lock_providers.FOLDER}" if is_named else "lock",
                "the lock's file is neither below the table nor below an allowed root of locks",
                "An administrator can extend GROUNDSKEEPER_LOCK_ROOTS.",
            )

    def _allows(self, base_path: str) -> bool:
        if self.roots is None:
            return True
        try:
            return is_below(canonical(base_path), map(canonical, self.roots))
        except LocationError:
            return False


def _outside_roots(base_path: str) -> Problem:
    return PATH_NOT_ALLOWED.because(base_path)


def listed(text: str) -> tuple[str, ...]:
    """Returns the items of a setting: separated by commas, or a JSON list. Raises ValueError."""
    if text.lstrip().startswith("["):
        return tuple(json.loads(text))
    return tuple(item.strip() for item in text.split(",") if item.strip())
