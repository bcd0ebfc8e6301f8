"""The protocol beside writers: replacement of file groups, stale writes, recovery, preflight checks."""
