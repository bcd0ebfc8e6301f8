"""The targets of notifications: one module for each gives a message the form that the target publishes."""
