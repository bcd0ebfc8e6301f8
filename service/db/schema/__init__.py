"""The tables of the service's database, and the rules that the database itself enforces.

A business rule that two concurrent calls could break together is a named constraint here; `service.db.violation` maps a
violation to its name. The migrations must build exactly this schema (a test compares them).
"""

from service.db.schema.access import AUDIT_IS_REFUSED as AUDIT_IS_REFUSED
from service.db.schema.access import audit_entries as audit_entries
from service.db.schema.access import sessions as sessions
from service.db.schema.access import tokens as tokens
from service.db.schema.catalog import COMMIT_INSTANT as COMMIT_INSTANT
from service.db.schema.catalog import TABLE_BASE_PATH as TABLE_BASE_PATH
from service.db.schema.catalog import commits as commits
from service.db.schema.catalog import consumers as consumers
from service.db.schema.catalog import partitions as partitions
from service.db.schema.catalog import samples as samples
from service.db.schema.catalog import snapshots as snapshots
from service.db.schema.catalog import tables as tables
from service.db.schema.catalog import watches as watches
from service.db.schema.clock import service_clock as service_clock
from service.db.schema.core import UtcDateTime as UtcDateTime
from service.db.schema.core import metadata as metadata
from service.db.schema.delegation import delegated_plans as delegated_plans
from service.db.schema.delivery import DELIVERY_IS_OPEN as DELIVERY_IS_OPEN
from service.db.schema.delivery import DELIVERY_IS_PENDING as DELIVERY_IS_PENDING
from service.db.schema.delivery import DELIVERY_OF_EVENT as DELIVERY_OF_EVENT
from service.db.schema.delivery import EVENT_ID as EVENT_ID
from service.db.schema.delivery import EVENT_IS_OF_PROBLEM as EVENT_IS_OF_PROBLEM
from service.db.schema.delivery import QUEUE_OF_WEBHOOK as QUEUE_OF_WEBHOOK
from service.db.schema.delivery import deliveries as deliveries
from service.db.schema.delivery import delivery_attempts as delivery_attempts
from service.db.schema.delivery import events as events
from service.db.schema.delivery import notifications as notifications
from service.db.schema.delivery import queues as queues
from service.db.schema.delivery import told_problems as told_problems
from service.db.schema.delivery import webhooks as webhooks
from service.db.schema.health import acknowledgements as acknowledgements
from service.db.schema.health import problem_rounds as problem_rounds
from service.db.schema.health import standing_problems as standing_problems
from service.db.schema.incidents import INCIDENT_INSTANT as INCIDENT_INSTANT
from service.db.schema.incidents import INCIDENT_IS_OF_LATE_FILES as INCIDENT_IS_OF_LATE_FILES
from service.db.schema.incidents import INCIDENT_IS_STANDING as INCIDENT_IS_STANDING
from service.db.schema.incidents import incidents as incidents
from service.db.schema.queue import JOB_HOLDING_TABLE as JOB_HOLDING_TABLE
from service.db.schema.queue import JOB_IDEMPOTENCY as JOB_IDEMPOTENCY
from service.db.schema.queue import JOB_IS_UNKNOWN as JOB_IS_UNKNOWN
from service.db.schema.queue import JOB_PER_KIND as JOB_PER_KIND
from service.db.schema.queue import JOB_REWRITING as JOB_REWRITING
from service.db.schema.queue import job_attempts as job_attempts
from service.db.schema.queue import job_log_lines as job_log_lines
from service.db.schema.queue import jobs as jobs
from service.db.schema.queue import workers as workers
from service.db.schema.revisions import schema_revisions as schema_revisions
from service.db.schema.scheduling import automation as automation
from service.db.schema.scheduling import decisions as decisions
from service.db.schema.scheduling import freezes as freezes
from service.db.schema.scheduling import planning as planning
from service.db.schema.scheduling import policies as policies
from service.db.schema.scheduling import table_policies as table_policies
from service.db.schema.tallies import attempt_costs as attempt_costs
from service.db.schema.tallies import attempt_figures as attempt_figures
from service.db.schema.tallies import figure_totals as figure_totals
from service.db.schema.tallies import fleet_samples as fleet_samples
from service.db.schema.tallies import tallies as tallies
from service.db.schema.turns import breakers as breakers
from service.db.schema.turns import lock_looks as lock_looks
from service.db.schema.turns import turns as turns
