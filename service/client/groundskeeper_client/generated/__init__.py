"""Generated from the API's OpenAPI document by `python -m service.client.generator`."""
