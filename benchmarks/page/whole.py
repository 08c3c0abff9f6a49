"""How are all figures shown on one page? A file that needs nothing else: style and pictures are inside."""

from collections.abc import Sequence
from html import escape

from benchmarks.compare_findings import findings
from benchmarks.compare_records import Comparison, Figures, Finding, SetFigures, Verdict
from benchmarks.page.plots import Bar, Point, bars, number, scatter
from benchmarks.page.style import STYLE
from benchmarks.page.tables import kind_of, ways_table

CLASSES: dict[Verdict, str] = {"holds": "holds", "does not hold": "fails", "not measured": "unknown"}
ALL = "python -m benchmarks.compare --data DIR --server --out page.html"
INTRO = """<p>The same questions, asked in every mode. Quality, seconds and processor time are measured offline: no
model, extractive answers, no memory, caches of its own for each mode. Columns with * were counted with every role on a
scripted server, whose answers are rules: calls and tokens mean something there, the answers do not. So the two halves
of a row are two runs, and quality with a real model is not on this page.</p>
<p><code>direct</code> and <code>hyde</code> write before they search and need a model: they have no quality here. A
dash is a figure that does not exist; nothing stands for it. A question on which a mode breaks counts as wrong, and its
row says so.</p>
<p class="soft key"><span class="auto"></span>auto<span class="mode"></span>other modes<span class="base"></span>
baselines of the literature (direct, naive, HyDE, RQ, TS). In tables the best of each column is marked, among the modes
that could answer.</p>"""


def page(found: Comparison) -> str:
    """The page as HTML."""
    stated = findings(found)
    sections = "\n".join(map(section, found.sets))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trellis: the modes compared</title>
<style>
    {STYLE}
</style>
</head>
<body>
<main>
<h1>Trellis: the modes compared</h1>
{INTRO}
<p class="soft">All of it: <code>{ALL}</code>; each figure names its own command.</p>
<h2>What holds, and what does not</h2>
{stated_list(stated)}
{sections}
</main>
</body>
</html>
"""


def stated_list(stated: Sequence[Finding]) -> str:
    """The findings; what does not hold is said first."""
    order: list[Verdict] = ["does not hold", "not measured", "holds"]
    rows = [
        f'<li><span class="verdict {CLASSES[one.verdict]}">{one.verdict}</span>'
        f"<strong>{escape(one.statement)}</strong> <span>{escape(one.figures)}</span></li>"
        for one in sorted(stated, key=lambda one: order.index(one.verdict))
    ]
    return '<ul class="findings">\n' + "\n".join(rows) + "\n</ul>"


def section(found: SetFigures) -> str:
    """One set: pictures, table, and what others published."""
    told = "; ".join(f"<b>{escape(one.name)}</b>: {escape(one.meaning)}" for one in found.measures)
    pictures = "\n".join(_figure(title, svg, found.command) for title, svg in _pictures(found))
    return f"""<section id="{escape(found.name)}">
<h2>{escape(found.name)}</h2>
<p>{escape(found.told)}. {found.questions} questions asked{_counted(found)}.</p>
<p class="soft">{told}.</p>
<div class="plots">
{pictures}
</div>
{ways_table(found)}
{_beside(found)}
</section>"""


def _counted(found: SetFigures) -> str:
    counted = max((one.served.questions for one in found.ways if one.served), default=0)
    return f"; calls and tokens (*) are of the first {counted}" if counted else ""


def _pictures(found: SetFigures) -> list[tuple[str, str]]:
    pictures = []
    for measure in found.measures:
        known = [one for one in found.ways if measure.name in one.quality]
        known.sort(key=lambda one: -one.quality[measure.name])
        values = [Bar(one.way.name, one.quality[measure.name], kind_of(one)) for one in known]
        most = 1.0 if measure.share else max((bar.value for bar in values), default=1.0)
        told = f"{measure.name} by mode: " + ", ".join(f"{bar.name} {number(bar.value)}" for bar in values)
        pictures.append((f"{measure.name}, by mode", bars(values, most, told)))
    points, axis = _points(found)
    if points:
        told = f"{found.main.name} against {axis}: " + ", ".join(f"{one.name} {one.x:,.0f}" for one in points)
        pictures.append((f"{found.main.name} against {axis}", scatter(points, axis, told)))
    return pictures


def _points(found: SetFigures) -> tuple[list[Point], str]:
    """Quality against tokens where these were counted, else against processor time."""
    served = any(one.served for one in found.ways)
    axis = "tokens a question* (left edge: none)" if served else "CPU milliseconds a question"
    points = []
    for one in found.ways:
        cost = _cost(one, served)
        quality = one.quality.get(found.main.name)
        if quality is not None and cost is not None:
            points.append(Point(one.way.name, cost, quality, kind_of(one)))
    return points, axis


def _cost(one: Figures, served: bool) -> float | None:
    if served:
        return one.served.tokens if one.served else None
    return one.asked.cpu_ms if one.asked else None


def _figure(title: str, svg: str, command: str) -> str:
    caption = f"<b>{escape(title)}</b><code>{escape(command)}</code>"
    return f"<figure><figcaption>{caption}</figcaption>\n{svg}\n</figure>"


def _beside(found: SetFigures) -> str:
    parts = []
    if found.beside:
        told = ", ".join(f"{escape(name)} {number(value)}" for name, value in found.beside.items())
        parts.append(f"<p>Published by others for the same questions and passages (with gpt-4o-mini): {told}.</p>")
    if found.standing:
        told = ", ".join(f"{escape(name)} {number(value)}" for name, value in found.standing.items())
        parts.append(
            "<p>How often the gold answer stands in what a mode lays before the answering step (without questions of "
            "yes or no and those that hold their answer; −High is low alone, −Low is high alone, −Origin leaves texts "
            f"out): {told}.</p>"
        )
    return "\n".join(parts)
