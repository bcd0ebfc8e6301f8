"""Generated from the API's OpenAPI document by `python -m tests.client_generator`."""
