"""What is the fact, or the list of things, that a question asks for?"""

from collections.abc import Sequence

from prompts.language.words import fold, fold_name, stem
from prompts.reading.claims import Claim, Desk, Reading, abstain, claim, quoted, supported
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Scored

MAX_LISTED = 12
_NEGATION = (" not ", "n't ", " never ", " no longer ", "没有", "不是", "并非", "未曾")


def look_up(desk: Desk) -> Reading:
    """The best sentence with its value; abstains where no sentence is about the names and the matter of the question."""
    ranked = desk.relevance.rank(_plain(desk.evidence))
    typed = desk.ask.expects in {"date", "money", "number", "person", "place"}
    # A figure of the right kind beside the right name says much of what was asked; a bare name does not.
    floor = 0.3 if desk.ask.expects in {"date", "money", "number"} else 0.4
    best = next((s for s in ranked if supported(s, cues=floor) and (s.value or not typed)), None)
    if best is None:
        return _some_evidence(desk, ranked)
    return Reading(claims=(claim(best.evidence),), values=(best.value,) if best.value else ())


def _some_evidence(desk: Desk, ranked: Sequence[Scored]) -> Reading:
    """The sentence that comes nearest, offered as partly supported; abstains where none comes near.

    A question for a figure or date needs one in the sentence: near words without it are no answer.
    """
    exact = desk.ask.expects in {"date", "money", "number"}
    near = next((s for s in ranked if s.coverage >= 0.4 and s.names >= 0.5 and s.cues >= 0.22 and (s.value or not exact)), None)
    if near is None:
        return abstain(desk.ask)
    return Reading(claims=(claim(near.evidence),), values=(near.value,) if near.value else (), support="partial")


def look_up_all(desk: Desk) -> Reading:
    """Everything that stands in the relation asked about: from triples and rows first, then from sentences."""
    relevance = desk.relevance
    wanted = {stem(word) for word in fold(_singular(desk.ask.noun)).split()}
    found: dict[str, Evidence] = {}
    for scored in relevance.rank(desk.elements or _plain(desk.evidence)):
        value = _other_end(scored, relevance.names) or scored.value
        if not (value and supported(scored, cues=0.5)):
            continue
        key = fold_name(value)
        if key and key not in found:
            found[key] = scored.evidence
    if not found:
        return look_up(desk)
    listed = list(found.items())[:MAX_LISTED]
    values = [_written(key, piece) for key, piece in listed]
    if any(wanted & {stem(word) for word in key.split()} for key, _ in listed):
        keep = [i for i, (key, piece) in enumerate(listed) if wanted & {stem(w) for w in key.split()} or piece.label]
        listed, values = [listed[i] for i in keep], [values[i] for i in keep]
    claims = tuple(Claim(quoted(piece), (piece.number,)) for _, piece in listed)
    return Reading(claims=claims, values=tuple(dict.fromkeys(values)), lead=", ".join(dict.fromkeys(values)) + ".")


def _other_end(scored: Scored, names: list[tuple[str, ...]]) -> str:
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
    for text in (piece.value, piece.label, *(value for _, value in piece.cells)):
        if fold_name(text) == key:
            return text
    return key


def affirm(desk: Desk) -> Reading:
    """Yes where a sentence says so of both ends; no where it says the opposite, or says it of somebody else."""
    relevance = desk.relevance
    ranked = relevance.rank(_plain(desk.evidence))
    yes, no = ("是。", "否。") if desk.ask.chinese else ("Yes.", "No.")
    both = next((scored for scored in ranked if supported(scored, names=0.95, cues=0.5)), None)
    if both is not None:
        denied = any(word in f" {fold(both.evidence.text)} " for word in _NEGATION)
        word = no if denied else yes
        return Reading(claims=(claim(both.evidence),), values=(word[:-1].lower() if not desk.ask.chinese else word[:-1],), lead=word)
    if len(relevance.names) > 1:
        other = next((scored for scored in ranked if scored.names >= 0.45 and scored.cues >= 0.9 and _names_another(scored)), None)
        if other is not None:
            return Reading(claims=(claim(other.evidence),), values=("no" if not desk.ask.chinese else "否",), lead=no)
    return abstain(desk.ask)


def _names_another(scored: Scored) -> bool:
    return bool(scored.evidence.cells or scored.evidence.label or "-[" in scored.evidence.text)


def _plain(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Sentences and rows; the steps of lists stand among the sentences already."""
    return [piece for piece in evidence if piece.attribute != "step"]


def _singular(noun: str) -> str:
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
