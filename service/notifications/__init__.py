"""Notifications, which report problems and failed jobs to people. The settings of each say what is reported to whom,
and in how many messages."""
