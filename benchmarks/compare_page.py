"""What the figures of the modes bear out, and one page of them that needs nothing from elsewhere."""

from collections.abc import Iterator, Mapping
from html import escape
from string import Template
from typing import Literal, NamedTuple

from benchmarks.compare_sets import CLAIMS, CompareSet
from benchmarks.runner import DATA, Cell, Rows, cell_text

CONTEXT, PUBLISHED = "the answer stands in the context", "published by others (with gpt-4o-mini)"
NEAR, SAVED, ALIKE_COST = 0.02, 0.5, 1.1
BASELINES = ("naive", "hyde", "rq")
Verdict = Literal["does not hold", "not measured", "holds"]
VERDICTS: dict[Verdict, str] = {"does not hold": "fails", "not measured": "unknown", "holds": "holds"}
# Colours: `auto`, the baselines of the literature, other modes.
KINDS = {"auto": "auto", **dict.fromkeys(("direct", "naive", "hyde", "rq", "ts"), "base")}
LOWEST_IS_BEST = ("calls*", "tokens in*", "tokens out*", "ms, median", "ms, 90%", "CPU ms")
_BEST = ' class="best"'


class Finding(NamedTuple):
    """A statement that was to be true, whether it is, and by which figures."""

    statement: str
    verdict: Verdict
    figures: str


class SetTable:
    """The figures of one set, by way of asking; `main` is the figure that ways are compared by."""

    def __init__(self, known: CompareSet, tables: Mapping[str, Rows]) -> None:
        self.known, self.rows, self.main = known, tables[known.name], known.figures[0].name
        self.contexts = tables.get(f"{known.name}: {CONTEXT}", {}).get("share", {})
        self.published = tables.get(f"{known.name}: {PUBLISHED}", {}).get("share", {})
        self.questions = max((self.figure(way, "asked") or 0 for way in self.rows), default=0)

    def figure(self, way: str, column: str) -> float | None:
        value = self.rows.get(way, {}).get(column)
        return value if isinstance(value, int | float) else None

    def answers(self, way: str) -> bool:
        """Whether a way can be asked without a model, so that it can be set beside others."""
        return self.figure(way, "asked") is not None

    def quality(self, way: str) -> float | None:
        return self.figure(way, self.main)

    def tokens(self, way: str) -> float | None:
        both = [self.figure(way, column) for column in ("tokens in*", "tokens out*")]
        return sum(one for one in both if one is not None) if None not in both else None

    def cost(self, way: str) -> str:
        return f"{self.figure(way, 'calls*') or 0:.1f} calls, {self.tokens(way) or 0:,.0f} tokens"


def findings(tables: Mapping[str, Rows], sets: Mapping[str, CompareSet]) -> list[Finding]:
    """Every statement that the sets can speak to, what does not hold first."""
    shown = [SetTable(known, tables) for name, known in sets.items() if name in tables]
    stated = [one for table in shown for read in (_auto, _levels, _whole) for one in read(table)]
    return sorted(stated, key=lambda one: list(VERDICTS).index(one.verdict))


def _verdict(holds: bool) -> Verdict:
    return "holds" if holds else "does not hold"


def _auto(table: SetTable) -> Iterator[Finding]:
    """`auto` beside the best other way, beside the baselines, and beside the cheapest that is as good as the best."""
    name, ours = table.known.name, table.quality("auto")
    others = {way: value for way in table.rows if way != "auto" and table.answers(way)
              and (value := table.quality(way)) is not None}  # fmt: skip
    if ours is None or not others:
        return
    best = max(others, key=lambda way: others[way])
    yield Finding(
        f"{name}: auto is at least the best single mode less {NEAR:.2f}", _verdict(ours >= others[best] - NEAR - 1e-9),
        f"{table.main}: auto {ours:.3f}, {best} {others[best]:.3f} ({ours - others[best]:+.3f})",
    )  # fmt: skip
    for way in BASELINES if table.known.multihop else ():
        value = table.quality(way)
        if value is not None:
            figures = f"{table.main}: auto {ours:.3f}, {way} {value:.3f}"
            yield Finding(f"{name} (multi-hop): auto is above {way}", _verdict(ours > value), figures)
        elif way in table.rows:
            yield Finding(f"{name} (multi-hop): auto is above {way}", "not measured", f"{way} needs a model")
    tokens = table.tokens("auto")
    near = {way: cost for way, value in others.items() if value >= others[best] - NEAR - 1e-9
            and (cost := table.tokens(way)) is not None}  # fmt: skip
    if tokens is not None and near:
        cheapest = min(near, key=lambda way: near[way])
        yield Finding(
            f"{name}: auto takes at most {ALIKE_COST - 1:.0%} more tokens than the cheapest way as good as the best",
            _verdict(tokens <= ALIKE_COST * near[cheapest]),
            f"auto: {table.cost('auto')}; {cheapest}: {table.cost(cheapest)}",
        )


