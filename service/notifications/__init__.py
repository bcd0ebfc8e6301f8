"""Notifications: which problems and failed jobs are told to whom, in how many messages."""
