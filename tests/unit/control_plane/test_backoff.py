from random import Random

from hypothesis import given
from hypothesis import strategies as st

from service.model.backoff import BackOff


class _Fixed(Random):
    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def test_the_wait_doubles_with_every_attempt() -> None:
    waits = [BackOff(first=2, most=300).delay(n, _Fixed(1.0)).total_seconds() for n in (1, 2, 3, 4)]
    assert waits == [2, 4, 8, 16]


def test_half_of_the_wait_is_random() -> None:
    backoff = BackOff(first=10)
    assert backoff.delay(1, _Fixed(0.0)).total_seconds() == 5
    assert backoff.delay(1, _Fixed(0.5)).total_seconds() == 7.5


@given(attempt=st.integers(min_value=-5, max_value=10**9), seed=st.integers())
def test_no_wait_is_longer_than_the_most_or_shorter_than_half_the_first(attempt: int, seed: int) -> None:
    wait = BackOff(first=2, most=300).delay(attempt, Random(seed)).total_seconds()
    assert 1 <= wait <= 300
