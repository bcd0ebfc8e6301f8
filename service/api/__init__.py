"""The REST API: a module for the routes of each resource, with its models beside it."""
