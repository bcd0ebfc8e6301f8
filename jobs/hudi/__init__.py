"""Drives Hudi's own code through py4j, which no other package imports."""
