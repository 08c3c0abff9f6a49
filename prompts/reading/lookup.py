"""What is the fact, or the list of things, that a question asks for?"""

from collections.abc import Sequence

from prompts.language.words import fold, fold_name
from prompts.reading.claims import Claim, Desk, Reading, abstain, claim, ending, plain, quoted, supported
from prompts.reading.evidence import Evidence
from prompts.reading.pick import says_its_kind
from prompts.reading.relevance import Scored

MAX_LISTED = 12
_TYPED = frozenset({"date", "money", "number", "person", "place"})
_EXACT = frozenset({"date", "money", "number"})


def look_up(desk: Desk) -> Reading:
    """The best sentence with its value; abstains where no sentence is about the names and the matter of the
    question."""
    exact, typed = desk.ask.expects in _EXACT, desk.ask.expects in _TYPED
    # A figure of the right kind beside the right name says much of what was asked; a bare name does not.
    # Where no name is known, the words alone must say what is meant.
    named = bool(desk.relevance.names)
    floor = (0.3 if exact else 0.4) if named else 0.55
    near: Scored | None = None
    for scored in desk.relevance.best_first(plain(desk.evidence), lambda s: supported(s, cues=floor) or _is_near(s)):
        if supported(scored, cues=floor) and (scored.value or not typed):
            return _told(scored)
        if near is None and _is_near(scored) and (scored.value or not exact) and (named or scored.cues >= 0.45):
            near = scored
    return _told(near, partly=True) if near else abstain(desk.ask)


def _is_near(scored: Scored) -> bool:
    """Whether evidence comes near enough to the question to be offered as partly supporting an answer."""
    return scored.coverage >= 0.4 and scored.names >= 0.5 and scored.cues >= 0.22


def _told(scored: Scored, *, partly: bool = False) -> Reading:
    values = (scored.value,) if scored.value else ()
    return Reading(claims=(claim(scored.evidence),), values=values, support="partial" if partly else "none")


def look_up_all(desk: Desk) -> Reading:
    """Everything that stands in the relation asked about: from triples and rows first, then from sentences."""
    relevance = desk.relevance
    found: dict[str, tuple[str, Evidence]] = {}
    for scored in relevance.best_first(desk.elements or plain(desk.evidence), lambda s: supported(s, cues=0.5)):
        value = _other_end(scored, relevance.names) or scored.value
        key = fold_name(value)
        if key and key not in found:
            found[key] = (_written(key, scored.evidence), scored.evidence)
    if not found:
        return look_up(desk)
    listed = list(found.items())[:MAX_LISTED]
    named = {key for key, _ in listed if says_its_kind(desk.ask, key)}
    if named:  # Where some say by their name that they are what is asked for, only what a triple states joins them.
        listed = [(key, told) for key, told in listed if key in named or told[1].label]
    values = tuple(dict.fromkeys(value for _, (value, _) in listed))
    claims = tuple(Claim(quoted(piece), (piece.number,)) for piece in dict.fromkeys(piece for _, (_, piece) in listed))
    return Reading(
        claims=_once(claims), values=values, lead=ending(("、" if desk.ask.chinese else ", ").join(values), desk.ask)
    )


def _once(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Each quote once: several triples or cells may stand in one sentence."""
    return tuple({said.evidence: said for said in claims}.values())


def _other_end(scored: Scored, names: Sequence[Sequence[str]]) -> str:
    """For a triple or cell: the end that the question does not name."""
    piece = scored.evidence
    if not piece.value or not piece.label:
        return ""
    label, value = fold_name(piece.label), fold_name(piece.value)
    asked = {form for forms in names for form in forms}
    if value in asked:
        return piece.label
    return piece.value if label in asked else ""


def _written(key: str, piece: Evidence) -> str:
    """The name as the evidence writes it."""
    written = (
        text for text in (piece.value, piece.label, *(value for _, value in piece.cells)) if fold_name(text) == key
    )
    return next(written, "") or _in_text(key, piece.text)


def _in_text(key: str, text: str) -> str:
    at = fold(text).find(key)
    return text[at : at + len(key)] if at >= 0 and len(fold(text)) == len(text) else key
