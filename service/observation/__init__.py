"""Polls of tables: each poll finds the new commits on a table's timeline, and updates the table's snapshot."""
