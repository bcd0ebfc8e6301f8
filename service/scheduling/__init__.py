"""The decisions about tables: a policy for each kind of job, and the planner that starts jobs."""
