import pytest

from service.model.formatting import count, duration, size


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1.5 * 1024**3, "1.5 GiB"), (5000 * 1024**5, "5000.0 PiB")],
)
def test_sizes_are_written_with_their_unit(number: float, words: str) -> None:
    assert size(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (100, "100 s"),
        (120, "2 min"),
        (3600, "1 h"),
        (5400, "90 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (86_400, "1 day"),
        (100_000, "27 h"),
        (200_000, "2 days"),
    ],
)
def test_durations_are_written_with_their_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_counts_have_singular_and_plural() -> None:
    assert [count(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
