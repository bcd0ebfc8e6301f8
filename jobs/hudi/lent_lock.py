"""Options of clients whose lock is the one that the job lends them."""

# For clients that lock by themselves, in the midst of their work: see `jobs.hudi.lock_bridge`.
LENT_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # The table's lock is waited for until a checkpoint ends that; a wait that is interrupted is soon given up.
    "hoodie.write.lock.wait_time_ms": str(24 * 3600 * 1000),
    "hoodie.write.lock.client.wait_time_ms_between_retry": "50",
    "hoodie.write.lock.client.num_retries": "5",
}
