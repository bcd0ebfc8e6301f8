"""Errors of webhooks."""

from __future__ import annotations

from service.model.errors import ConflictError, InvalidError


class UrlNotAllowedError(InvalidError):
    type = "url-not-allowed"
    title = "Webhooks may not be sent to this URL"
    hint = "Use an https URL with a public address; GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS can allow other hosts."
    why = (
        "Webhooks go to public addresses by https only. A caller could use an address of the service's own network, or "
        "a loopback or link-local one, to reach hosts that are closed to the caller. Host names are resolved before "
        "each request."
    )
    example = "hooks.internal resolves to 10.0.0.5, which is private."


class HeaderNotAllowedError(InvalidError):
    type = "header-not-allowed"
    title = "This header cannot be sent with a webhook"
    hint = "Names that the request itself needs are reserved, and a value must be one line of printable ASCII."
    why = (
        "Headers that change how the request is framed, routed or signed are refused, such as Host, Content-Length and"
        " webhook-signature. Line breaks in a header are refused, too."
    )
    example = "Host"


class WebhookDisabledError(ConflictError):
    type = "webhook-disabled"
    title = "The webhook is disabled, so nothing is sent to it"
    hint = "POST /v1/webhooks/{id}/enable enables it."
    why = (
        "The webhook was disabled by hand, or because nothing could be delivered to it for days. Nothing is sent to it"
        " until it is enabled."
    )
    example = "wh_5d0c9b8a7f6e4d3c is disabled: ada disabled it."


class DeliveryEndedError(ConflictError):
    type = "delivery-ended"
    title = "The delivery is not pending, so it cannot be skipped"
    hint = "GET /v1/webhooks/{id} shows in `blocked` the deliveries that hold others up."
    why = (
        "Only a delivery that waits for its next attempt can hold up the deliveries behind it. This one was already "
        "delivered, given up or skipped."
    )
    example = "Delivery dlv_6f0a1b2c3d4e5f60 is delivered."


class KafkaMissingError(ConflictError):
    type = "kafka-not-installed"
    title = "The service was installed without its Kafka client"
    hint = "An administrator has to run pip install 'groundskeeper[kafka]' and restart the service."
    why = "The URL names a Kafka topic, and the client for Kafka is an extra of the installation."
    example = "kafka+ssl://broker-1:9093/lake-events"


class NotificationNeededError(InvalidError):
    type = "notification-needed"
    title = "This receiver cannot read the events of a webhook"
    hint = "Create a notification: PUT /v1/notifications/{name}, or `groundskeeper notifications add`."
    why = (
        "The URL belongs to Slack, Microsoft Teams or PagerDuty. A webhook sends CloudEvents, which they refuse. A"
        " notification sends messages in their own form, grouped and limited in number."
    )
    example = "hooks.slack.com belongs to slack."


class WebhookOfNotificationError(ConflictError):
    type = "webhook-of-notification"
    title = "The webhook belongs to a notification"
    hint = "Change or delete the notification, at /v1/notifications/{name}."
    why = "A notification owns the webhook that sends its messages. Both change, and are deleted, together."
    example = "wh_5d0c9b8a7f6e4d3c sends messages to slack."
