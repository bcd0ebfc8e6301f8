"""Tests what a resize refuses, and how it reports what it has gained."""

from __future__ import annotations

from jobs.services.bucket_resize import of_flink


def test_a_resize_that_flink_prevents_is_not_tried_again() -> None:
    [refusal] = of_flink("Flink is a declared or detected writer")
    assert (refusal.type, refusal.retriable) == ("flink-may-be-running", False)
    assert not of_flink(None)
