"""Rewrites rows with Arrow: reads, merges, splits, sorts and writes file slices."""
