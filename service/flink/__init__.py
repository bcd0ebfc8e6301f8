"""Flink's REST API, as far as stopping a job with a savepoint needs it."""
