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
    """The access to tables, with the settings that limit it."""

    examine: Examine
    readers: Readers = field(default_factory=InProcess)  # Run the code that reads tables.
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    # The places, options and classes that tables may have; the roots are None if not set.
    permissions: Permissions = field(default_factory=Permissions)
    flink_hosts: tuple[str, ...] = ()  # Hosts whose REST API may be called.
    lock_hosts: tuple[str, ...] = ()  # Hosts of lock servers that may be connected to.

    def examined(
        self, location: str, claimed: BucketIndex | None, *, allowed_roots: tuple[str, ...] | None
    ) -> Examination:
        """Raises what `service.registration.detection.examine` does. `allowed_roots` of None allows any location."""
        return self.examine(
            location, allowed_roots=allowed_roots, claimed=claimed, storage_options=self.storage_options
        )

    def check(self, declared: Table) -> None:
        """Raises what `check_declarations` does. A reader runs the check, which follows links on a storage that may not
        answer."""
        self.readers.run(check_declarations, declared, self.permissions, self.lock_hosts)
