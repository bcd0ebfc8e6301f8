"""The table services: a module runs each kind of job."""
