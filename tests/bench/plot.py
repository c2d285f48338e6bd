"""A plot of growth as SVG text: lines on two logarithmic axes, made with nothing but strings.

Start at `svg`.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP = 360, 220, 62, 34
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#555555")
_DASHES = {"durarepo": "", "restic": "6 3", "borg": "2 3"}

Line = Sequence[tuple[float, float]]
Panel = tuple[str, Mapping[str, Line]]


def svg(panels: Sequence[Panel]) -> str:
    """Return a picture of panels, two beside each other.

    Args:
        panels: a title and lines by name, ``program step``; points have positive numbers.
    """
    rows = (len(panels) + 1) // 2
    width, height = 2 * (_WIDTH + _LEFT + 130), rows * (_HEIGHT + _TOP + 46)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(panels):
        x = _LEFT + number % 2 * (width // 2)
        y = _TOP + number // 2 * (_HEIGHT + _TOP + 46)
        parts += _panel(x, y, title, {k: v for k, v in lines.items() if v})
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(x: int, y: int, title: str, lines: Mapping[str, Line]) -> list[str]:
    parts = [
        f'<text x="{x}" y="{y - 10}" font-size="13">{escape(title)}</text>',
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#999"/>',
    ]
    points = [point for line in lines.values() for point in line]
    if not points:
        return parts
    across = _decades([point[0] for point in points])
    up = _decades([point[1] for point in points])
    for power in range(across[0], across[1] + 1):
        at = x + _part(10.0**power, across) * _WIDTH
        parts.append(_grid(at, y, at, y + _HEIGHT))
        label = f"{10.0**power:g}"
        parts.append(f'<text x="{at}" y="{y + _HEIGHT + 15}" text-anchor="middle">{label}</text>')
    for power in range(up[0], up[1] + 1):
        at = y + (1 - _part(10.0**power, up)) * _HEIGHT
        parts.append(_grid(x, at, x + _WIDTH, at))
        parts.append(f'<text x="{x - 6}" y="{at + 4}" text-anchor="end">{10.0**power:g}</text>')
    for number, (name, line) in enumerate(sorted(lines.items())):
        colour = _COLOURS[number % len(_COLOURS)]
        placed = [
            f"{x + _part(a, across) * _WIDTH:.1f},{y + (1 - _part(b, up)) * _HEIGHT:.1f}"
            for a, b in sorted(line)
        ]
        dash = _DASHES.get(name.split(" ")[0], "")
        parts.append(
            f'<polyline points="{" ".join(placed)}" fill="none" stroke="{colour}" '
            f'stroke-width="2" stroke-dasharray="{dash}"/>'
        )
        parts.append(
            f'<text x="{x + _WIDTH + 8}" y="{y + 14 + 15 * number}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return parts


def _grid(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#ddd"/>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _part(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])
