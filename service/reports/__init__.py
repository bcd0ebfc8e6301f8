"""Reports of a period: what the service has done, and how the fleet developed."""
