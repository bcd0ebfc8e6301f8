"""The tables of the service's database, and the rules that the database itself enforces.

A business rule that two concurrent calls could break together is a named constraint here; `service.db.violation` maps a
violation to its name. The migrations must build exactly this schema (a test compares them).
"""

from service.db.schema.access import (
    AUDIT_IS_REFUSED,
    audit_entries,
    sessions,
    tokens,
)
from service.db.schema.catalog import (
    COMMIT_INSTANT,
    TABLE_BASE_PATH,
    commits,
    consumers,
    partitions,
    samples,
    snapshots,
    tables,
    watches,
)
from service.db.schema.clock import (
    service_clock,
)
from service.db.schema.core import (
    UtcDateTime,
    metadata,
)
from service.db.schema.delegation import (
    delegated_plans,
)
from service.db.schema.delivery import (
    DELIVERY_IS_OPEN,
    DELIVERY_IS_PENDING,
    DELIVERY_OF_EVENT,
    EVENT_ID,
    QUEUE_OF_WEBHOOK,
    deliveries,
    delivery_attempts,
    events,
    queues,
    webhooks,
)
from service.db.schema.health import (
    problem_rounds,
    standing_problems,
)
from service.db.schema.incidents import (
    INCIDENT_INSTANT,
    INCIDENT_IS_OF_LATE_FILES,
    INCIDENT_IS_STANDING,
    incidents,
)
from service.db.schema.queue import (
    JOB_HOLDING_TABLE,
    JOB_IDEMPOTENCY,
    JOB_IS_UNKNOWN,
    JOB_PER_KIND,
    JOB_REWRITING,
    job_attempts,
    job_log_lines,
    jobs,
    workers,
)
from service.db.schema.revisions import (
    schema_revisions,
)
from service.db.schema.scheduling import (
    automation,
    decisions,
    planning,
    policies,
    table_policies,
)
from service.db.schema.tallies import (
    tallies,
)
from service.db.schema.turns import (
    breakers,
    lock_looks,
    turns,
)

__all__ = [
    "AUDIT_IS_REFUSED",
    "COMMIT_INSTANT",
    "DELIVERY_IS_OPEN",
    "DELIVERY_IS_PENDING",
    "DELIVERY_OF_EVENT",
    "EVENT_ID",
    "INCIDENT_INSTANT",
    "INCIDENT_IS_OF_LATE_FILES",
    "INCIDENT_IS_STANDING",
    "JOB_HOLDING_TABLE",
    "JOB_IDEMPOTENCY",
    "JOB_IS_UNKNOWN",
    "JOB_PER_KIND",
    "JOB_REWRITING",
    "QUEUE_OF_WEBHOOK",
    "TABLE_BASE_PATH",
    "UtcDateTime",
    "audit_entries",
    "automation",
    "breakers",
    "commits",
    "consumers",
    "decisions",
    "delegated_plans",
    "deliveries",
    "delivery_attempts",
    "events",
    "incidents",
    "job_attempts",
    "job_log_lines",
    "jobs",
    "lock_looks",
    "metadata",
    "partitions",
    "planning",
    "policies",
    "problem_rounds",
    "queues",
    "samples",
    "schema_revisions",
    "service_clock",
    "sessions",
    "snapshots",
    "standing_problems",
    "table_policies",
    "tables",
    "tallies",
    "tokens",
    "turns",
    "watches",
    "webhooks",
    "workers",
]
