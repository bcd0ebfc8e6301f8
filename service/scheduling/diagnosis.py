"""Policy of diagnosis: whether to look for damages of a table now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.model.formatting import duration
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import by_calendar

if TYPE_CHECKING:
    from service.policies.policy import DiagnosisSettings
    from service.scheduling.trigger_context import TriggerContext


def decide(settings: DiagnosisSettings, context: TriggerContext) -> Run | Skip:
    """Returns the proposal, by the calendar or else by the time since the last run: damages come without commits."""
    if not settings.enabled:
        return Skip("off", "diagnosis is switched off")
    run = Run(JobKind.DIAGNOSIS, {"rows": settings.rows}, "no diagnosis yet")
    if context.calendar:
        timing = by_calendar(context.calendar)
        if not timing.is_due:
            return Skip("not-yet", timing.because, timing.until)
        return Run(run.kind, run.params, timing.because)
    if context.last_run_at is None:
        return run
    passed = duration(context.now - context.last_run_at)
    because = f"{passed} since the last diagnosis, threshold {duration(settings.seconds)}"
    due_at = context.last_run_at + timedelta(seconds=settings.seconds)
    if context.now < due_at:
        return Skip("not-yet", because, due_at)
    return Run(run.kind, run.params, because)
