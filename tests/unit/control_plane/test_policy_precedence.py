"""Tests the precedence of the settings of defaults, patterns and tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from service.policies.policy import PatternPolicy, Policy, TableLevel, Window
from service.policies.precedence import Subject, effective
from service.policies.settings import Mode, Trigger

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pattern(glob: str, settings: dict[str, Any], *, precedence: int = 0, hours: int = 0) -> PatternPolicy:
    return PatternPolicy(glob, settings, NOW, NOW + timedelta(hours=hours), precedence)


def commits(number: int) -> dict[str, Any]:
    return {"compaction": {"commits": number}}


def test_without_any_level_the_defaults_count() -> None:
    found = effective([], Subject("orders"), None)
    assert found.policy == Policy()
    assert set(found.sources.values()) == {"default"}
    assert found.changed_at is None


def test_compaction_and_cleaning_are_on_clustering_is_off_and_expansion_suggests() -> None:
    policy = Policy()
    assert (policy.compaction.enabled, policy.compaction.trigger, policy.compaction.commits) == (True, "commits", 5)
    assert (policy.cleaning.enabled, policy.cleaning.commits, policy.cleaning.retain) == (True, 10, 10)
    assert not policy.clustering.enabled
    assert policy.bucket_expansion.mode is Mode.SUGGEST
    assert not policy.paused


def test_each_setting_comes_from_the_last_level_that_has_it() -> None:
    patterns = [
        pattern("*", {"priority": 3, "compaction": {"commits": 7, "trigger": "either"}}),
        pattern(
            "orders*", {"compaction": {"commits": 8, "log_ratio": 0.5}, "windows": [{"start": "22:00", "end": "04:00"}]}
        ),
    ]
    table = TableLevel({"compaction": {"log_ratio": None}, "clustering": {"sort_by": ["a"]}}, NOW)
    found = effective(patterns, Subject("orders"), table)
    policy = found.policy
    assert policy.priority == 3
    assert policy.compaction.trigger is Trigger.EITHER
    assert policy.compaction.commits == 8
    assert policy.compaction.log_ratio is None
    assert policy.compaction.seconds == 3600
    assert policy.clustering.sort_by == ("a",)
    assert policy.windows == (Window(time(22), time(4)),)
    description = {name: source for name, source in found.sources.items() if source != "default"}
    assert description == {
        "priority": "pattern *",
        "compaction.trigger": "pattern *",
        "compaction.commits": "pattern orders*",
        "windows": "pattern orders*",
        "compaction.log_ratio": "table",
        "clustering.sort_by": "table",
    }


@pytest.mark.parametrize(
    ("patterns", "number"),
    [
        ([pattern("*", commits(2)), pattern("ord*", commits(3))], 3),
        ([pattern("ord*", commits(3)), pattern("*", commits(2))], 3),
        ([pattern("ord*", commits(3)), pattern("*", commits(2), precedence=1)], 2),
        ([pattern("orders", commits(4)), pattern("order?", commits(3))], 4),
        ([pattern("[a-z]*rs", commits(4)), pattern("*rder*", commits(3))], 3),
        ([pattern("Orders", commits(4))], 5),
        ([pattern("orders_eu", commits(4)), pattern("order", commits(4)), pattern("", commits(4))], 5),
    ],
)
def test_the_higher_precedence_wins_and_then_the_more_exact_pattern(patterns: list[PatternPolicy], number: int) -> None:
    assert effective(patterns, Subject("orders"), None).policy.compaction.commits == number


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ("tag:team", True),
        ("tag:te*", True),
        ("tag:team=shop", True),
        ("tag:team=s*", True),
        ("tag:pii", True),
        ("tag:pii=", True),
        ("tag:team=web", False),
        ("tag:shop", False),
        ("tag:", False),
        ("owner:Ada*", True),
        ("owner:ada*", False),
        ("owner:orders", False),
        ("orders", True),
        ("[t]ag:team", False),
    ],
)
def test_a_pattern_matches_names_or_tags_or_owners(wanted: str, matches: bool) -> None:
    subject = Subject("orders", "Ada Lovelace", {"team": "shop", "pii": ""})
    assert subject.matches(wanted) is matches
    assert not Subject("tag:team").matches("tag:team")
    assert Subject("tag:team").matches("[t]ag:team")


def test_a_name_is_more_exact_than_a_tag_a_tag_than_an_owner_and_that_than_all_names() -> None:
    subject = Subject("o", "a-long-owner", {"team": "shop"})
    found = [pattern("*", commits(2)), pattern("owner:a-long-owner", commits(3)), pattern("tag:team", commits(4))]
    for number in (2, 3, 4):
        assert effective(found[: number - 1], subject, None).policy.compaction.commits == number
    assert effective([*found, pattern("o", commits(6))], subject, None).policy.compaction.commits == 6
    assert effective([pattern("*", commits(2), precedence=1), *found[1:]], subject, None).policy.compaction.commits == 2


def test_the_order_of_patterns_that_are_equally_strong_is_always_the_same() -> None:
    one, other = pattern("*ers", commits(2)), pattern("ord*", commits(3))
    assert effective([one, other], Subject("orders"), None) == effective([other, one], Subject("orders"), None)


def test_lists_are_replaced_as_a_whole() -> None:
    below = pattern("*", {"clustering": {"sort_by": ["a", "b"]}, "windows": [{"start": "01:00", "end": "02:00"}]})
    found = effective([below], Subject("orders"), TableLevel({"clustering": {"sort_by": ["c"]}, "windows": []}, NOW))
    assert found.policy.clustering.sort_by == ("c",)
    assert found.policy.windows == ()


def test_a_policy_has_changed_when_the_last_of_its_levels_has() -> None:
    patterns = [pattern("*", {}, hours=1), pattern("orders", {}, hours=3), pattern("other", {}, hours=9)]
    assert effective(patterns, Subject("orders"), TableLevel({}, NOW)).changed_at == NOW + timedelta(hours=3)


def test_a_policy_is_the_same_after_json() -> None:
    policy = effective(
        [pattern("*", {"windows": [{"start": "22:00", "end": "04:00", "days": ["sat"]}]})], Subject("t"), None
    ).policy
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy


def test_settings_of_a_newer_version_are_passed_over() -> None:
    assert Policy.from_json({"compaction": {"commits": 3, "by_moonlight": True}, "tea": "hot"}).compaction.commits == 3
