"""Reads the README and the guides in `.docs`, and the shell commands in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / ".docs").rglob("*.md"))
GUIDE_OF_TOOLS = ROOT / ".docs" / "integrations.md"
PAGES = {str(path.relative_to(ROOT)): path for path in (README, *GUIDES)}

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shell_blocks(path: Path) -> list[str]:
    return _BLOCK.findall(path.read_text())


def python_block(path: Path, word: str) -> str:
    """Returns the only Python example with this word."""
    [block] = [block for block in _PYTHON.findall(path.read_text()) if word in block]
    return str(block)


def is_installation(block: str) -> bool:
    """Returns whether this is one of the two lines of the set-up, which `tests/unit/test_code_checks.py` compares with
    CI."""
    return block.startswith("python3 -m venv ")


def is_program(block: str) -> bool:
    """Returns whether this is a single call of our own program, which `tests/unit/test_guides.py` compares with the
    command line."""
    return bool(re.fullmatch(r"\.venv/bin/groundskeeper [^|;&]*\n", block))
