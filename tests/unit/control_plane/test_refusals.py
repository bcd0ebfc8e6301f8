from service.access.refusals import Refusals, Repeats


def test_after_a_few_entries_a_callers_refusals_are_only_counted_at_powers_of_two() -> None:
    refusals = Refusals()
    assert all(refusals.admit("a", 0.0) is True for _ in range(Refusals.OF_CALLER))
    refusals.recorded("a", 7)
    found = [refusals.admit("a", 1.0) for _ in range(1000)]
    assert [each for each in found if each is not False] == [Repeats(7, 2**power) for power in range(10)]
    assert refusals.admit("b", 1.0) is True
    assert refusals.admit("a", Refusals.SECONDS) is True


def test_many_callers_share_one_limit() -> None:
    refusals = Refusals()
    admitted = [refusals.admit(str(number), 0.0) for number in range(1000)]
    assert admitted.count(True) == Refusals.OF_ALL
    assert refusals.admit("new", Refusals.SECONDS) is True


def test_not_all_of_a_million_callers_are_remembered() -> None:
    refusals = Refusals()
    for number in range(Refusals.MOST_CALLERS + 1):
        refusals.admit(str(number), 0.0)
    assert len(refusals._callers) == Refusals.MOST_CALLERS
