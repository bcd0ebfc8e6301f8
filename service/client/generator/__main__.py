"""Writes the generated part of the client into the source tree."""

from __future__ import annotations

from service.client.generator.writing import FOLDER, files

for name, text in files().items():
    (FOLDER / name).write_text(text)
