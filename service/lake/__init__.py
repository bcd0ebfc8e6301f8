"""The reading of tables without a JVM: timeline, file slices, locks."""
