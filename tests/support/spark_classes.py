"""Replaces classes of Spark that take much of the tests' CPU time and make no difference to them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_java_class

from jobs.hudi import session

if TYPE_CHECKING:
    from collections.abc import Iterator

# The methods that `SparkContext.clean` of Spark 3.5 calls. The cleaner looks for the capturing class of each closure in
# the jars, parses it, and serializes the closure once more. A closure of compiled Scala needs no cleaning (Spark 3.5,
# `ClosureCleaner.clean`: only those of the interactive shell do), and one that cannot be serialized fails when its task
# is.
CLOSURES = """
package org.apache.spark.util;

public final class ClosureCleaner$ {
  public static ClosureCleaner$ MODULE$ = new ClosureCleaner$();

  public void clean(Object closure, boolean checkSerializable, boolean cleanTransitively) {
  }

  public boolean clean$default$2() {
    return true;
  }

  public boolean clean$default$3() {
    return true;
  }
}
"""
# Spark visits all objects that a sort or a shuffle holds, by reflection, to know when it has to use the disk. The rows
# of a short run never fill the memory.
SIZES = """
package org.apache.spark.util;

public final class SizeEstimator$ {
  public static SizeEstimator$ MODULE$ = new SizeEstimator$();

  public long estimate(Object object) {
    return 1024L;
  }
}
"""


@contextmanager
def replaced(*sources: str) -> Iterator[None]:
    """Replaces these classes in the JVMs that sessions start meanwhile."""
    start = session._gateway

    def started(*given: Any) -> Any:
        gateway = start(*given)
        for source in sources:
            _define(gateway.jvm, source)
        return gateway

    session._gateway = started
    try:
        yield
    finally:
        session._gateway = start


def _define(java: Any, source: str) -> None:
    """Defines the class before Spark loads its own, in the same package of the same class loader."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(source)
    (code,) = compiler.getBytecodes().values()
    neighbour = get_java_class(java.org.apache.spark.util.ParentClassLoader)
    handles = java.java.lang.invoke.MethodHandles
    handles.privateLookupIn(neighbour, handles.lookup()).defineClass(code)
