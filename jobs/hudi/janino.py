"""Compiles small Java classes in the JVM, by the compiler that Spark brings for its own generated code."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import get_java_class


def compiled(java: Any, source: str, name: str, *, beside: Any) -> Any:
    """Returns the compiled Java class of this name. `beside` is a class whose loader knows all that the source uses;
    executors do not have what is compiled here."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(get_java_class(beside).getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)
