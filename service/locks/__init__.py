"""The locks of tables: checks of the locks for which jobs wait, and the removal of a lock that a dead writer has
left."""
