"""Writes `groundskeeper_client/generated` from the OpenAPI document: `python -m service.client.generator`."""
