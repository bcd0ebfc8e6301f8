"""Reads of Hudi tables that use the buckets of the bucket index, for PySpark sessions of users."""

from groundskeeper_spark import bucketed
from groundskeeper_spark.bucketed import Result
from groundskeeper_spark.table import Table

__all__ = ["Result", "Table", "bucketed"]
