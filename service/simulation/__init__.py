"""Replays the commits of tables under another policy: which jobs would have run, and at what cost."""
