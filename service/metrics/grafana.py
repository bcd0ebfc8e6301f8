"""The dashboard for Grafana, which shows the metrics at /metrics. The panels are in rows, from left to right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from string import ascii_uppercase
from typing import Any

_COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_LAST_VALUE = {"options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}}


@dataclass(frozen=True)
class _Panel:
    """A panel. `queries` maps legends to expressions of PromQL."""

    title: str
    unit: str
    queries: Mapping[str, str]
    width: int = 8
    height: int = 7
    type: str = "timeseries"
    id: int | None = None  # Panels that were added later have an id, so that the ids of the others stay. Links use ids.


def _number(title: str, unit: str, query: str, *, legend: str = "", width: int = 3, id_: int | None = None) -> _Panel:
    """Returns a panel that shows only the last value."""
    return _Panel(title, unit, {legend: query}, width, height=4, type="stat", id=id_)


_ROWS: Mapping[str, tuple[_Panel, ...]] = {
    "At a glance": (
        _number("Tables", "short", 'max(groundskeeper_tables{job="$job"})'),
        _number("Unreadable tables", "short", 'max(groundskeeper_tables_unreadable{job="$job"})'),
        _number("Open incidents", "short", 'sum(max by (kind) (groundskeeper_incidents{job="$job",state="open"}))'),
        _number("Oldest queued job", "s", 'max(groundskeeper_queue_oldest_job_age_seconds{job="$job"})'),
        _number("Ready workers", "short", 'sum(max by (group) (groundskeeper_workers_ready{job="$job"}))'),
        _number("Upkeep paused", "bool_yes_no", 'max(groundskeeper_paused{job="$job"})'),
        _number(
            "Open problems",
            "short",
            'sum by (severity) (max by (kind, severity) (groundskeeper_problems{job="$job"}))',
            legend="{{severity}}",
            id_=35,
            width=6,
        ),
    ),
    "Jobs": (
        _Panel(
            "Jobs that have not ended",
            "short",
            {"{{kind}} {{state}}": 'max by (kind, state) (groundskeeper_jobs{job="$job"}) > 0'},
        ),
        _Panel(
            "Ended jobs per hour",
            "short",
            {
                "{{kind}} {{outcome}}": "max by (kind, outcome)"
                ' (increase(groundskeeper_jobs_finished_total{job="$job"}[1h])) > 0'
            },
        ),
        _Panel(
            "Time of an attempt, 95th percentile",
            "s",
            {
                "{{kind}}": "histogram_quantile(0.95, max by (kind, le)"
                ' (increase(groundskeeper_job_attempt_duration_seconds_bucket{job="$job",outcome="succeeded"}[6h])))'
            },
        ),
        _Panel(
            "Age of the oldest queued job",
            "s",
            {"{{group}}": 'max by (group) (groundskeeper_queue_oldest_job_age_seconds{job="$job"})'},
        ),
        _Panel(
            "Waits for locks, seconds per hour",
            "s",
            {"{{kind}}": 'max by (kind) (increase(groundskeeper_lock_wait_seconds_total{job="$job"}[1h])) > 0'},
        ),
        _Panel(
            "Lost leases per hour",
            "short",
            {"{{kind}}": 'max by (kind) (increase(groundskeeper_leases_lost_total{job="$job"}[1h])) > 0'},
        ),
        _Panel(
            "Bytes read by jobs, per second",
            "Bps",
            {"{{kind}}": 'max by (kind) (rate(groundskeeper_job_read_bytes_total{job="$job"}[1h])) > 0'},
            width=12,
        ),
        _Panel(
            "Bytes written by table services, per second",
            "Bps",
            {"{{kind}}": 'max by (kind) (rate(groundskeeper_service_written_bytes_total{job="$job"}[1h])) > 0'},
            width=12,
        ),
    ),
    "Tables": (
        _Panel(
            "Log files that wait for a compaction",
            "bytes",
            {
                "all tables": 'max(groundskeeper_backlog_log_bytes{job="$job"})',
                "largest of a table": 'max(groundskeeper_backlog_log_bytes_max{job="$job"})',
            },
        ),
        _Panel(
            "Commits since compaction, commits on the timeline",
            "short",
            {
                "since compaction, most": 'max(groundskeeper_delta_commits_since_compaction_max{job="$job"})',
                "on the timeline, most": 'max(groundskeeper_timeline_commits_max{job="$job"})',
            },
        ),
        _Panel("Poll lag", "s", {"longest overdue poll": 'max(groundskeeper_poll_lag_seconds{job="$job"})'}),
        _Panel(
            "Incidents",
            "short",
            {"{{kind}} {{state}}": 'max by (kind, state) (groundskeeper_incidents{job="$job"}) > 0'},
        ),
        _Panel(
            "Tables with problems",
            "short",
            {
                "unreadable": 'max(groundskeeper_tables_unreadable{job="$job"})',
                "commits missed": 'max(groundskeeper_tables_with_missed_commits{job="$job"})',
            },
        ),
        _Panel("Size of base files", "bytes", {"all tables": 'max(groundskeeper_table_base_bytes{job="$job"})'}),
    ),
    "Workers": (
        _Panel(
            "Workers and slots",
            "short",
            {
                "workers {{group}}": 'max by (group) (groundskeeper_workers{job="$job"})',
                "slots {{group}}": 'max by (group) (groundskeeper_worker_slots{job="$job"})',
            },
            width=12,
        ),
        _Panel(
            "Time since the last call of a worker",
            "s",
            {"{{group}}": 'max by (group) (groundskeeper_worker_last_heartbeat_age_seconds{job="$job"})'},
            width=12,
        ),
    ),
    "Webhooks": (
        _Panel(
            "Attempts per second",
            "reqps",
            {
                "{{outcome}}": "sum by (outcome)"
                ' (rate(groundskeeper_webhook_attempt_duration_seconds_count{job="$job"}[5m]))'
            },
        ),
        _Panel(
            "Waiting and given up",
            "short",
            {"{{state}}": 'max by (state) (groundskeeper_webhook_deliveries{job="$job"})'},
        ),
        _Panel("Lag", "s", {"longest waiting delivery": 'max(groundskeeper_webhook_lag_seconds{job="$job"})'}),
    ),
    "Service": (
        _Panel(
            "Requests per second",
            "reqps",
            {"{{status}}": 'sum by (status) (rate(groundskeeper_http_request_duration_seconds_count{job="$job"}[5m]))'},
        ),
        _Panel(
            "Latency, 95th percentile of the slowest routes",
            "s",
            {
                "{{method}} {{route}}": "topk(8, histogram_quantile(0.95, sum by (route, method, le)"
                ' (rate(groundskeeper_http_request_duration_seconds_bucket{job="$job",'
                'route!~"/v1/worker/leases|/v1/events"}[5m]))))'
            },
        ),
        _Panel(
            "Background tasks and database",
            "short",
            {
                "failing {{instance}}": 'sum by (instance) (groundskeeper_background_tasks_failing{job="$job"})',
                "late {{instance}}": 'sum by (instance) (groundskeeper_background_tasks_late{job="$job"})',
                "database {{instance}}": 'min by (instance) (groundskeeper_database_up{job="$job"})',
            },
        ),
    ),
}


def dashboard() -> dict[str, Any]:
    """Returns the dashboard in the form that Grafana imports (schema version 39)."""
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {
            "name": "job",
            "type": "query",
            "label": "Job",
            "datasource": _SOURCE,
            "query": {"query": "label_values(groundskeeper_build_info, job)", "refId": "job"},
            "refresh": 1,
        },
    ]
    return {
        "title": "Groundskeeper",
        "uid": "groundskeeper",
        "tags": ["hudi", "groundskeeper"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": variables},
        "panels": list(_panels()),
    }


def _panels() -> Iterator[dict[str, Any]]:
    ids = count(1)
    y = 0
    for title, panels in _ROWS.items():
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": y}
        yield {"id": next(ids), "type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []}
        y, x = y + 1, 0
        for panel in panels:
            if x + panel.width > _COLUMNS:
                y, x = y + panel.height, 0
            place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
            yield {
                "id": panel.id or next(ids),
                "type": panel.type,
                "title": panel.title,
                "datasource": _SOURCE,
                "gridPos": place,
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": letter, "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
                    for letter, (legend, expression) in zip(ascii_uppercase, panel.queries.items(), strict=False)
                ],
                **(_LAST_VALUE if panel.type == "stat" else {}),
            }
            x += panel.width
        y += panels[-1].height
