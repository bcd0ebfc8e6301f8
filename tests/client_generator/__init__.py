"""Writes `service/client/generated` from the API's OpenAPI document: `python -m tests.client_generator`."""
