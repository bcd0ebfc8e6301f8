"""Draws a measurement for .docs/benchmarks.md as an SVG that is readable on light and on dark pages."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

_NAMES = {
    "groundskeeper": "Groundskeeper",
    "hudi_rescale": "Hudi's own rescale",
    "overwrite": "insert_overwrite_table",
    "floor": "pyarrow copy (the floor)",
    "floor_of_output": "copy of our output",
    "again": "our output expanded once more",
}
_WIDTH, _LEFT, _RIGHT, _BAR, _STEP, _TOP = 760, 220, 90, 20, 30, 56

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .note { fill: #656d76; font-size: 12px }
  .bar { fill: #8c959f }
  .ours { fill: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9198a1 }
    .bar { fill: #6e7681 }
    .ours { fill: #3fb950 }
  }
"""


def drawn(result: dict[str, Any]) -> str:
    """Returns an SVG with one bar for each run in the result of `--json`; its length shows the run's seconds."""
    runs: dict[str, dict[str, Any]] = result["runs"]
    longest = max(run["seconds"] for run in runs.values())
    room = _WIDTH - _LEFT - _RIGHT
    lines = []
    for place, (key, run) in enumerate(runs.items()):
        variant, _, codec = key.rpartition("_")
        top = _TOP + place * _STEP
        length = max(run["seconds"] / longest * room, 1)
        kind = "ours" if variant == "groundskeeper" else "bar"
        middle = top + _BAR * 0.72
        lines += [
            f'  <text x="{_LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(_NAMES[variant])}, {codec}</text>',
            f'  <rect class="{kind}" x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR}" rx="3"/>',
            f'  <text x="{_LEFT + length + 8:.1f}" y="{middle:.1f}">{run["seconds"]:.1f} s</text>',
        ]
    height = _TOP + len(runs) * _STEP + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
            f'aria-label="{escape(_title(result))}">',
            f"<style>{_STYLE}</style>",
            f'  <text class="title" x="10" y="20">{escape(_title(result))}</text>',
            f'  <text class="note" x="10" y="40">{escape(_note(result))}</text>',
            *lines,
            "</svg>\n",
        ]
    )


def _title(result: dict[str, Any]) -> str:
    before = result["table"]["buckets"]
    return f"{before} to {before * result['factor']} buckets: seconds, shorter is better"


def _note(result: dict[str, Any]) -> str:
    table = result["table"]
    return (
        f"{table['rows'] / 1e6:g} million rows, {table['columns']} columns, {table['partitions']} partitions, "
        f"{result['input_bytes'] / 1e6:.0f} MB of {table['codec']} Parquet, "
        f"{result['cores']} cores under load {result['load']:g}, one run"
    )
