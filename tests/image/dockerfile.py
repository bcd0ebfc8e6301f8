"""Reads the Dockerfile, with only the instructions that it uses."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Instruction:
    word: str
    text: str

    @property
    def words(self) -> list[str]:
        """Returns the parts of `ENV`, `COPY`, or of an `ENTRYPOINT` or `CMD` in JSON."""
        parsed: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return parsed


@dataclass
class Stage:
    """A stage. `parent` is the name of an earlier stage, or of an image."""

    name: str
    parent: str
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, word: str) -> Instruction:
        return [each for each in self.instructions if each.word == word][-1]


def stages() -> list[Stage]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    found: list[Stage] = []
    for line in re.sub(r"\\\n", "", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            parent, _, name = rest.partition(" AS ")
            found.append(Stage(name, parent))
        elif word:
            found[-1].instructions.append(Instruction(word, rest.strip()))
    return found
