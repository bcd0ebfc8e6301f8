"""The targets of notifications. Each target has a module that gives a message the form of the target's API."""
