"""One process of the service: its server, its ticks, its local workers."""
