"""The service: REST API, scheduler, webhooks, dashboard and command line."""
