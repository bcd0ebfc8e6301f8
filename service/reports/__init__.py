"""Reports of a period: the work of the service, and the development of the fleet."""
