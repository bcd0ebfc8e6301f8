"""Errors of catalogs, according to the answers of a catalog."""

from __future__ import annotations

from service.model.errors import GroundskeeperError, NotFoundError


class CatalogNotFoundError(NotFoundError):
    type = "catalog-not-found"
    title = "No catalog has this name"
    hint = "GET /v1/catalogs lists the catalogs, which GROUNDSKEEPER_CATALOGS declares."
    why = "The name is not that of a catalog in the settings of this service."
    example = "There is no catalog lake."


class CatalogError(GroundskeeperError):
    type = "catalog-failed"
    title = "The catalog answered with an error"
    hint = "Look at the catalog's answer and at its log."
    why = "The catalog refused a call for a reason that Groundskeeper does not know, or its answer makes no sense."
    example = "glue://glue.eu-central-1.amazonaws.com: FederationSourceException: the source does not answer"


class CatalogUnavailableError(CatalogError):
    type = "catalog-unavailable"
    title = "The catalog cannot be reached"
    hint = "Check that the catalog is up, its address, and the network between it and the service."
    why = "The catalog refuses connections, does not answer in time, or its host has no address."
    example = "thrift://metastore:9083: Could not connect to any of [('10.0.0.7', 9083)]"


class CatalogThrottledError(CatalogError):
    type = "catalog-throttled"
    title = "The catalog refuses calls because there are too many"
    hint = "The service tries again later, at growing intervals. Raise the catalog's `every_seconds`, or its quota."
    why = "The catalog limits the rate of calls, and refused several attempts of one call."
    example = "glue://glue.eu-central-1.amazonaws.com: ThrottlingException: Rate exceeded"


class CatalogLoginError(CatalogError):
    type = "catalog-login-failed"
    title = "The service has no valid login for the catalog"
    hint = (
        "Give the service credentials that are valid now: the account of the catalog in"
        " GROUNDSKEEPER_STORAGE_ACCOUNTS, the sources of Amazon's SDK, or the token or URL in GROUNDSKEEPER_CATALOGS."
    )
    why = "The catalog does not know the keys, the token or the user, or these have expired."
    example = "glue://glue.eu-central-1.amazonaws.com: UnrecognizedClientException: The security token is invalid"


class CatalogDeniedError(CatalogError):
    type = "catalog-access-denied"
    title = "The catalog does not let the service list its tables"
    hint = "Let the service's role list databases and tables: in Glue, `glue:GetDatabases` and `glue:GetTables`."
    why = "The login is valid, but its permissions do not allow the call."
    example = "glue://glue.eu-central-1.amazonaws.com: AccessDeniedException: not authorized to perform glue:GetTables"


class CatalogClientError(CatalogError):
    type = "catalog-client-missing"
    title = "The service has no client for this kind of catalog"
    hint = "Install the extra on the service: pip install 'groundskeeper[glue]' or 'groundskeeper[hive]'."
    why = "The client of some catalogs is a package that Groundskeeper installs only on request."
    example = "No module named 'boto3'"


OF_ALL = (CatalogLoginError, CatalogThrottledError, CatalogUnavailableError)
"""Errors that concern the whole catalog, not only the database that was being listed."""
