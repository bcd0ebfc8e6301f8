"""Draws a measurement for .docs/benchmarks.md as an SVG that is readable on light and on dark pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = {
    "groundskeeper": "Groundskeeper",
    "hudi_rescale": "Hudi's own rescale",
    "overwrite": "insert_overwrite_table",
    "floor": "pyarrow copy (the floor)",
    "floor_of_output": "copy of our output",
    "again": "our output expanded once more",
    "after_hudi": "Hudi's rescale, expanded by us",
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
    """Returns an SVG with one bar for each run in the result of an expansion's `--json`: its seconds."""
    found = []
    for key, run in result["runs"].items():
        variant, _, codec = key.rpartition("_")
        found.append((f"{_NAMES[variant]}, {codec}", run["seconds"], variant == "groundskeeper"))
    return bars(_title(result), _note(result), found)


def bars(title: str, note: str, found: Sequence[tuple[str, float, bool]]) -> str:
    """Returns an SVG with one bar for each name and number of seconds; True gives it the colour that stands out."""
    longest = max(seconds for _, seconds, _ in found)
    room = _WIDTH - _LEFT - _RIGHT
    lines = []
    for place, (name, seconds, is_ours) in enumerate(found):
        top = _TOP + place * _STEP
        length = max(seconds / longest * room, 1)
        middle = top + _BAR * 0.72
        lines += [
            f'  <text x="{_LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(name)}</text>',
            f'  <rect class="{"ours" if is_ours else "bar"}" x="{_LEFT}" y="{top}" width="{length:.1f}"'
            f' height="{_BAR}" rx="3"/>',
            f'  <text x="{_LEFT + length + 8:.1f}" y="{middle:.1f}">{seconds:.1f} s</text>',
        ]
    height = _TOP + len(found) * _STEP + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
            f'aria-label="{escape(title)}">',
            f"<style>{_STYLE}</style>",
            f'  <text class="title" x="10" y="20">{escape(title)}</text>',
            f'  <text class="note" x="10" y="40">{escape(note)}</text>',
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
