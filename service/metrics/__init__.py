"""The metrics for Prometheus, and the dashboard for Grafana."""
