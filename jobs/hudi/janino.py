"""Compiles small Java classes in the JVM, by the compiler that Spark brings for its own generated code."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_java_class

if TYPE_CHECKING:
    from jobs.hudi.java_view import JavaView

_compiling = threading.Lock()
# Constructors by the names of their classes, with the JVM that has each.
_made: dict[str, tuple[Any, Any]] = {}


def compiled(java: Any, source: str, name: str, *, beside: Any) -> Any:
    """Returns the compiled Java class of this name. `beside` is a class whose loader knows all that the source uses;
    executors do not have what is compiled here."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(get_java_class(beside).getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)


def instance(jvm: JavaView, source: str, name: str, *arguments: Any, beside: Any) -> Any:
    """Returns a new object of a class that is compiled once a JVM, which takes up to a second."""
    with _compiling:
        java, constructor = _made.get(name, (None, None))
        if java is not jvm.java:
            constructor = compiled(jvm.java, source, name, beside=beside).getConstructors()[0]
            _made[name] = jvm.java, constructor
    return constructor.newInstance(jvm.array(arguments))
