"""Reads and what they cost, gains of jobs, and objectives."""
