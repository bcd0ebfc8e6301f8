"""The Airflow provider: `GroundskeeperJobOperator`, `CommitAssetOperator`, `TableHealthySensor`, `CommitSeenSensor`,
`GroundskeeperHook`.

The provider needs Airflow 2.10.5 or later. Airflow calls `get_provider_info` when it starts, so this module must not
import Airflow. The other modules do import Airflow.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

_HERE = "groundskeeper_client.airflow"
_NAME = "Groundskeeper"


def get_provider_info() -> dict[str, Any]:
    """Returns the description for Airflow's provider manager (`provider_info.schema.json`)."""
    return {
        "package-name": "groundskeeper-client",
        "name": _NAME,
        "description": "Table services for Apache Hudi tables.",
        "versions": [version("groundskeeper-client")],
        "integrations": [{"integration-name": _NAME, "external-doc-url": "", "tags": ["service"]}],
        "operators": [{"integration-name": _NAME, "python-modules": [f"{_HERE}.operator", f"{_HERE}.assets"]}],
        "sensors": [{"integration-name": _NAME, "python-modules": [f"{_HERE}.sensors"]}],
        "hooks": [{"integration-name": _NAME, "python-modules": [f"{_HERE}.hook"]}],
        "triggers": [{"integration-name": _NAME, "python-modules": [f"{_HERE}.triggers"]}],
        "connection-types": [
            {"hook-class-name": f"{_HERE}.hook.GroundskeeperHook", "connection-type": "groundskeeper"}
        ],
    }
