"""Tests the rules on histories written by hand: legal ones, and for each rule a history that breaks only this rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.replay import Event, What, of_instant, violations

OLD, LOW, HIGH = "00000000-old-0", "00000000-new-0", "00000001-new-0"
BASELINE = "00000000000000"


def metadata(operation: str, *file_ids: str, replaced: tuple[str, ...] = ()) -> dict[str, object]:
    """Returns the members of a `HoodieCommitMetadata` that are used."""
    return {
        "operationType": operation,
        "partitionToWriteStats": {"p": [{"fileId": file_id, "path": f"p/{file_id}"} for file_id in file_ids]},
        "partitionToReplaceFileIds": {"p": list(replaced)} if replaced else {},
    }


def upsert(instant: int, completed: int, *file_ids: str, is_flink: bool = False) -> list[Event]:
    """Returns a writer's deltacommit that went to these file groups of partition p."""
    content = metadata("UPSERT", *file_ids)
    return of_instant(at(instant), "deltacommit", content, completed_at=at(completed), is_flink=is_flink)


def at(time: int) -> str:
    return f"2026{time:013}"


def our_event(time: int, what: What, instant: int = 0, **more: object) -> Event:
    return Event(at(time), what, at(instant) if instant else "", **more)  # type: ignore[arg-type]


def expansion(*, instant: int = 10, locked: int = 20) -> list[Event]:
    """Returns an expansion from one bucket to two, at the times `locked` to `locked + 5`."""
    content = metadata("BUCKET_RESCALE", LOW, HIGH, replaced=(OLD,))
    return [
        *of_instant(at(instant), "replacecommit", content, completed_at=at(locked + 4)),
        our_event(locked, What.LOCKED, by="job 1"),
        our_event(locked + 1, What.LOOKED, instant),
        Event(at(locked + 2), What.CONFIG_WRITTEN, BASELINE, number=1),
        our_event(locked + 3, What.CONFIG_WRITTEN, instant, number=2),
        our_event(locked + 5, What.UNLOCKED, by="job 1"),
    ]


BEFORE = upsert(1, 2, OLD)
AFTER = upsert(40, 41, LOW, HIGH)
STALE = upsert(30, 31, OLD)
INCIDENT = our_event(32, What.INCIDENT, 30)
REPAIR = [
    our_event(50, What.LOCKED, by="job 2"),
    our_event(51, What.REPAIRED, 30),
    our_event(52, What.UNLOCKED, by="job 2"),
]
FENCE = [
    *of_instant(at(30), "deltacommit", inflight_at=at(31)),
    our_event(32, What.LOCKED, by="job 1"),
    our_event(33, What.FENCED, 30),
    our_event(34, What.ROLLED_BACK, 30),
    our_event(35, What.UNLOCKED, by="job 1"),
]


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([], id="nothing happened"),
        pytest.param([*BEFORE, *expansion(), *AFTER], id="writes before and after an expansion"),
        pytest.param([*expansion(), *STALE, INCIDENT, *REPAIR], id="a stale commit that was repaired"),
        pytest.param([*expansion(), *STALE, INCIDENT], id="a stale commit whose incident is open"),
        pytest.param([*expansion(), *FENCE, *AFTER], id="a fenced write"),
        pytest.param(
            [*expansion(), *FENCE, our_event(60, What.LATE_FILES_REMOVED, 30), our_event(61, What.ARCHIVED, 30)],
            id="archival after the late files were removed",
        ),
        pytest.param(
            [*expansion(), *upsert(30, 31, LOW), our_event(32, What.JUDGED, 30)],
            id="a small write to an old bucket, whose keys were looked at",
        ),
        pytest.param(
            [
                our_event(3, What.RESUMED),
                *upsert(4, 5, OLD, is_flink=True),
                our_event(6, What.STOPPED),
                *expansion(),
                our_event(28, What.RESUMED),
                *upsert(30, 31, LOW, HIGH, is_flink=True),
            ],
            id="a hand-over from Flink and back",
        ),
        pytest.param(
            [*expansion(), *upsert(15, 22, OLD), our_event(60, What.INCIDENT, 15)],
            id="a commit that slipped in while the lock was lost, and was found",
        ),
        pytest.param(
            [
                *of_instant(at(5), "replacecommit", {"operationType": "BUCKET_RESCALE"}),
                our_event(6, What.LOCKED, by="job 1"),
                Event(at(6), What.CONFIG_WRITTEN, BASELINE, number=1),
                our_event(6, What.CONFIG_WRITTEN, 5, number=2),
                our_event(7, What.CONFIG_REMOVED, 5),
                our_event(8, What.ROLLED_BACK, 5),
                our_event(9, What.UNLOCKED, by="job 1"),
                *expansion(),
            ],
            id="an attempt that was undone, and the next one",
        ),
    ],
)
def test_a_legal_history_violates_no_rule(history: list[Event]) -> None:
    assert violations(history) == []


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([*expansion(), *STALE], "wrote to p/00000000-old-0, which", id="a silent stale commit"),
        pytest.param(
            [*expansion(), *upsert(30, 31, LOW)], "nobody has looked at its keys", id="only old buckets, and not judged"
        ),
        pytest.param([*expansion(), *upsert(22, 40, LOW, HIGH)], "while job 1 held the lock", id="started in our lock"),
        pytest.param(
            [*of_instant(at(30), "deltacommit", is_flink=True), our_event(33, What.ROLLED_BACK, 30, by="job 1")],
            "job 1 rolled it back",
            id="a dead Flink job's instant rolled back",
        ),
        pytest.param(
            [*expansion(), *upsert(15, 22, LOW, HIGH)], "completed between the look", id="completed since the look"
        ),
        pytest.param([*expansion(), *upsert(15, 40, LOW, HIGH)], "was in flight when", id="in flight at the commit"),
        pytest.param(
            [*expansion(), *FENCE, *upsert(30, 40, LOW, HIGH)], "was fenced, and completed", id="a fence broken"
        ),
        pytest.param(
            [
                *expansion(),
                *FENCE,
                our_event(36, What.LATE_FILES_REMOVED, 30),
                *of_instant(at(30), "deltacommit", is_flink=True),
            ],
            "is a Flink job's, and was fenced",
            id="a Flink job fenced",
        ),
        pytest.param([our_event(3, What.RESUMED), *expansion()], "while a Flink job might run", id="beside Flink"),
        pytest.param(
            [*of_instant(at(3), "deltacommit", is_flink=True), *expansion()],
            "while Flink's instant",
            id="beside Flink's pending instant",
        ),
        pytest.param(
            [
                *expansion(),
                *STALE,
                INCIDENT,
                Event(at(40), What.CLEANED, file_ids=frozenset({("p", OLD)})),
                *REPAIR,
            ],
            "The clean at",
            id="cleaned before it was repaired",
        ),
        pytest.param(
            [
                *expansion(),
                *STALE,
                Event(at(31), What.CLEANED, file_ids=frozenset({("p", OLD)})),
                INCIDENT,
                *REPAIR,
            ],
            "The clean at",
            id="cleaned before it was noticed",
        ),
        pytest.param(
            [*expansion(), *STALE, INCIDENT, our_event(45, What.ARCHIVED, 1), *REPAIR],
            "while the incident of instant",
            id="archived beside an incident",
        ),
        pytest.param(
            [*expansion(), *FENCE, our_event(61, What.ARCHIVED, 30)],
            "whose late files were not removed for good",
            id="archived past a fence",
        ),
    ],
)
def test_an_illegal_history_violates_its_rule(history: list[Event], expected: str) -> None:
    assert any(expected in sentence for sentence in violations(history)), violations(history)


