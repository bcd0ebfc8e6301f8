"""Notifications: which problems and failed jobs are reported to whom, in how many messages."""
