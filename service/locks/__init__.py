"""The locks of tables: checks for waiting jobs, and the removal of a lock that a dead writer has left."""
