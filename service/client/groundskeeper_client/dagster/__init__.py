"""The parts for Dagster: a resource, assets that run jobs, and sensors of commits."""

from groundskeeper_client.dagster.asset import table_service_asset
from groundskeeper_client.dagster.commit_sensor import build_commit_asset_sensor, build_commit_sensor
from groundskeeper_client.dagster.resource import GroundskeeperResource

__all__ = ["GroundskeeperResource", "build_commit_asset_sensor", "build_commit_sensor", "table_service_asset"]
