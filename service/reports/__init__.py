"""Reports about a period: the work of the service, and the trend of all tables and jobs together."""
