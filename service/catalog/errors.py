"""Errors about consumers and other facts that are registered with a table."""

from __future__ import annotations

from jobs.problems.permissions import METASTORE_NOT_ALLOWED
from service.model.errors import GroundskeeperError, NotFoundError


class ConsumerNotFoundError(NotFoundError):
    type = "consumer-not-found"
    title = "The table has no consumer of this name"
    hint = "GET /v1/tables/{id}/consumers lists the consumers; PUT registers one."
    why = (
        "A consumer has a name, under which it reports how far it has read. The named consumer has never reported, or"
        " was deleted."
    )
    example = "There is no consumer orders-to-warehouse of table tbl_0f3c2a9d5e7b1c44."


class MetastoreForbiddenError(GroundskeeperError, like=METASTORE_NOT_ALLOWED):
    type = "metastore-not-allowed"
    title = "Jobs may not connect to this metastore"
    hint = "An administrator can extend GROUNDSKEEPER_METASTORE_HOSTS, for the service and for each worker."
