"""Hudi's own code, driven through py4j. Nothing outside this package touches the JVM."""
