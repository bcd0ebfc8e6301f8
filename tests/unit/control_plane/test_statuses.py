from http import HTTPStatus

import pytest

from service.api.problems import answer, invalid_request
from service.api.statuses import raised_by_framework, status_of
from service.catalog.errors import MetastoreForbiddenError
from service.model import errors, job_errors, storage_errors, table_errors


def all_subclasses(kind: type[errors.GroundskeeperError]) -> list[type[errors.GroundskeeperError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in all_subclasses(below))]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (table_errors.TableNotFoundError, 404),
        (table_errors.NotAHudiTableError, 422),
        (errors.ParamsInvalidError, 422),
        (storage_errors.PathForbiddenError, 403),
        (MetastoreForbiddenError, 403),
        (job_errors.JobConflictError, 409),
        (job_errors.LeaseLostError, 409),
        (table_errors.BucketIndexContradictedError, 409),
        (errors.UnauthenticatedError, 401),
        (storage_errors.StorageError, 502),
        (errors.GroundskeeperError, 500),
    ],
)
def test_each_kind_of_error_has_its_status(kind: type[errors.GroundskeeperError], status: int) -> None:
    assert status_of(kind) == status


def test_only_what_is_our_own_fault_is_answered_as_an_internal_error() -> None:
    internal = {kind for kind in all_subclasses(errors.GroundskeeperError) if status_of(kind) == 500}
    # Settings are read before the service can answer calls.
    assert internal == {errors.GroundskeeperError, errors.SettingsError}


def test_no_two_leaves_of_the_error_tree_share_a_type() -> None:
    leaves = [kind.type for kind in all_subclasses(errors.GroundskeeperError) if not kind.__subclasses__()]
    assert len(leaves) == len(set(leaves))


def test_an_extension_cannot_replace_a_standard_member() -> None:
    response = answer(job_errors.JobConflictError("why", extensions={"status": 200, "job_id": "job_1"}))
    assert b'"status":409' in response.body
    assert b'"job_id":"job_1"' in response.body
    assert response.media_type == "application/problem+json"


def test_bare_errors_of_the_framework_get_a_type() -> None:
    assert raised_by_framework(HTTPStatus.NOT_FOUND) is errors.RouteNotFoundError
    assert raised_by_framework(HTTPStatus.BAD_REQUEST) is errors.ParamsInvalidError
    assert raised_by_framework(HTTPStatus.INTERNAL_SERVER_ERROR) is errors.GroundskeeperError


def test_a_field_is_named_as_its_caller_wrote_it() -> None:
    error = invalid_request(
        [{"loc": ("body", "clustering", "params", "sort_by", 1), "type": "string_type", "msg": "not a string"}],
        {"kind": "clustering", "params": {"sort_by": ["a", 2]}},
    )
    assert error.extensions["errors"] == [{"field": "params.sort_by[1]", "message": "must be a text"}]


def test_a_misspelt_tag_is_named_by_the_member_that_the_caller_sent() -> None:
    def fields(loc: tuple[object, ...], body: object, kind: str = "extra_forbidden") -> list[str]:
        given = {"loc": loc, "type": kind, "msg": "", "ctx": {"discriminator": "'action'", "expected_tags": "'run'"}}
        return [each["field"] for each in invalid_request([given], body).extensions["errors"]]

    bulk = {"action": "policy", "policy": {"compaction": {"comits": 1}}}
    assert fields(("body", "policy", "policy", "compaction", "comits"), bulk) == ["policy.compaction.comits"]
    assert fields(("body",), {"action": "rum"}, "union_tag_invalid") == ["action"]
    assert fields(("body", "run", "job"), {"action": "run"}, "missing") == ["job"]
