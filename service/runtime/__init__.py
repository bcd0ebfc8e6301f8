"""The composition of the running service: settings, background tasks, local workers."""
