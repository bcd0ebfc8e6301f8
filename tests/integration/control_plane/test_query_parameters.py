"""Unknown query parameters are refused by every operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

FOREIGN = {"/v1/hoodie/service/{service}", "/v1/callbacks/hudi", "/v1/lineage"}


def test_every_operation_refuses_a_parameter_that_it_does_not_know(client: TestClient) -> None:
    operations = [
        (method.upper(), path)
        for path, item in client.get("/openapi.json").json()["paths"].items()
        for method in item
        if path not in FOREIGN
    ]
    assert len(operations) > 50
    for method, path in operations:
        answer = client.request(method, path, params={"tabel_id": "tbl_1"}, json={} if method != "GET" else None)
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (422, "/problems/params-invalid"), (method, path)
        assert {"field": "tabel_id", "message": "is not known here"} in problem["errors"], (method, path)


def test_the_answer_names_the_known_parameters(client: TestClient) -> None:
    problem = client.get("/v1/workers/demand", params={"groups": "etl"}).json()
    assert problem["detail"] == "groups: is not known here. The parameters of this call are: group."
    assert problem["known"] == ["group"]
    assert client.get("/healthz?x").json()["detail"] == "x: is not known here. This call has no parameters."


def test_a_parameter_with_one_value_is_not_given_twice(client: TestClient) -> None:
    problem = client.get("/v1/tables?limit=1&limit=2").json()
    assert problem["errors"] == [{"field": "limit", "message": "has one value, and was given 2 times"}]
    assert client.get("/v1/workers/demand?group=a&group=b").status_code == 200


def test_many_long_names_make_no_long_answer(client: TestClient) -> None:
    answer = client.get("/v1/tables", params={f"{number}{'x' * 500}": "" for number in range(100)})
    assert answer.status_code == 422
    assert len(answer.content) < 20_000


def test_additional_parameters_of_later_versions_of_hudi_are_ignored(client: TestClient) -> None:
    request = {"action": "REQUEST", "basepath": "/lake/none", "db_name": "shop", "extra_params": "{}"}
    assert client.get("/v1/hoodie/service/compact", params=request).status_code == 200
    reported = client.post("/v1/callbacks/hudi?x=1", json={"commitTime": "1", "basePath": "/lake/none"})
    assert reported.json()["type"] == "/problems/callback-unknown-table"
    assert client.get("/v1/hoodie/service/compact?action=REQUEST&action=REQUEST&basepath=/x").status_code == 422
