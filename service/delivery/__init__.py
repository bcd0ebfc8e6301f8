"""The delivery of events to webhooks, Kafka and OpenLineage: an outbox, signatures and retries."""
