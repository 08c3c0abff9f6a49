"""What is the fact, or the list of things, that a question asks for?"""

from collections.abc import Sequence
from heapq import nlargest

from prompts.language.asked import Ask
from prompts.language.concepts import concept_terms
from prompts.language.words import fold, fold_name
from prompts.reading.claims import Claim, Desk, Reading, abstain, claim, ending, ends_of, plain, relation_of, supported
from prompts.reading.evidence import Evidence
from prompts.reading.grounds import named
from prompts.reading.pick import life_date, says_its_kind
from prompts.reading.relevance import Scored, holding

MAX_LISTED = 12
# From these log odds on, the evidence is taken to be about the question; sure from the second on.
GROUNDED, SURE = -0.5, 0.5
# So many of the likeliest sentences are read for a value, and one without any stands back by so much weight.
READ, WITHOUT_VALUE = 6, 1.0
# So do so many of those that cover it best; what has nearly all of its words counts for so much more.
COVERING, WHOLE, HALF, WHOLLY = 4, 0.75, 0.4, 12.0
# Asked about today, what still holds counts for so much more, what no longer does for so much less.
LASTING = 1.0
# A question that names nothing must be covered so far.
NAMELESS = 0.85
_TYPED = frozenset({"date", "money", "number", "person", "place"})
_EXACT = frozenset({"date", "money", "number"})
# What the opening of a passage tells of its thing without saying the word.
_OPENINGS = frozenset(
    term
    for word in (
        "country state province city town county nation nationality citizen performer singer artist author "
        "writer composer director creator genre type kind sort occupation profession language species family "
        "located part"
    ).split()
    for term in concept_terms(word)
)


def look_up(desk: Desk) -> Reading:
    """The sentence that likeliest holds the answer, with its value; abstains where the evidence is not about what the
    question asks of, or has none of the words that it asks by."""
    if not is_told(desk):
        return abstain(desk.ask)
    exact, typed = desk.ask.expects in _EXACT, desk.ask.expects in _TYPED
    # A figure of the right kind beside the right name says much of what was asked; a bare name does not.
    # Where no name is known, the words alone must say what is meant.
    floor = (0.3 if exact else 0.4) if desk.relevance.names else 0.55
    best = _likeliest(desk)
    if exact and best.names < 0.5 and (not best.value or len(desk.relevance.names) == 1):
        return abstain(desk.ask)  # a figure of something else is no answer
    about = desk.odds >= SURE or _is_whole(best, desk)
    sure = about and supported(best, cues=floor) and (bool(best.value) or not typed)
    return _told(best, desk.ask, partly=not sure)


def is_grounded(desk: Desk) -> bool:
    """Whether the evidence is about what the question asks of, as a whole or in one sentence that has it all."""
    if desk.odds >= GROUNDED:
        return True
    near = (piece for piece in _covering(desk) if supported(desk.relevance.judge(piece), cues=HALF))
    return any(_is_whole(desk.relevance.valued(piece), desk) for piece in near)


def is_told(desk: Desk) -> bool:
    """Whether the evidence is about what the question asks of, and some sentence has a word that it asks by.

    What an opening tells without the word ("a village in Orland": its country) needs none.
    """
    if not is_grounded(desk):
        return False
    cues, first = set(desk.relevance.cues), desk.ranked[0].signs
    if not cues or any(one.signs["cues"] > 0 or one.signs["characters"] > 0 for one in desk.ranked[:READ]):
        return True
    if any(life_date(desk.ask, one.evidence.text) and one.signs["names"] > 0 for one in desk.ranked[:READ]):
        return True  # "(1 May 1890 – 7 June 1961)" says born and died without a word
    return (cues <= _OPENINGS or desk.ask.expects == "place") and first["titled"] > 0 and first["first"] > 0


def nearest_to(desk: Desk) -> Reading:
    """Where a reader of forms found nothing: the likeliest sentence, as some evidence and no more."""
    if desk.odds < SURE or not is_told(desk) or named(desk.ranked, desk.relevance)[1]:
        return abstain(desk.ask)
    return Reading(claims=(claim(desk.ranked[0].evidence),), support="partial")


