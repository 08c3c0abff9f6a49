"""Which of several things has the most, the least, the first? Figures are compared as amounts and printed as
written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.language.asked import DIRECTION, Ask, Expected
from prompts.language.concepts import concept_terms
from prompts.language.values import amount, values_in
from prompts.language.words import fold, fold_name
from prompts.reading.claims import Claim, Desk, Reading, abstain, claim, ending, plain, quoted
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance, Scored, term_set

_DATED = frozenset(
    (
        "first last later earlier older younger oldest youngest newest latest "
        + "born released founded formed opened died"
    ).split()
)
_DATED_ZH = ("早", "晚", "先", "年长", "年轻", "大几岁", "古老")
_SHARED = 0.34
_LIVES = re.compile(r"\b(?:born|birth|die[ds]?|death)\b", re.I)
_AGES = frozenset("older younger oldest youngest".split())
# The measure that a superlative implies: "longest" compares lengths.
_IMPLIED = {
    "longest longer shortest shorter": "length",
    "highest higher tallest taller": "height",
    "oldest newest older newer": "opened year",
    "widest wider": "width",
    "deepest deeper": "depth",
    "heaviest heavier": "weight",
    "largest larger biggest bigger": "size area",
    "cheapest cheaper": "cost",
    "earliest earlier latest later first": "year date opened",
    "fastest faster": "speed",
}
_MEASURE = {word: measure for words, measure in _IMPLIED.items() for word in words.split()}
_MEASURE_ZH = {
    "长": "长度",
    "高": "高度",
    "宽": "宽度",
    "深": "深度",
    "重": "重量",
    "大": "面积",
    "早": "年",
    "晚": "年",
}


_LENGTHS = re.compile(
    r"\d\s*-?(?:[kcm]?m|met(?:re|er)s?|kilomet(?:re|er)s?|miles?|feet|foot|ft|inches|yards?|hours?|minutes?|days?|"
    r"weeks?|months?|years?|pages?)\b|[米里尺丈]|[年月日时分]",
    re.I,
)
_WEIGHTS = re.compile(r"\d\s*-?(?:[km]?g|t|tons?|tonnes?|pounds?|lbs?|stone)\b|[吨克斤]", re.I)
# "The highest income" is no height: only words that never speak of sums count.
_UNITS = (
    (frozenset("longest longer shortest shorter tallest taller widest wider deepest deeper".split()), _LENGTHS),
    (frozenset("heaviest heavier".split()), _WEIGHTS),
)
_ARTICLE = re.compile(r"^(?:the|a|an) (?=[A-Z])", re.I)


@dataclass(frozen=True, slots=True)
class Figure:
    """What one of the compared things has: its name, the raw figure, its amount, and the evidence."""

    thing: str
    raw: str
    number: float
    evidence: Evidence


def compare(desk: Desk) -> Reading:
    """The winner with its figure, then the figures of the others.

    With fewer than two figures nothing can be compared: what is known of the options is offered as partial.
    """
    figures = (_rows_of_options(desk) or _of_options(desk)) if desk.ask.options else _of_rows(desk)
    if len(figures) < 2:
        return _known_of_options(desk, figures)
    return ranked(desk.ask, figures)


def ranked(ask: Ask, figures: Sequence[Figure]) -> Reading:
    """Two or more figures in the order asked for, the first of them as the answer."""
    ordered = sorted(figures, key=lambda figure: (figure.number, figure.thing), reverse=ask.direction != "min")
    winner = ordered[0]
    colon = "：" if ask.chinese else ": "
    return Reading(
        claims=tuple(Claim(quoted(f.evidence), (f.evidence.number,)) for f in ordered[: max(3, len(ask.options))]),
        values=(winner.thing,),
        support="none" if len(figures) >= len(ask.options) else "partial",
        lead=ending(f"{winner.thing}{colon}{winner.raw}", ask),
    )


def measured(ask: Ask) -> Expected:
    """What the comparison compares: dates for "first" and "born later", money or numbers for the rest."""
    if ask.expects in {"date", "money", "number"}:
        return ask.expects
    if ask.chinese:
        return "date" if any(word in ask.text for word in _DATED_ZH) else "number"
    return "date" if _DATED & set(_words(ask.text)) else "number"


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def beside(option: str, names: Iterable[str]) -> list[str]:
    """Those of the linked names that an option holds, or that hold it."""
    own = fold_name(option)
    return [name for name in names if fold_name(name) in own or own in fold_name(name)]


def _of_options(desk: Desk) -> list[Figure]:
    """For each option the figure of the sentence that is about it and about what is compared."""
    figures = []
    for option in desk.ask.options:
        relevance = _judge_of(desk, option)
        others = [other for other in desk.ask.options if other != option]
        best = _best(relevance, desk.evidence, option, others, units_of(desk.ask))
        number = amount_of(best.value, measured(desk.ask)) if best else None
        if best is not None and number is not None:
            figures.append(Figure(_named(option, relevance.aliases), best.value, number, best.evidence))
    return figures


def _rows_of_options(desk: Desk) -> list[Figure]:
    """The options' own rows of a table whose column is what is compared; nothing unless each option has one."""
    rows = {fold_name(figure.thing): figure for figure in _of_rows(desk)}
    figures = [rows.get(fold_name(option)) for option in desk.ask.options]
    return [figure for figure in figures if figure] if all(figures) else []


