"""Errors about what is registered with a table."""

from __future__ import annotations

from service.model.errors import GroundskeeperError, NotFoundError


class ConsumerNotFoundError(NotFoundError):
    type = "consumer-not-found"
    title = "The table has no consumer of this name"
    hint = "GET /v1/tables/{id}/consumers lists them; PUT registers one."


class MetastoreForbiddenError(GroundskeeperError):
    type = "metastore-not-allowed"
    title = "Jobs may not connect to this metastore"
    hint = "An administrator can extend GROUNDSKEEPER_METASTORE_HOSTS, for the service and for each worker."
