"""Groundskeeper inside other tools, by its REST API. Each folder needs the tool, httpx and msgspec, nothing else."""
