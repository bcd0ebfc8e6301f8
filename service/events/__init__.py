"""The events, and the notifications that wake those who wait for them."""
