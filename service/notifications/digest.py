"""Decides which messages a notification sends. No function has side effects.

Problems with the same kind, severity and error that are found at the same time probably have one cause. So they form
one alert with one message, and further such problems join the alert for some minutes. If there are more messages than
the limit allows, the last message sums up all the others. If the limit is used up, nothing is sent now: later rounds
report the problems that are still open then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.delivery.message import Message
from service.delivery.targets.alertmanager import REPEAT
from service.delivery.targets.registry import Target
from service.health.acknowledgement_store import Acknowledgement
from service.health.problem import RANKS, HealthProblem, Severity
from service.notifications import messages
from service.notifications.messages import Draft, Failure, by_alert
from service.notifications.notification import Notification, Occasion, ReportedProblem

JOINS_FOR = timedelta(minutes=10)
"""Age of an alert up to which further problems with the same cause join it."""


@dataclass(frozen=True)
class Facts:
    """The state at `now`. `open` are all open problems, `reported` are the problems that the notification has
    reported."""

    open: Mapping[str, HealthProblem]
    acknowledged: Mapping[str, Acknowledgement]
    reported: Sequence[ReportedProblem]
    failures: Sequence[Failure]
    target: Target
    now: datetime
    is_whole: bool = True  # False if there are more open problems than were read.


@dataclass(frozen=True)
class Outcome:
    """The messages to send and the changes to store. `waiting` is the number of problems that will be reported later.
    `failures_wait` says whether failed jobs will be reported later, too."""

    messages: Sequence[Message] = ()
    kept: Sequence[ReportedProblem] = ()
    gone: Sequence[str] = ()
    counted: int = 0  # Messages that count towards the limit.
    waiting: int = 0
    failures_wait: bool = False

    @classmethod
    def of(cls, drafts: Sequence[Draft]) -> Outcome:
        return cls(
            [each.message for each in drafts],
            [problem for each in drafts for problem in each.kept],
            [gone for each in drafts for gone in each.gone],
        )


def compose(notification: Notification, facts: Facts) -> Outcome:
    risen = {each.problem_id for each in facts.reported if _begins_anew(each, facts)}
    known_ids = {each.problem_id for each in facts.reported} - risen
    wanted = [
        problem
        for problem_id, problem in facts.open.items()
        if problem_id not in facts.acknowledged and problem_id not in known_ids and notification.wants(problem)
    ]
    if notification.is_snoozed(facts.now):
        return Outcome(waiting=len(wanted), failures_wait=True)
    is_quiet = notification.is_quiet(facts.now)
    fresh = [each for each in wanted if each.severity is Severity.CRITICAL or not is_quiet]
    joined, opened = _opened(notification, facts, fresh, risen)
    ended = _ended(notification, facts, risen)
    failed = [] if is_quiet else _failed(notification, facts)
    known, recorded = _acknowledged(notification, facts)
    free = [*_again(notification, facts, risen), *known]
    silent: list[Draft] = []
    limited: list[Draft] = []
    (limited if Occasion.OPENED in notification.events else silent).extend(opened)
    if facts.target.keeps_alerts:
        # The ends of alerts do not count towards the limit, because such a target needs every end.
        free += ended
    elif Occasion.RESOLVED not in notification.events:
        silent += ended
    elif not is_quiet:
        limited += ended
    limited += failed
    budget = notification.most_per_hour - len(notification.sent_lately(facts.now))
    if limited and budget <= 0:
        return replace(Outcome.of(free), waiting=len(wanted), failures_wait=True)
    sent = _limited(notification, limited, budget, facts.now)
    shown = Outcome.of([*free, *sent])
    written = Outcome.of([*free, *sent, *silent])
    return Outcome(
        messages=shown.messages,
        kept=[*recorded, *joined, *written.kept],
        gone=written.gone,
        counted=len(sent),
        waiting=len(wanted) - len(fresh),
        failures_wait=is_quiet,
    )


def _begins_anew(reported: ReportedProblem, facts: Facts) -> bool:
    """Returns whether a problem begins another alert: its severity has risen, or it is no longer acknowledged."""
    problem = facts.open.get(reported.problem_id)
    if problem is None:
        return False
    is_due_again = reported.acknowledged_at is not None and reported.problem_id not in facts.acknowledged
    return is_due_again or RANKS[problem.severity] < RANKS[reported.severity]


def _cause(problem: HealthProblem) -> str:
    return f"{problem.kind.value} {problem.severity.value} {problem.evidence.get('error') or ''}".strip()


def _opened(
    notification: Notification, facts: Facts, fresh: Sequence[HealthProblem], risen: set[str]
) -> tuple[list[ReportedProblem], list[Draft]]:
    """Returns the problems that join an alert without a message. Also returns a draft for each new alert, and for each
    alert whose number of problems has doubled."""
    recent: dict[str, list[ReportedProblem]] = defaultdict(list)
    for each in facts.reported:
        # An acknowledged alert causes no further message.
        is_known = each.acknowledged_at is not None or each.problem_id in facts.acknowledged
        is_recent = facts.now - each.began_at < JOINS_FOR and each.problem_id in facts.open
        if is_recent and not is_known and each.problem_id not in risen:
            recent[each.cause].append(each)
    causes: dict[str, list[HealthProblem]] = defaultdict(list)
    for problem in fresh:
        causes[_cause(problem)].append(problem)
    joined: list[ReportedProblem] = []
    drafts = []
    for cause, problems in causes.items():
        known = recent.get(cause, [])
        began = known[-1].began_at if known else facts.now
        alert = known[-1].alert if known else messages.key(notification, problems[0].id, cause, began)
        new = [ReportedProblem.of(each, alert, cause, began) for each in problems]
        reported = sum(each.reported_at is not None for each in known)
        if len(known) - reported + len(new) < reported:
            joined += new
            continue
        members = [each for each in known if each.alert == alert]
        message = messages.opened(notification, alert, [*problems, *_problems(members, facts)], began)
        drafts.append(Draft(message, [replace(each, reported_at=facts.now) for each in (*members, *new)]))
    return joined, drafts


def _again(notification: Notification, facts: Facts, risen: set[str]) -> list[Draft]:
    """Returns a draft for each alert that Alertmanager would otherwise forget."""
    if facts.target is not Target.ALERTMANAGER:
        return []
    drafts = []
    for alert, members in by_alert(each for each in facts.reported if each.problem_id not in risen).items():
        last = max((each.reported_at for each in members if each.reported_at), default=None)
        problems = [each for each in _problems(members, facts) if each.id not in facts.acknowledged]
        if problems and last is not None and facts.now - last >= REPEAT:
            kind, severity = messages.identity(members)
            message = messages.opened(notification, alert, problems, members[0].began_at)
            kept = [replace(each, reported_at=facts.now) for each in members]
            drafts.append(Draft(replace(message, kind=kind, severity=severity), kept))
    return drafts


def _acknowledged(notification: Notification, facts: Facts) -> tuple[list[Draft], list[ReportedProblem]]:
    """Returns a draft for each alert whose open problems are all acknowledged now, if the target supports
    acknowledgements. Also returns the problems that were acknowledged since the last round."""
    drafts, recorded = [], []
    for alert, members in by_alert(facts.reported).items():
        new = [each for each in members if each.acknowledged_at is None and each.problem_id in facts.acknowledged]
        marked = [replace(each, acknowledged_at=facts.now) for each in new]
        standing = [each for each in members if each.problem_id in facts.open]
        is_reported = any(each.reported_at for each in members)
        if (
            is_reported
            and marked
            and all(each.problem_id in facts.acknowledged for each in standing)
            and facts.target is Target.PAGERDUTY
        ):
            drafts.append(
                Draft(messages.acknowledged(notification, alert, standing or members, facts.now), kept=marked)
            )
        else:
            recorded += marked
    return drafts, recorded


def _ended(notification: Notification, facts: Facts, risen: set[str]) -> list[Draft]:
    """Returns a draft for each alert whose last problem has ended, or now belongs to a more serious alert."""
    if not facts.is_whole:
        return []
    drafts = []
    for alert, members in by_alert(facts.reported).items():
        over = [each for each in members if each.problem_id not in risen]
        if any(each.problem_id in facts.open for each in over) or not (over or facts.target.keeps_alerts):
            continue
        message = messages.resolved(notification, alert, over or members, facts.now)
        drafts.append(Draft(message, gone=[each.problem_id for each in members]))
    return drafts


def _failed(notification: Notification, facts: Facts) -> list[Draft]:
    if Occasion.FAILED not in notification.events or not notification.covers(Severity.WARNING):
        return []
    return [Draft(messages.failed(notification, each)) for each in facts.failures]


def _limited(notification: Notification, drafts: list[Draft], budget: int, now: datetime) -> list[Draft]:
    """Returns at most `budget` drafts, the most serious first. If there are more, the last draft sums up all the
    others."""
    drafts = sorted(drafts, key=lambda each: RANKS[Severity(each.message.severity)])
    if len(drafts) <= budget:
        return drafts
    return [*drafts[: budget - 1], messages.together(notification, drafts[budget - 1 :], now)]


def _problems(members: Sequence[ReportedProblem], facts: Facts) -> list[HealthProblem]:
    return [facts.open[each.problem_id] for each in members if each.problem_id in facts.open]
