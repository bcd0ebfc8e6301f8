"""The access to the storage of tables, and the limits of what the service may reach there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.contract import BucketIndex, Table
from jobs.storage.permissions import Permissions
from service.catalog.declared import check_declarations
from service.lake.examination import Examination, Examine
from service.lake.reader_pool import InProcess, Readers
from service.observation.poll_requests import PollRequests


@dataclass(frozen=True)
class LakeAccess:
    examine: Examine
    readers: Readers = field(default_factory=InProcess)  # The processes or threads that run the code that reads tables.
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    # The locations, options and classes that tables may have; the roots are None if not set.
    permissions: Permissions = field(default_factory=Permissions)
    flink_hosts: tuple[str, ...] = ()  # Hosts whose REST API may be called.
    lock_hosts: tuple[str, ...] = ()  # Hosts of lock servers that may be connected to.

    def examined(
        self, location: str, claimed: BucketIndex | None, *, allowed_roots: tuple[str, ...] | None
    ) -> Examination:
        """Examines a table in a reader. Raises the errors of `service.registration.detection.examine`. If
        `allowed_roots` is None, any location is allowed."""
        return self.examine(
            location, allowed_roots=allowed_roots, claimed=claimed, storage_options=self.storage_options
        )

    def check(self, declared: Table) -> None:
        """Raises the errors of `check_declarations`. A reader runs the check, because it follows links on a storage
        that may not answer."""
        self.readers.run(check_declarations, declared, self.permissions, self.lock_hosts)
