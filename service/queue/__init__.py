"""The queue of jobs: submission, leases, retries and results."""
