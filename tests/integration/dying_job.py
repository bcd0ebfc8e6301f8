"""A job whose attempts end early: each is killed, or loses its lease between two steps. Both leave the same files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import HudiError, LeaseLostError
from jobs.job_context import JobContext
from jobs.protocol import own_instant
from tests.integration.doomed import Death
from tests.integration.run import perform_order
from tests.integration.victim import CALLS
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from jobs.contract import Result, WorkOrder
    from tests.integration.doomed import Spares


def cases(names: str, short: tuple[Any, ...], long: Iterable[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Makes the cases of a test whose attempts die. In the `short` case an attempt loses its lease, and `DyingJob`
    needs no `spares`. In the `long` cases the attempts are killed."""
    killed = (pytest.param(*each, True, marks=pytest.mark.exhaustive) for each in long)
    return pytest.mark.parametrize((*names.split(), "is_killed"), [(*short, False), *killed])


class DyingJob:
    """The attempts at a job: some die at the given points, and the last one finishes it.

    If there are `spares`, an attempt has a process of its own, which is killed at any point of `victim.Death`.
    Otherwise an attempt loses its lease in the test's own session at a `step`, `before` or `after` a call.
    """

    def __init__(self, spark: SparkSession, order: WorkOrder, spares: Spares | None = None) -> None:
        self._spark = spark
        self._order = order
        self._spares = spares

    @property
    def instants(self) -> tuple[str, ...]:
        """The instants that the service knows of its attempts."""
        return self._order.earlier_instants

    def deaths(self, points: Sequence[dict[str, Any]]) -> Iterator[Death]:
        """Yields after the death of each attempt."""
        for number, point in enumerate(points, 1):
            if self._spares:
                death = self._spares.take(is_last=number == len(points)).run(self._order, point)
            else:
                death = self._lose_the_lease_at(point)
            print(point, death)
            known = (*self.instants, *death.stored)
            self._order = replace(self._order, attempt=self._order.attempt + 1, earlier_instants=known)
            yield death

    def die_at(self, point: dict[str, Any]) -> Death:
        (death,) = self.deaths([point])
        return death

    def finish(self) -> Result:
        return perform_order(self._spark, self._order)

    def overtake(self, patch: pytest.MonkeyPatch, owner: type, method: str, point: dict[str, Any]) -> None:
        """Lets an attempt that the caller starts freeze in a method. Meanwhile the next attempt dies at the point, and
        has not given its lock back. Then the method raises a HudiError."""

        def frozen(*_: object) -> None:
            patch.undo()
            self.die_at(point)
            raise HudiError("something has changed meanwhile")

        patch.setattr(owner, method, frozen)

    def _lose_the_lease_at(self, point: dict[str, Any]) -> Death:
        """Loses the lease at the step, or `before` or `after` the `nth` call of the name (see `victim.CALLS`)."""
        context = JobContext()
        with pytest.MonkeyPatch.context() as patch:
            # A dead attempt removes nothing.
            patch.setattr(own_instant, "remove_late", lambda *_: None)
            if point["at"] == "step":
                context = At(point["name"], _lose)
            else:
                _patch(patch, point, context)
            with pytest.raises(LeaseLostError):
                perform_order(self._spark, self._order, context)
        return Death(stored=list(context.instants))


def _lose() -> None:
    raise LeaseLostError


def _patch(patch: pytest.MonkeyPatch, point: dict[str, Any], context: JobContext) -> None:
    owner, name = CALLS[point["name"]]
    real, left = getattr(owner, name), [point.get("nth", 1)]

    def call_and_lose(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        result = real(*args, **kwargs) if left[0] or point["at"] == "after" else None
        if left[0] == 0:
            # A heartbeat tells a real attempt that its lease is lost, and the attempt ends at its next checkpoint, or
            # here.
            context.end(LeaseLostError())
            context.checkpoint()
        return result

    patch.setattr(owner, name, call_and_lose)
