"""The comparison as a drawing: CPU for each request, a bar for each server under each query, on a logarithmic scale."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path

import orjson

from benchmarks.servers import OURS, SERVERS

WIDTH, LEFT, RIGHT = 760, 250, 70
BAR, GAP, HEAD, TOP = 15, 3, 26, 34
BREAK = 12

# The colours follow the reader's choice of light or dark.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 13px; }
.scale, .value { fill: #59636e; font-size: 11px; }
.line { stroke: #d1d9e0; }
.ours { fill: #bf5b00; } .graphql { fill: #4f77aa; } .hand { fill: #8b949e; }
text.us { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .scale, .value { fill: #9198a1; } .line { stroke: #3d444d; }
  .ours { fill: #f0883e; } .graphql { fill: #6c9bd2; } .hand { fill: #768390; }
}
"""

TITLES = {
    "Q1": "Q1: one container, three scalars",
    "Q2": "Q2: a container, its 20 pallets, their 15 boxes each",
    "Q3": "Q3: 50 boxes, up to pallet and container",
    "Q4": "Q4: ten pallets of a container, with cursors",
    "Q5": "Q5: ten containers with their 20 pallets",
}

Figures = Mapping[str, Mapping[str, float]]


class Scale:
    """Milliseconds to pixels, by their logarithm."""

    def __init__(self, figures: Figures) -> None:
        values = [value for found in figures.values() for value in found.values()]
        self._low = math.floor(math.log10(min(values)))
        self._high = math.ceil(math.log10(max(values)))

    def x(self, value: float) -> float:
        """Give the place of a figure."""
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    @property
    def marks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self._low, self._high + 1)]


def draw(figures: Figures) -> str:
    """Draw the CPU milliseconds of each server under each query as an SVG."""
    scale = Scale(figures)
    parts: list[str] = []
    y = TOP
    for query, found in figures.items():
        parts.append(f'<text class="title" x="0" y="{y + 14}">{escape(TITLES[query])}</text>')
        y += HEAD
        for name, value in found.items():
            parts += _bar(name, value, scale, y)
            y += BAR + GAP
        y += BREAK
    lines = [f'<text class="scale" x="0" y="{TOP - 14}">CPU for each request, logarithmic</text>']
    for mark in scale.marks:
        x = scale.x(mark)
        lines.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{y - BREAK}"/>')
        lines.append(f'<text class="scale" x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{mark:g} ms</text>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">',
            "<title>CPU for each GraphQL request, in milliseconds, on a logarithmic scale</title>",
            f"<style>{STYLE}</style>",
            *lines,
            *parts,
            "</svg>\n",
        ]
    )


def _bar(name: str, value: float, scale: Scale, y: float) -> list[str]:
    kind = "ours" if name == OURS else "graphql" if SERVERS[name].is_graphql else "hand"
    us = ' class="us"' if name == OURS else ""
    end = scale.x(value)
    return [
        f'<text{us} x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(SERVERS[name].title)}</text>',
        f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" rx="2"/>',
        f'<text class="value" x="{end + 5:.1f}" y="{y + 12}">{value:.3g}</text>',
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", type=Path, help="what benchmarks.run --plot kept")
    parser.add_argument("drawing", type=Path)
    options = parser.parse_args()
    content = orjson.loads(options.figures.read_bytes())
    options.drawing.write_text(
        draw({query: {name: one["cpu_ms"] for name, one in found.items()} for query, found in content.items()})
    )
