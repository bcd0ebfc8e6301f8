"""Tests which commits hold the positions of streaming writers."""

from __future__ import annotations

import pytest

from jobs.format.stream_positions import newest_positions, undone_queries

SINK = "_hudi_streaming_sink_checkpoint"


def test_each_query_and_each_other_stream_has_its_newest_one() -> None:
    commits = {
        "1": {SINK: '{"a":"1"}', "streamer.checkpoint.key.v2": "trips,0:5"},
        "4": {SINK: '{"a":"2"}'},
        "3": {SINK: '{"b":"1"}', "kafka.commit.offsets": "trips,0=5"},
        "5": {"deltastreamer.checkpoint.key": "", "schema": "{}"},
    }
    assert newest_positions(commits.items()) == {
        (SINK, "a"): "4",
        (SINK, "b"): "3",
        ("streamer.checkpoint.key.v2", ""): "1",
        ("kafka.commit.offsets", ""): "3",
    }


@pytest.mark.parametrize("broken", ["{", "[1]", "7", "", '"a"', "\ud800"])
def test_other_metadata_are_not_positions(broken: str) -> None:
    assert newest_positions([("1", {SINK: broken})]) == {}


def test_a_query_is_ahead_of_the_table_if_a_later_batch_of_it_is_undone() -> None:
    undone = [{SINK: '{"a":"9"}'}, {SINK: '{"a":"10","b":"4"}'}, {SINK: '{"c":"x","d":3}'}, {"schema": "{}"}]
    assert undone_queries(undone, [{SINK: '{"a":"8","b":"4"}'}]) == ("a", "d")
    assert undone_queries([{SINK: "["}], []) == ()
