"""How is a figure drawn as SVG? Bars by name, and points with a logarithmic axis; readable on a phone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 340
ROW, NAMES, VALUES = 21, 104, 44  # pixels
HIGH, LEFT, RIGHT, TOP, BOTTOM = 300, 34, 14, 12, 36
LETTER, LINE = 6.7, 13.0  # about the width of a letter and the height of a line


@dataclass(frozen=True)
class Bar:
    """A named value between 0 and `most`; `kind` is a class of the style: auto, mode, base."""

    name: str
    value: float
    kind: str


@dataclass(frozen=True)
class Point:
    """A named point: `x` from 0, `y` from 0 to 1."""

    name: str
    x: float
    y: float
    kind: str


@dataclass(frozen=True)
class Box:
    """A rectangle on the picture."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def bars(values: Sequence[Bar], most: float, told: str) -> str:
    """A bar for each value, in the order given; `told` says in words what is seen."""
    high = ROW * len(values) + 4
    room = WIDTH - NAMES - VALUES
    drawn = []
    for place, bar in enumerate(values):
        y = 2 + place * ROW
        wide = max(1.0, room * bar.value / most) if most else 1.0
        drawn.append(
            f'<text x="{NAMES - 6}" y="{y + 14}" text-anchor="end"{_bold(bar.kind)}>{escape(bar.name)}</text>'
            f'<rect class="{bar.kind}" x="{NAMES}" y="{y + 2}" width="{wide:.1f}" height="{ROW - 6}" rx="2"/>'
            f'<text x="{NAMES + wide + 5:.1f}" y="{y + 14}">{number(bar.value)}</text>'
        )
    return _svg(high, told, drawn)


def scatter(points: Sequence[Point], axis: str, told: str) -> str:
    """The points with `x` on a logarithmic axis, 0 on its left edge; a name without room is left to the pointer."""
    low, top = _decades([point.x for point in points if point.x > 0])
    drawn = [
        *_grid(low, top),
        f'<text class="axis" x="{WIDTH / 2}" y="{HIGH - 2}" text-anchor="middle">{escape(axis)}</text>',
    ]
    places = [(point, _across(point.x, low, top), _up(point.y)) for point in points]
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for _, x, y in places]
    for point, x, y in sorted(places, key=lambda one: one[0].kind != "auto"):
        title = f"<title>{escape(point.name)}: {number(point.y)} at {point.x:,.0f}</title>"
        drawn.append(f'<circle class="{point.kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>')
        found = _label(point.name, x, y, taken)
        if found is not None:
            taken.append(found)
            drawn.append(
                f'<text x="{found.left:.1f}" y="{found.bottom - 3:.1f}"{_bold(point.kind)}>{escape(point.name)}</text>'
            )
    return _svg(HIGH, told, drawn)


def number(value: float) -> str:
    """A share with three places without its zero, a count with one."""
    if value == int(value) and value > 1:
        return f"{value:.0f}"
    return f"{value:.1f}" if value > 1 else f"{value:.3f}".removeprefix("0") if value < 1 else "1"


def _label(name: str, x: float, y: float, taken: Sequence[Box]) -> Box | None:
    wide = LETTER * len(name)
    for left, top in ((x + 7, y - 6), (x - 7 - wide, y - 6), (x - wide / 2, y - 19), (x - wide / 2, y + 7),
                      (x + 5, y - 17), (x + 5, y + 5), (x - 5 - wide, y - 17), (x - 5 - wide, y + 5)):  # fmt: skip
        box = Box(left, top, left + wide, top + LINE)
        inside = box.left >= LEFT and box.right <= WIDTH and box.top >= 0 and box.bottom <= HIGH - BOTTOM + 8
        if inside and not any(box.meets(other) for other in taken):
            return box
    return None


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values, default=1.0)))
    return low, max(low + 1, math.ceil(math.log10(max(values, default=10.0))))


def _across(value: float, low: int, top: int) -> float:
    if value <= 0:
        return LEFT
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(value) - low) / (top - low)


def _up(value: float) -> float:
    return TOP + (HIGH - TOP - BOTTOM) * (1 - value)


def _grid(low: int, top: int) -> list[str]:
    drawn = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _up(share)
        drawn.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{share:g}</text>'
        )
    for decade in range(low, top + 1):
        x = _across(10.0**decade, low, top)
        drawn.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HIGH - BOTTOM}"/>'
            f'<text class="axis" x="{x:.1f}" y="{HIGH - BOTTOM + 14}" text-anchor="middle">{_power(decade)}</text>'
        )
    return drawn


def _power(decade: int) -> str:
    value: float = 10.0**decade
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"


def _bold(kind: str) -> str:
    return ' class="auto"' if kind == "auto" else ""


def _svg(high: float, told: str, drawn: Sequence[str]) -> str:
    body = "\n".join(drawn)
    return f'<svg viewBox="0 0 {WIDTH} {high:g}" role="img" aria-label="{escape(told)}">\n{body}\n</svg>'
