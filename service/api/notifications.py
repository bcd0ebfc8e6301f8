"""/v1/notifications"""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import Path, Request, Response

from service.access import errors as secret_errors
from service.api.answers import ListOf
from service.api.dependencies import CallerDep, DatabaseDep, ExposureDep, GuardDep
from service.api.entity_tags import set_tag
from service.api.notification_forms import (
    NotificationDetail,
    NotificationIn,
    NotificationOut,
    NotificationPut,
    SnoozeIn,
    alerts_of,
)
from service.api.requests import NAME
from service.api.routes import Routes
from service.api.statuses import ACCEPTED, CREATED
from service.api.webhook_forms import DeliveryOut
from service.db.engine import reading
from service.delivery import delivery_store, webhook_store
from service.delivery import errors as delivery_errors
from service.events.database import Database
from service.model.errors import NotificationNotFoundError
from service.notifications import notifications as flows
from service.notifications import rounds, store
from service.notifications.notification import Notification

router = Routes(prefix="/v1", tags=["notifications"])

_Shown = TypeVar("_Shown", bound=NotificationOut)

Name = Annotated[str, Path(pattern=NAME, examples=["on-call"])]


@router.reader("GET /notifications", "List the notifications")
def list_notifications(database: DatabaseDep) -> ListOf[NotificationOut]:
    with reading(database.engine) as connection:
        found = store.every(connection)
        webhooks = webhook_store.of_ids(connection, [each.webhook_id for each in found])
        counts = delivery_store.open_counts(connection, webhooks)
    now = database.clock()
    return ListOf[NotificationOut].of(
        [each for each in found if each.webhook_id in webhooks],
        lambda each: NotificationOut.of(
            each, webhooks[each.webhook_id], database.cipher, counts.get(each.webhook_id, {}), now
        ),
    )


@router.reader(
    "GET /notifications/{name}",
    "Show a notification, and the open problems that it has reported",
    NotificationNotFoundError,
)
def get_notification(name: Name, database: DatabaseDep, response: Response) -> NotificationDetail:
    """`GET /v1/webhooks/{id}/deliveries` lists its messages with the receiver's answers. `GET
    /v1/events?types=notification.*` has the content of the messages."""
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "notification", name)
        found = store.get(connection, name)
        reported = store.reported(connection, name)
        waiting = rounds.waiting(connection, database, found)
    alerts = alerts_of(reported)
    return _shown(NotificationDetail, found, database, told=len(reported), waiting=waiting, alerts=alerts)


@router.admin(
    "PUT /notifications/{name}",
    "Create or replace a notification",
    delivery_errors.UrlNotAllowedError,
    delivery_errors.HeaderNotAllowedError,
    secret_errors.SecretKeyMissingError,
    secret_errors.SecretUnreadableError,
    also={CREATED: "There was no notification of this name before"},
)
def put_notification(
    name: Name,
    wanted: NotificationIn,
    request: Request,
    *,
    database: DatabaseDep,
    guard: GuardDep,
    exposure: ExposureDep,
    response: Response,
) -> NotificationPut:
    """Sends messages about problems and failed jobs, one for each cause, in the form of the target. Problems that are
    already open are reported within seconds. Links in messages use GROUNDSKEEPER_PUBLIC_URL, or else the address of
    this request."""
    put = flows.put(
        database,
        guard,
        name,
        target=wanted.target.type,
        options=wanted.target.options,
        settings={**wanted.settings, "link": exposure.url_for(request)},
    )
    if put.is_new:
        response.status_code = CREATED
    return _shown(NotificationPut, put.notification, database, secret=put.secret)


@router.admin("DELETE /notifications/{name}", "Delete a notification and its messages", NotificationNotFoundError)
def delete_notification(name: Name, database: DatabaseDep) -> None:
    flows.remove(database, name)


@router.operator(
    "POST /notifications/{name}/test",
    "Send a test message",
    NotificationNotFoundError,
    delivery_errors.WebhookDisabledError,
    status_code=ACCEPTED,
)
def test_notification(name: Name, database: DatabaseDep) -> DeliveryOut:
    """Sends one message once; GET /v1/deliveries/{id} shows the outcome. In PagerDuty and Alertmanager the alert is
    resolved at once."""
    return DeliveryOut.of(flows.test(database, name), [])


@router.operator("PUT /notifications/{name}/snooze", "Send nothing for a time", NotificationNotFoundError)
def snooze_notification(name: Name, wanted: SnoozeIn, database: DatabaseDep, caller: CallerDep) -> NotificationOut:
    """After that time, the problems that are still open, and the jobs that have failed meanwhile, are reported."""
    because = f"{caller.name}: {wanted.reason}" if wanted.reason else caller.name
    return _shown(NotificationOut, flows.snooze(database, name, until=wanted.until, because=because), database)


@router.operator("DELETE /notifications/{name}/snooze", "End the snooze", NotificationNotFoundError)
def wake_notification(name: Name, database: DatabaseDep) -> None:
    flows.snooze(database, name, until=None, because=None)


def _shown(model: type[_Shown], found: Notification, database: Database, **more: object) -> _Shown:
    with reading(database.engine) as connection:
        webhook = webhook_store.get(connection, found.webhook_id)
        counts = delivery_store.open_counts(connection, [webhook.id]).get(webhook.id, {})
    return model.of(found, webhook, database.cipher, counts, database.clock(), **more)
