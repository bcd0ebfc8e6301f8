"""Errors of webhooks."""

from __future__ import annotations

from service.model.errors import ConflictError, InvalidError


class UrlNotAllowedError(InvalidError):
    type = "url-not-allowed"
    title = "Webhooks may not be sent to this URL"
    hint = "Use an https URL with a public address; GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS can allow other hosts."


class HeaderNotAllowedError(InvalidError):
    type = "header-not-allowed"
    title = "This header cannot be sent with a webhook"
    hint = "Names that the request itself needs are reserved, and a value must be one line of printable ASCII."


class WebhookDisabledError(ConflictError):
    type = "webhook-disabled"
    title = "The webhook is disabled, so nothing is sent to it"
    hint = "POST /v1/webhooks/{id}/enable enables it."


class DeliveryEndedError(ConflictError):
    type = "delivery-ended"
    title = "The delivery is not pending, so it cannot be skipped"
    hint = "GET /v1/webhooks/{id} shows in `blocked` the deliveries that hold others up."


class KafkaMissingError(ConflictError):
    type = "kafka-not-installed"
    title = "The service was installed without its Kafka client"
    hint = "An administrator has to run pip install 'groundskeeper[kafka]' and restart the service."
