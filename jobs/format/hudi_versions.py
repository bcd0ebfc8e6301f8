"""Hudi's versions, as owners declare them: `1.0.2`, `0.15.0-amzn-1`."""

from __future__ import annotations

import re


def release(version: str) -> tuple[int, int]:
    """Returns the first two numbers of a version, such as (0, 15); they decide what it knows."""
    first, second = [*re.findall(r"\d+", version), "0", "0"][:2]
    return int(first), int(second)
