"""Polls of tables: commits are noticed by the timeline, and a snapshot is kept of each table."""
