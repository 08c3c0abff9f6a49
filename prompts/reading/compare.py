"""Which of several things has the most, the least, the first? Figures are compared as amounts and printed as written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.language.concepts import concept_terms
from prompts.language.question import Ask, Expected
from prompts.language.values import amount, values_in
from prompts.language.words import fold, fold_name
from prompts.reading.claims import Claim, Desk, Reading, abstain, quoted
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance, Scored

_DATED = frozenset("first last later earlier older younger oldest youngest born released founded opened died newest latest".split())
_SHARED = 0.34


@dataclass(frozen=True, slots=True)
class Figure:
    """What one of the compared things has: its name, the raw figure, its amount, and the evidence."""

    thing: str
    raw: str
    number: float
    evidence: Evidence


def compare(desk: Desk) -> Reading:
    """The winner with its figure, then the figures of the others; needs two figures to compare."""
    figures = _of_options(desk) if desk.ask.options else _of_rows(desk)
    if len(figures) < 2:
        return abstain(desk.ask)
    ordered = sorted(figures, key=lambda figure: (figure.number, figure.thing), reverse=desk.ask.direction != "min")
    winner = ordered[0]
    lead = f"{winner.thing}：{winner.raw}。" if desk.ask.chinese else f"{winner.thing}: {winner.raw}."
    complete = not desk.ask.options or len(figures) == len(desk.ask.options)
    shown = ordered if desk.ask.options else ordered[:3]
    return Reading(
        claims=tuple(Claim(quoted(figure.evidence), (figure.evidence.number,)) for figure in shown),
        values=(winner.thing,), support="none" if complete else "partial", lead=lead,
    )


def measured(ask: Ask) -> Expected:
    """What the comparison compares: dates for "first" and "born later", money or numbers for the rest."""
    if ask.expects in {"date", "money", "number"}:
        return ask.expects
    return "date" if _DATED & set(fold(ask.text).split()) else "number"


def _of_options(desk: Desk) -> list[Figure]:
    """For each option the figure of the sentence that is about it and about what is compared."""
    ask = desk.ask
    expects = measured(ask)
    head = ask.text
    for option in ask.options:
        head = head.replace(option, " ")
    figures = []
    for option in ask.options:
        sub = replace(ask, text=f"{option} {head}", expects=expects, options=())
        known = {name: forms for name, forms in desk.aliases.items() if fold_name(name) in fold_name(option) or fold_name(option) in fold_name(name)}
        relevance = Relevance(sub, desk.weights, known)
        others = [other for other in ask.options if other != option]
        best = _best(relevance, desk.evidence, option, others)
        if best is not None:
            number = amount_of(best.value, expects)
            if number is not None:
                figures.append(Figure(_named(option, known), best.value, number, best.evidence))
    return figures


def _best(relevance: Relevance, evidence: Sequence[Evidence], option: str, others: Sequence[str]) -> Scored | None:
    """The best valued sentence about one option and not rather about another."""
    own = set(concept_terms(option)) or {fold(option)}
    strange = {term for other in others for term in concept_terms(other)} - own
    ranked = []
    for scored in relevance.rank([piece for piece in evidence if piece.attribute != "step"]):
        about = set(concept_terms(f"{scored.evidence.title} {scored.evidence.heading} {scored.evidence.text} {scored.evidence.before}"))
        here = set(concept_terms(scored.evidence.text)) | set(concept_terms(scored.evidence.title))
        share = len(own & about) / len(own)
        if scored.value and share >= 0.5 and scored.cues >= _SHARED:
            ranked.append((scored.score + share - 0.3 * len(strange & here) / max(len(strange), 1), -scored.evidence.number, scored))
    return max(ranked, key=lambda item: item[:2])[2] if ranked else None


def amount_of(raw: str, expects: Expected) -> float | None:
    """The amount of a raw figure; of a date its year, refined by month and day where it has them."""
    if expects == "date":
        dates = [value for value in values_in(raw) if value.kind == "date"]
        return dates[0].number if dates else None
    return amount(raw)



def _named(option: str, known: Mapping[str, Sequence[str]]) -> str:
    """The option by its name where the graph knows one, else as the question writes it."""
    full = max(known, key=len, default=option)
    return full if len(full) > len(option) else option[:1].upper() + option[1:]


def _of_rows(desk: Desk) -> list[Figure]:
    """For a superlative over everything: the column that the question is about, one figure a row."""
    relevance = desk.relevance
    cues = set(relevance.cues)
    columns: dict[str, list[Evidence]] = {}
    for cell in desk.elements:
        if cell.cells:
            columns.setdefault(cell.attribute, []).append(cell)
    best, rows = 0.0, list[Evidence]()
    for column, cells in columns.items():
        terms = set(concept_terms(column.replace("_", " ")))
        share = len(terms & (cues | set(_implied(desk.ask)))) / max(len(terms), 1)
        numeric = [cell for cell in cells if amount(cell.value) is not None]
        if share > best and len(numeric) >= 2:
            best, rows = share, numeric
    figures = [Figure(cell.label, cell.value, amount(cell.value) or 0.0, cell) for cell in rows]
    return list({figure.thing: figure for figure in figures}.values())


def _implied(ask: Ask) -> tuple[str, ...]:
    """The measure that a superlative implies: "longest" compares lengths."""
    pairs = {
        "longest": "length", "longer": "length", "shortest": "length", "shorter": "length", "highest": "height",
        "tallest": "height", "oldest": "opened year", "newest": "opened year", "widest": "width", "deepest": "depth",
        "heaviest": "weight", "largest": "size area", "cheapest": "cost", "earliest": "year date opened", "latest": "year date opened",
        "fastest": "speed", "first": "year date opened",
    }
    return tuple(term for word in fold(ask.text).replace("?", " ").split() for term in concept_terms(pairs.get(word, "")))
