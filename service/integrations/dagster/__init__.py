"""Groundskeeper in Dagster: a resource, assets that run jobs, and a sensor of commits."""

from service.integrations.dagster.asset import table_service_asset
from service.integrations.dagster.commit_sensor import build_commit_sensor
from service.integrations.dagster.resource import GroundskeeperResource

__all__ = ["GroundskeeperResource", "build_commit_sensor", "table_service_asset"]
