"""The access to the storage of tables, and what the service may reach there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.storage.permissions import Permissions
from service.catalog.declared import check_declarations
from service.lake.reader_pool import InProcess, Readers
from service.observation.poll_requests import PollRequests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.contract import BucketIndex, Table
    from service.lake.examination import Examination, Examine


@dataclass(frozen=True)
class LakeAccess:
    """`readers` run what reads tables, with the `storage_options` of the settings; `poll_requests` have a table polled
    soon. `permissions` are the places, options and classes that tables may have; their roots are None if not set.
    `flink_hosts` are the hosts whose REST API may be called, `lock_hosts` those of lock servers that may be connected
    to."""

    examine: Examine
    readers: Readers = field(default_factory=InProcess)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    permissions: Permissions = field(default_factory=Permissions)
    flink_hosts: tuple[str, ...] = ()
    lock_hosts: tuple[str, ...] = ()

    def examined(
        self, location: str, claimed: BucketIndex | None, *, allowed_roots: tuple[str, ...] | None
    ) -> Examination:
        """Raises what `service.registration.detection.examine` does. `allowed_roots` of None allows any location."""
        return self.examine(
            location, allowed_roots=allowed_roots, claimed=claimed, storage_options=self.storage_options
        )

    def check(self, declared: Table) -> None:
        """Raises what `check_declarations` does. It follows links, on a storage that may not answer, so a reader runs
        it."""
        self.readers.run(check_declarations, declared, self.permissions, self.lock_hosts)