def without(what: What) -> list[Event]:
    return [event for event in expansion() if event.what is not what]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param(without(What.LOCKED), "committed without the lock", id="no lock"),
        pytest.param(without(What.LOOKED), "nobody had looked at the timeline", id="no look at the timeline"),
        pytest.param(without(What.CONFIG_WRITTEN), "its hashing config was not there", id="no config"),
        pytest.param(
            [event for event in expansion() if event.instant != BASELINE], "without a baseline", id="no baseline"
        ),
        pytest.param(
            [replace(event, at=at(5)) if event.number else event for event in expansion()],
            "while that instant was not pending",
            id="config first",
        ),
        pytest.param(
            [*expansion(), our_event(22, What.LOCKED, by="job 2"), our_event(60, What.UNLOCKED, by="job 2")],
            "while job 1 held it",
            id="two holders",
        ),
    ],
)
def test_an_expansion_that_leaves_out_a_step_violates_a_rule(history: list[Event], expected: str) -> None:
    assert any(expected in sentence for sentence in violations(history)), violations(history)


def test_a_rollback_that_leaves_the_config_is_told() -> None:
    history = [
        *of_instant(at(10), "replacecommit", {"operationType": "BUCKET_RESCALE"}),
        our_event(20, What.LOCKED, by="job 1"),
        Event(at(21), What.CONFIG_WRITTEN, BASELINE, number=1),
        our_event(22, What.CONFIG_WRITTEN, 10, number=2),
        our_event(23, What.UNLOCKED, by="job 1"),
        our_event(24, What.ROLLED_BACK, 10),
    ]
    assert violations(history) == [f"Instant {at(10)} was rolled back while its hashing config was there."]


def test_file_ids_come_from_the_commit_metadata() -> None:
    *_, completed = of_instant(at(1), "replacecommit", metadata("CLUSTER", LOW, replaced=(OLD,)), completed_at=at(2))
    assert (completed.file_ids, completed.replaced) == (frozenset({("p", LOW)}), frozenset({("p", OLD)}))
    assert completed.operation == "CLUSTER"
