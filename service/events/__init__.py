"""The events, and the notifications that wake listeners in the service's processes."""
