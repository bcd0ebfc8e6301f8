"""The commands that call a running service through its REST API."""
