"""The commands: the service, a worker, the administration and the client."""
