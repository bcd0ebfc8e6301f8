"""Options of clients that use the job's lock."""

# Options for clients that lock by themselves during their work: see `jobs.hudi.lock_bridge`.
LENT_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # The client waits for the table's lock until a checkpoint ends the wait.
    "hoodie.write.lock.wait_time_ms": str(24 * 3600 * 1000),
    "hoodie.write.lock.client.wait_time_ms_between_retry": "50",
    "hoodie.write.lock.client.num_retries": "5",
}
