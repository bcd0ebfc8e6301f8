"""Compiles small Java classes in the JVM, with the compiler that Spark uses for generated code."""

from __future__ import annotations

import threading
from typing import Any

from py4j.java_gateway import JavaObject, get_java_class

from jobs.hudi.java_view import JavaView

_compiling = threading.Lock()
# Constructors by class name, each with its JVM.
_made: dict[str, tuple[Any, Any]] = {}


def compiled(java: Any, source: str, name: str, *, beside: Any) -> Any:
    """Returns the compiled Java class of this name. `beside` is a class, also a compiled one, whose class loader finds
    everything that the source uses. Executors of a cluster do not have the compiled class."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    loaded = beside if isinstance(beside, JavaObject) else get_java_class(beside)
    compiler.setParentClassLoader(loaded.getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)


def instance(jvm: JavaView, source: str, name: str, *arguments: Any, beside: Any) -> Any:
    """Returns a new object of a class that is compiled once for each JVM; compiling takes up to a second."""
    with _compiling:
        java, constructor = _made.get(name, (None, None))
        if java is not jvm.java:
            constructor = compiled(jvm.java, source, name, beside=beside).getConstructors()[0]
            _made[name] = jvm.java, constructor
    return constructor.newInstance(jvm.array(arguments))
