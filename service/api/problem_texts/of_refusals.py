"""Refusals of jobs: each says why the job would harm the table. Workers report them as the `error` of a job, and in the
result of a dry run.

Titles and hints are those of the code in `jobs` that refuses; a test compares them, and finds refusals without a text.
"""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.of_refused_arrow_merges import ARROW_MERGES
from service.api.problem_texts.of_refused_plans import PLANS
from service.api.problem_texts.of_refused_rescales import RESCALES
from service.api.problem_texts.of_refused_syncs import SYNCS
from service.api.problem_texts.of_refused_tables import TABLES
from service.api.problem_texts.of_refused_undoing import UNDOING
from service.api.problem_texts.of_worker_starts import WORKER_STARTS

GROUPS: Final = (TABLES, ARROW_MERGES, RESCALES, PLANS, UNDOING, SYNCS, WORKER_STARTS)
OF_REFUSALS: Final = {name: text for group in GROUPS for name, text in group.items()}
