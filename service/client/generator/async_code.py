"""Makes the code of the asynchronous client from the code of the synchronous one."""

from __future__ import annotations

import re

# Patterns with their replacements. The source must contain each pattern.
_RULES = {
    r'\A"""The client for programs without an event loop."""': (
        '"""The client for programs with an event loop (asyncio). Generated from `groundskeeper_client.client` by\n'
        '`python -m service.client.generator`."""'
    ),
    r"Several threads may share it\.": "One event loop uses a client.",
    r"^import time$": "import asyncio\nimport time",
    r"\bClient\b": "AsyncClient",
    r"\bIterator\b": "AsyncIterator",
    r"\b__(enter|exit)__\b": r"__a\1__",
    r"^    def (?!__init__)": "    async def ",
    r"\btime\.sleep\(": "await asyncio.sleep(",
    r"\bself\.exchange\((.*)\)\.": r"(await self.exchange(\1)).",
    r"\bself\.(send|close)\(": r"await self.\1(",
    r"\bself\._http\.send\(": "await self._http.send(",
    r"\b(answer|self\._http)\.(read|close)\(": r"await \1.a\2(",
    r"\bfor (\w+) in (\w+)\.iter_lines\(": r"async for \1 in \2.aiter_lines(",
    r"^( *)yield from (\S+)$": r"\1for each in \2:\n\1    yield each",
}


def code(source: str) -> str:
    """Returns the module of the asynchronous client for a module of the synchronous one."""
    for pattern, text in _RULES.items():
        source, times = re.subn(pattern, text, source, flags=re.MULTILINE)
        assert times, f"nothing in the client fits the rule {pattern}"
    return source