def _judge_of(desk: Desk, option: str) -> Relevance:
    """Judges evidence for what is asked of one option."""
    ask, head = desk.ask, desk.ask.text
    for other in ask.options:
        head = head.replace(other, " ")
    words = _words(head)
    if not ask.chinese:
        # Superlatives are the asker's words: sources state lengths and years, seldom that something is longer.
        head = " ".join(word for word in words if word not in DIRECTION)
        head += " born" if _AGES & set(words) and ask.expects == "person" else ""
    sub = replace(ask, text=f"{option} {head}", expects=measured(ask), options=(), noun="")
    return desk.relevance.about(sub, beside(option, desk.relevance.aliases))


def units_of(ask: Ask) -> re.Pattern[str] | None:
    """How a figure of what is compared must be written: a length in metres, not in crowns; None where any will do."""
    words = set(_words(ask.text))
    return next((pattern for sizes, pattern in _UNITS if words & sizes), None)


def _best(
    relevance: Relevance, evidence: Sequence[Evidence], option: str, others: Sequence[str],
    units: re.Pattern[str] | None,
) -> Scored | None:  # fmt: skip
    """The best valued sentence about one option and not rather about another, with a figure in these units."""
    own = set(concept_terms(option)) or {fold(option)}
    theirs = {term for other in others for term in concept_terms(other)}
    rivals = [set(concept_terms(other)) - own for other in others]
    # What all of them are called ("… Bridge") tells none of them from the others.
    own, strange = own - theirs or own, theirs - own
    best: tuple[float, int, Scored] | None = None
    for scored in relevance.rank(plain(evidence)):
        piece = scored.evidence
        here = term_set(piece.text) | term_set(piece.title)
        share = len(own & (here | term_set(piece.heading) | term_set(piece.before))) / len(own)
        dated = relevance.ask.expects == "date" and _opens_with(option, piece) and not _LIVES.search(relevance.ask.text)
        if units and scored.value and not units.search(scored.value):
            continue
        if share < 1 and any(rival and rival <= here for rival in rivals):
            continue  # it is about the other one
        if not scored.value or share < 0.5 or (scored.cues < _SHARED and not dated):
            continue
        fit = scored.score + share - 0.3 * len(strange & here) / max(len(strange), 1)
        if best is None or (fit, -piece.number) > best[:2]:
            best = (fit, -piece.number, scored)
    return best[2] if best else None


def _opens_with(option: str, piece: Evidence) -> bool:
    """Whether a sentence introduces the option: its first date is the thing's own ("Orla is a 1952 film")."""
    return fold_name(piece.text).startswith(fold_name(option) + " ")


def _known_of_options(desk: Desk, figures: Sequence[Figure]) -> Reading:
    """What is known where the figures do not suffice: the one figure found, named as partial; else nothing."""
    if not figures:
        return abstain(desk.ask)
    return Reading(claims=tuple(claim(figure.evidence) for figure in figures), support="partial")


def amount_of(raw: str, expects: Expected) -> float | None:
    """The amount of a raw figure; of a date its year with the part of the year that has passed, as far as it is
    told."""
    if expects != "date":
        return amount(raw)
    dates = [value for value in values_in(raw) if value.kind == "date" and value.number is not None]
    return (dates[0].number or 0.0) + _within_year(dates[0].text) if dates else None


_ISO = re.compile(r"\d{3,4}[-年](\d{1,2})(?:[-月](\d{1,2}))?")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _within_year(date: str) -> float:
    """How much of the year a written date has passed (0 to 1); 0 where it tells the year alone."""
    iso = _ISO.search(date)
    if iso:
        return (int(iso[1]) - 1 + (int(iso[2] or 1) - 1) / 31) / 12
    low = date.lower()
    month = next((place for place, name in enumerate(_MONTHS) if name in low), None)
    if month is None:
        return 0.0
    day = next((int(word) for word in _DAY.findall(low)), 1)
    return (month + (day - 1) / 31) / 12


def _named(option: str, known: Mapping[str, Sequence[str]]) -> str:
    """The option by its name where the graph knows one, else as the question writes it."""
    full = _ARTICLE.sub("", max(known, key=len, default=option))
    return full if len(full) > len(option) else option[:1].upper() + option[1:]


def _of_rows(desk: Desk) -> list[Figure]:
    """For a superlative over everything: the column that the question is about, one figure a row."""
    wanted = {*desk.relevance.cues, *_implied(desk.ask)}
    columns: dict[str, list[Evidence]] = {}
    for cell in desk.elements:
        if cell.cells:
            columns.setdefault(cell.attribute, []).append(cell)
    best, rows = 0.0, list[Evidence]()
    for column, cells in columns.items():
        terms = set(concept_terms(column.replace("_", " ")))
        share = len(terms & wanted) / max(len(terms), 1)
        numeric = [cell for cell in cells if amount(cell.value) is not None]
        if share > best and len(numeric) >= 2:
            best, rows = share, numeric
    figures = [Figure(cell.label, cell.value, amount(cell.value) or 0.0, cell) for cell in rows]
    return list({figure.thing: figure for figure in figures}.values())


def _implied(ask: Ask) -> set[str]:
    """The terms of the measure that the question's superlative implies."""
    words = _words(ask.text)
    measures = [_MEASURE[word] for word in words if word in _MEASURE]
    measures += [measure for sign, measure in _MEASURE_ZH.items() if ask.chinese and f"最{sign}" in ask.text]
    return {term for measure in measures for term in concept_terms(measure)}
