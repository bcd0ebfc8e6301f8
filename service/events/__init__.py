"""The events of the service, and the notifications that wake listeners in the service's processes."""
