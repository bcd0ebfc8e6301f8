"""The commands that call a running service by its REST API."""
