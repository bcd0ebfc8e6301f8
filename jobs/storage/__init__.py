"""The storages: Hadoop options become Arrow filesystems."""