def _levels(table: SetTable) -> Iterator[Finding]:
    """Each level of the graph alone beside both."""
    if table.known.judged == "claims":
        return
    for without, way in (("-High", "low"), ("-Low", "high")):
        pairs = {figure.name: (table.figure("hybrid", figure.name), table.figure(way, figure.name))
                 for figure in table.known.figures}  # fmt: skip
        if table.contexts:
            pairs["context"] = (_number(table.contexts.get("hybrid")), _number(table.contexts.get(without)))
        known = {name: (both, one) for name, (both, one) in pairs.items() if both is not None and one is not None}
        if known:
            holds = _verdict(all(one < both for both, one in known.values()))
            told = "; ".join(f"{name}: hybrid {both:.3f}, {way} {one:.3f}" for name, (both, one) in known.items())
            # Where both answer nothing the set cannot show it.
            verdict = holds if any(both > 0 for both, _ in known.values()) else "not measured"
            yield Finding(f"{table.known.name}: {without} (mode {way}) is below hybrid", verdict, told)


def _whole(table: SetTable) -> Iterator[Finding]:
    """Questions about the whole collection: coverage, and what it costs against reading a whole level."""
    covered, tokens = table.quality("global"), table.tokens("global")
    if table.known.judged != "claims" or covered is None:
        return
    yield Finding(
        f"Global questions get {CLAIMS} distinct claims or more, each supported, from {CLAIMS} documents",
        _verdict(covered == 1.0),
        f"mode global: {covered:.0%} of {table.questions} questions; {table.figure('global', 'claims')} claims on"
        " average. Offline a claim is a quote, hence supported; whether it answers is not judged",
    )
    for way in table.rows:
        level = table.tokens(way)
        if way.startswith("global, ") and tokens is not None and level:
            yield Finding(
                f"Dynamic selection saves {SAVED:.0%} of the tokens of reading all of {way.partition(', ')[2]}",
                _verdict(1 - tokens / level >= SAVED),
                f"{1 - tokens / level:.0%}: {table.cost('global')}, covers {covered:.0%}; {way}: {table.cost(way)}, "
                f"covers {table.quality(way) or 0:.0%}",
            )


def _number(value: Cell) -> float | None:
    return value if isinstance(value, int | float) else None


def page(tables: Mapping[str, Rows], sets: Mapping[str, CompareSet]) -> str:
    """The page as HTML, its style inside."""
    stated = [
        f'<li><span class="{VERDICTS[one.verdict]}">{one.verdict}</span>'
        f"<strong>{escape(one.statement)}</strong> {escape(one.figures)}</li>"
        for one in findings(tables, sets)
    ]
    sections = [_section(SetTable(known, tables)) for name, known in sets.items() if name in tables]
    template = Template((DATA / "compare_page.html").read_text(encoding="utf-8"))
    return template.substitute(findings="\n".join(stated), sections="\n".join(sections))


def _section(table: SetTable) -> str:
    known = table.known
    meanings = "; ".join(f"<b>{escape(figure.name)}</b>: {escape(figure.meaning)}" for figure in known.figures)
    beside = [
        f"<p>{escape(title)}: {', '.join(f'{escape(name)} {cell_text(value)}' for name, value in row.items())}.</p>"
        for title, row in ((PUBLISHED, table.published), (CONTEXT, table.contexts))
        if row
    ]
    return "\n".join([
        f'<section id="{escape(known.name)}">', f"<h2>{escape(known.name)}</h2>",
        f'<p>{escape(known.about)}. {table.questions} questions asked.</p><p class="soft">{meanings}.</p>',
        _ways(table), *beside, "</section>",
    ])  # fmt: skip


def _ways(table: SetTable) -> str:
    """A row for each way of asking; the best of each column is marked."""
    columns = [column for column in dict.fromkeys(c for row in table.rows.values() for c in row) if column != "note"]
    ways = [way for way in table.rows if table.answers(way)]
    best: dict[str, float] = {}
    for column in columns:
        values = [value for way in ways if (value := table.figure(way, column)) is not None]
        if values and column != "asked":
            best[column] = (min if column in LOWEST_IS_BEST else max)(values)
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    rows = []
    for way, row in table.rows.items():
        marked = [column for column in best if way in ways and row.get(column) == best[column]]
        cells = "".join(_cell(row.get(column), column in marked) for column in columns)
        note = f'<td class="note">{escape(str(row.get("note", "")))}</td>'
        shown = f'<tr class="{_kind(way)}" data-way="{escape(way)}">'
        rows.append(f'{shown}<th scope="row">{escape(way)}</th>{cells}{note}</tr>')
    head = f'<thead><tr><th scope="col">mode</th>{head}<th scope="col"></th></tr></thead>'
    return f'<div class="wide"><table>{head}\n<tbody>\n' + "\n".join(rows) + "\n</tbody></table></div>"


def _cell(value: Cell, is_best: bool) -> str:
    return f"<td{_BEST if is_best else ''}>{escape(cell_text(value))}</td>"


def _kind(way: str) -> str:
    return KINDS.get(way, "mode")
