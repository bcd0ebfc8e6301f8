"""Finds tables in catalogs: AWS Glue, Hive metastores, Unity Catalog, and databases that list tables."""
