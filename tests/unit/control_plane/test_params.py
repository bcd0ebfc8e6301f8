from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from service.api.params import JobIn, as_json
from service.api.problems import invalid_request

ADAPTER: TypeAdapter[Any] = TypeAdapter(JobIn)


def params(kind: str, **given: Any) -> dict[str, Any]:
    return as_json(ADAPTER.validate_python({"kind": kind, "params": given}).params)


def refusal(kind: str, **given: Any) -> list[dict[str, str]]:
    with pytest.raises(ValidationError) as caught:
        params(kind, **given)
    found = [{**each, "loc": ("body", *each["loc"])} for each in caught.value.errors()]
    errors: list[dict[str, str]] = invalid_request(found, {"kind": kind, "params": given}).extensions["errors"]
    return errors


def test_defaults_are_filled_in() -> None:
    assert params("compaction") == {}
    assert params("audit") == {"rows": True}
    assert params("cleaning") == {"policy": "KEEP_LATEST_COMMITS", "retain": 10}
    beside_writers = {"on_active_writers": "wait", "wait_seconds": 300, "lock_seconds": 20, "hand_over_seconds": 3600}
    assert params("clustering") == {"layout": "linear", **beside_writers}
    assert params("clustering", sort_by=["a"]) == {"sort_by": ["a"], "layout": "linear", **beside_writers}
    given = params("clustering", expansion_factor=4)
    assert given == {"expansion_factor": 4, "layout": "linear", **beside_writers}
    assert params("bucket_expansion", factor=2) == {"factor": 2, "settle_seconds": 15, **beside_writers}
    assert params("bucket_contraction", factor=64) == {"factor": 64, "settle_seconds": 15, **beside_writers}


def test_the_refusal_of_a_malformed_text_names_the_right_form() -> None:
    (told,) = refusal("rollback", instant="yesterday")

    assert told == {"field": "params.instant", "message": "must be an instant, such as 20260101120000000"}


def test_all_parameters_of_an_expansion_are_kept() -> None:
    given = {
        "num_buckets": 8,
        "partitions": ["city=a", "city=b"],
        "on_active_writers": "abort",
        "wait_seconds": 0,
        "lock_seconds": 5,
        "hand_over_seconds": 60,
        "settle_seconds": 30,
        "codec": "zstd",
    }
    assert params("bucket_expansion", **given) == given


@pytest.mark.parametrize(
    ("kind", "given", "field"),
    [
        ("compaction", {"retain": 1}, "params.retain"),
        ("audit", {"x": 1}, "params.x"),
        ("repair", {"leftovers": True, "instants": ["20260101120000001"]}, "params"),
        ("repair", {"instants": ["nonsense"]}, "params.instants[0]"),
        ("repair", {"accepted": ["nonsense"]}, "params.accepted[0]"),
        ("cleaning", {"retain": 0}, "params.retain"),
        ("cleaning", {"retain": "many"}, "params.retain"),
        ("cleaning", {"policy": "KEEP_ALL"}, "params.policy"),
        ("compaction", {"limit_bytes": 0}, "params.limit_bytes"),
        ("compaction", {"limit_bytes": 2**53}, "params.limit_bytes"),
        ("compaction", {"limit_file_groups": 0}, "params.limit_file_groups"),
        ("compaction", {"plans": ["20260101120000000"], "limit_file_groups": 1}, "params"),
        ("partition_ttl", {}, "params.days_retain"),
        ("partition_ttl", {"days_retain": 0}, "params.days_retain"),
        ("partition_ttl", {"days_retain": 1, "limit_partitions": 0}, "params.limit_partitions"),
        ("partition_ttl", {"days_retain": 1, "strategy": "KEEP_ALL"}, "params.strategy"),
        ("compaction", {"partitions": []}, "params.partitions"),
        ("compaction", {"partitions": [{"prefix": ""}]}, "params.partitions[0].prefix"),
        ("compaction", {"plans": ["20260101120000000"], "limit_bytes": 1}, "params"),
        ("compaction", {"plans": ["20260101120000000"], "partitions": ["a"]}, "params"),
        ("clustering", {"layout": "zorder"}, "params"),
        ("clustering", {"partitions": ["a", 7]}, "params.partitions[1]"),
        ("clustering", {"sort_by": []}, "params.sort_by"),
        ("clustering", {"expansion_factor": 1}, "params.expansion_factor"),
        ("clustering", {"expansion_factor": 17}, "params.expansion_factor"),
        ("clustering", {"sort_by": [""]}, "params.sort_by[0]"),
        ("clustering", {"sort_by": ["a", "a"]}, "params.sort_by"),
        ("clustering", {"sort_by": [f"c{number}" for number in range(33)]}, "params.sort_by"),
        ("clustering", {"sort_by": ["a"], "layout": "spiral"}, "params.layout"),
        ("bucket_expansion", {}, "params"),
        ("bucket_contraction", {}, "params"),
        ("bucket_contraction", {"num_buckets": 0}, "params.num_buckets"),
        ("bucket_contraction", {"num_buckets": 2, "factor": 2}, "params"),
        ("bucket_contraction", {"factor": 1}, "params.factor"),
        ("bucket_expansion", {"num_buckets": 8, "factor": 2}, "params"),
        ("bucket_expansion", {"num_buckets": 1}, "params.num_buckets"),
        ("bucket_expansion", {"factor": 9}, "params.factor"),
        ("bucket_expansion", {"factor": 1}, "params.factor"),
        ("bucket_expansion", {"factor": 2, "partitions": []}, "params.partitions"),
        ("bucket_expansion", {"factor": 2, "partitions": [7]}, "params.partitions[0]"),
        ("bucket_expansion", {"factor": 2, "partitions": ["a", {"prefix": ""}]}, "params.partitions[1].prefix"),
        ("bucket_expansion", {"factor": 2, "partitions": [{"prefix": "a", "x": 1}]}, "params.partitions[0].x"),
        ("bucket_expansion", {"factor": 2, "codec": "lzo"}, "params.codec"),
        ("bucket_expansion", {"factor": 2, "on_active_writers": "hurry"}, "params.on_active_writers"),
        ("vacuum", {}, "kind"),
    ],
)
def test_an_invalid_parameter_is_refused_with_its_field_and_a_message(
    kind: str, given: dict[str, Any], field: str
) -> None:
    [error] = refusal(kind, **given)
    assert error["field"] == field
    assert error["message"]


def test_partitions_are_paths_and_prefixes() -> None:
    chosen = ["", "dt=1", {"prefix": "eu/"}]
    assert params("bucket_expansion", factor=2, partitions=chosen)["partitions"] == chosen
    assert params("clustering", partitions=chosen)["partitions"] == chosen
    assert params("compaction", partitions=chosen, limit_bytes=5) == {"partitions": chosen, "limit_bytes": 5}


def test_messages_are_plain_english() -> None:
    assert refusal("bucket_expansion")[0]["message"] == "give exactly one of num_buckets and factor"
    assert refusal("clustering", layout="zorder")[0]["message"] == "a layout other than linear needs sort_by"
    assert refusal("restore", table_name="t")[0]["message"] == "is missing"
    assert refusal("compaction", deep=True)[0]["message"] == "is not known here"
    assert "'cleaning'" in refusal("vacuum")[0]["message"]
