"""Java's `.properties` files, such as `.hoodie/hoodie.properties`."""

from __future__ import annotations

import javaproperties


def parse_properties(content: bytes) -> dict[str, str]:
    """Parses properties like `java.util.Properties.load(InputStream)` (Java 17). The bytes are ISO 8859-1; other
    characters are written as `\\uXXXX`. Raises ValueError for an escape that is cut short."""
    parsed: dict[str, str] = javaproperties.loads(content.decode("iso-8859-1"))
    return parsed
