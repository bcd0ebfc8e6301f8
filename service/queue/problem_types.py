"""The types of problems of jobs that the queue finds, not a worker."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

WORKER_LOST: Final = ProblemType(
    "worker-lost",
    "The worker sent no heartbeat before its lease expired",
    why="No heartbeat came before the lease expired: the worker died, lost its network, or stood still.",
    example="Worker host-4711-1f0c2a held attempt 1 of 3.",
    hint="Check the worker's log: it may have been killed, or have lost its connection to the service.",
    retriable=True,
)
OUTCOME_UNKNOWN: Final = ProblemType(
    "outcome-unknown",
    "Nobody knows whether the attempt committed",
    why="The worker could not find out whether its commit has landed, for example because the storage did not answer.",
    hint="The next attempt checks the table's timeline first.",
    retriable=True,
)
INSTANT_NOT_COMPLETED: Final = ProblemType(
    "instant-not-completed",
    "The worker reported success, but the table's timeline does not show it",
    why="The service compares each success with the table's timeline, and the reported instant is not complete there."
    " The next poll of the timeline settles the job.",
    example="Not completed: 20260101120000000.",
    hint="Compare the table's timeline with the worker's log: the commit may have been rolled back or restored.",
)
INSTANT_NOT_ARCHIVED: Final = ProblemType(
    "instant-not-archived",
    "The worker reported an archival, but the table's timeline does not show it",
    why="The service compares each archival with the table's timeline, where the instants still are.",
    example="Still on the timeline: 20260101120000000.",
    hint="Compare the table's timeline with the worker's log.",
)
WITHDRAWN: Final = ProblemType(
    "withdrawn",
    "The service withdrew the job before a worker took it",
    why="A policy had queued the job. Before a worker took it, automatic jobs were paused, the maintenance window "
    "closed, or an incident was opened.",
    example="Upkeep was paused.",
    hint="The policy decides again when the pause or the incident has ended, or when the next window opens.",
)
