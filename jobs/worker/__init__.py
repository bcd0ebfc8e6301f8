"""The worker: it leases jobs, runs them in one Spark session, and reports."""