def _likeliest(desk: Desk) -> Scored:
    """The best of the likeliest sentences and of those that cover the question best, once it is known which of them
    have a value of the kind asked for."""
    typed = desk.ask.expects in _TYPED
    weights = {one.evidence: one.weight for one in desk.ranked}
    read = dict.fromkeys([*(one.evidence for one in desk.ranked[:READ]), *_covering(desk)])

    def fit(scored: Scored) -> float:
        whole, lacking = _is_whole(scored, desk), typed and not scored.value
        lasts = holding(scored.evidence.text) if desk.relevance.present else 0
        return weights[scored.evidence] + WHOLLY * whole - WITHOUT_VALUE * lacking + LASTING * lasts

    return max(map(desk.relevance.valued, read), key=fit)


def _covering(desk: Desk) -> list[Evidence]:
    """The pieces that cover the question best."""
    judged = (desk.relevance.judge(one.evidence) for one in desk.ranked)
    return [scored.evidence for scored in nlargest(COVERING, judged, key=lambda scored: scored.score)]


def _is_whole(scored: Scored, desk: Desk) -> bool:
    """Whether a sentence has the question's names (all its words where it names nothing), nearly all that it asks by,
    and a value where one is asked for; of
    one whose value is called what is asked for ("which bridge": "Sluice Lane Bridge") half will do."""
    cued = bool(desk.relevance.cues) and (bool(desk.relevance.names) or scored.coverage >= NAMELESS)
    least = HALF if scored.value and says_its_kind(desk.ask, scored.value) else WHOLE
    return cued and supported(scored, cues=least) and (bool(scored.value) or desk.ask.expects not in _TYPED)


def _told(scored: Scored, ask: Ask, *, partly: bool = False) -> Reading:
    """The sentence with its value; of a row, whose words are no sentence, the value is said first."""
    values = (scored.value,) if scored.value else ()
    lead = ending(scored.value, ask) if values and scored.evidence.cells else ""
    return Reading((claim(scored.evidence),), values, "partial" if partly else "none", lead)


def look_up_all(desk: Desk) -> Reading:
    """Everything that stands in the relation asked about: from triples and rows first, then from sentences."""
    relevance = desk.relevance
    if desk.ask.chinese and not any(map(is_record, desk.evidence)):
        return look_up(desk)  # a Chinese sentence lists things in a row: the stretch that does is the answer
    found: dict[str, tuple[str, Evidence]] = {}
    for scored in relevance.best_first(desk.elements or plain(desk.evidence), lambda s: supported(s, cues=0.5)):
        relation = relation_of(scored.evidence)
        if relation and relevance.cues and not set(concept_terms(relation)) & set(relevance.cues):
            continue  # a triple of another relation between the same things
        value = _other_end(scored, relevance.names) or scored.value
        key = fold_name(value)
        if key and key not in found:
            found[key] = (_written(key, scored.evidence), scored.evidence)
    if not found:
        return look_up(desk)
    listed = list(found.items())[:MAX_LISTED]
    kinds = {key for key, _ in listed if says_its_kind(desk.ask, key)}
    if kinds:  # Where some say by their name that they are what is asked for, only what a triple states joins them.
        listed = [(key, told) for key, told in listed if key in kinds or is_record(told[1]) or told[1].label]
    values = tuple(dict.fromkeys(value for _, (value, _) in listed))
    claims = tuple(claim(piece) for piece in dict.fromkeys(piece for _, (_, piece) in listed))
    return Reading(
        claims=_once(claims), values=values, lead=ending(("、" if desk.ask.chinese else ", ").join(values), desk.ask)
    )


def is_record(piece: Evidence) -> bool:
    """Whether evidence is a row or a triple."""
    return bool(piece.cells) or "-[" in piece.text


def _once(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Each quote once: several triples or cells may stand in one sentence."""
    return tuple({said.evidence: said for said in claims}.values())


def _other_end(scored: Scored, names: Sequence[Sequence[str]]) -> str:
    """For a triple or cell: the end that the question does not name."""
    first, last = ends_of(scored.evidence)
    if not first or not last:
        return ""
    asked = {form for forms in names for form in forms}
    if fold_name(last) in asked:
        return first
    return last if fold_name(first) in asked else ""


def _written(key: str, piece: Evidence) -> str:
    """The name as the evidence writes it."""
    written = (text for text in (*ends_of(piece), *(value for _, value in piece.cells)) if fold_name(text) == key)
    return next(written, "") or _in_text(key, piece.text)


def _in_text(key: str, text: str) -> str:
    at = fold(text).find(key)
    return text[at : at + len(key)] if at >= 0 and len(fold(text)) == len(text) else key
