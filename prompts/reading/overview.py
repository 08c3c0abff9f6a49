"""What is there to say about one thing, one document, or the whole collection? And: how is something done?"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from prompts.language.concepts import concept_terms
from prompts.language.words import STOPWORDS, WORD, fold, is_han
from prompts.reading.claims import Claim, Desk, Reading, Support, abstain, claim, quoted, supported
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Scored

_COPULA = re.compile(r"\b(?:is|was|are|were)\b")
MAX_CLAIMS = 6
MAX_THEMES = 4
# A question about the whole collection shares few words with any one sentence.
FAINT = 0.12
# By how much a sentence must cover "how does it …" better than any list does, to be the answer.
BETTER = 0.2
# A shorter line is a label or a caption.
_MIN_LENGTH = 20


def steps(desk: Desk) -> Reading:
    """The numbered list that fits the question best, whole and in order; else the sentences that do."""
    lists: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for piece in desk.evidence:
        if piece.attribute == "step":
            lists[piece.document, piece.heading].append(piece)
    relevance = desk.relevance
    ranked = []
    for (document, heading), items in lists.items():
        context = f"{items[0].title} {heading} {heading}"
        joint = replace(
            items[0], text=f"{context}\n" + "\n".join(item.text for item in items), heading=heading, label=""
        )
        whole = relevance.judge(replace(joint, text=_whole(desk, document)))
        fit = (relevance.judge(joint).coverage + whole.coverage) / 2
        ranked.append((fit + 0.2 * items[0].prior, document, heading, fit, items))
    ranked.sort(key=lambda item: (-item[0], item[1], item[2]))
    direct = max((s for s in relevance.rank(_sentences(desk.evidence)) if supported(s)), key=_coverage, default=None)
    told = direct is not None and ranked and direct.coverage > ranked[0][3] + BETTER
    if ranked and ranked[0][3] >= 0.4 and not told:
        items = _one_run(ranked[0][4])
        return Reading(claims=tuple(Claim(f"{item.label}. {quoted(item)}", (item.number,)) for item in items))
    return likeliest(desk) or best_sentences(desk, MAX_CLAIMS, floor=0.45)


def likeliest(desk: Desk) -> Reading | None:
    """For "how did it …" without a list: the likeliest sentences, best first; None where the evidence is about
    something else."""
    if desk.odds < 0 or not desk.ranked:
        return None
    best = desk.ranked[0]
    near = [one for one in desk.ranked[:3] if one.weight > best.weight - 1.5]
    return Reading(claims=tuple(claim(one.evidence) for one in near), support="none" if desk.odds > 1 else "partial")


def _coverage(scored: Scored) -> float:
    return scored.coverage


def _one_run(items: Sequence[Evidence]) -> list[Evidence]:
    """The first unbroken count 1, 2, 3, … (or whatever stands where a list begins later)."""
    ordered = sorted(items, key=lambda item: item.number)
    run = [ordered[0]]
    for item in ordered[1:]:
        if int(item.label) == int(run[-1].label) + 1:
            run.append(item)
        elif len(run) > 1:
            break
        else:
            run = [item]
    return run


def best_sentences(desk: Desk, limit: int, floor: float) -> Reading:
    """The sentences that cover the question best, each adding something, in the order of their documents."""
    chosen: list[Scored] = []
    for scored in desk.relevance.rank(_sentences(desk.evidence)):
        if len(chosen) == limit or scored.coverage < floor:
            break
        if not any(_repeats(scored.evidence, other.evidence) for other in chosen):
            chosen.append(scored)
    if not chosen:
        return abstain(desk.ask)
    support: Support = "none" if chosen[0].names >= 0.85 else "partial"
    return Reading(
        claims=tuple(claim(s.evidence) for s in sorted(chosen, key=lambda s: s.evidence.number)), support=support
    )


def summarise(desk: Desk) -> Reading:
    """The most telling sentences of the document that the question is about, section by section."""
    relevance = desk.relevance
    totals: Counter[str] = Counter()
    for document, pieces in _by_document(_sentences(desk.evidence)).items():
        title = replace(
            pieces[0],
            text=f"{pieces[0].title}\n{pieces[0].heading}\n" + " ".join(p.text for p in pieces[:6]),
            before="",
        )
        judged = relevance.judge(title)
        # A document that answers in one sentence comes before one that holds the words here and there.
        direct = max(relevance.judge(piece).coverage for piece in pieces)
        fit = judged.coverage + 0.3 * judged.names + 0.3 * direct + 0.3 * max(piece.prior for piece in pieces)
        totals[document] = round(1000 * fit)
    if not totals:
        return abstain(desk.ask)
    target = max(totals, key=lambda document: (totals[document], document))
    if (
        relevance.judge(
            replace(_sentences(desk.evidence)[0], text=_whole(desk, target), title="", heading="", before="")
        ).coverage
        < 0.5
    ):
        return abstain(desk.ask)
    pieces = _by_document(_sentences(desk.evidence))[target]
    central = _central(pieces)
    ranked = sorted(pieces, key=lambda p: (-(central[p.number] + 0.8 * relevance.judge(p).coverage), p.number))
    chosen: list[Evidence] = []
    for piece in ranked:
        if len(chosen) < MAX_CLAIMS and not any(_repeats(piece, other) for other in chosen):
            chosen.append(piece)
    return Reading(claims=tuple(claim(piece) for piece in sorted(chosen, key=lambda piece: piece.number)))


def _whole(desk: Desk, document: str) -> str:
    return " ".join(f"{p.title} {p.heading} {p.text}" for p in desk.evidence if p.document == document)


def about(desk: Desk) -> Reading:
    """Who or what something is: sentences about it, those that define it first."""
    relevance = desk.relevance
    if not relevance.names and not relevance.cues:
        return abstain(desk.ask)
    sentences = _sentences(desk.evidence)
    ranked = []
    for scored in relevance.rank(sentences):
        piece = scored.evidence
        own = (
            bool(relevance.names)
            and relevance.judge(replace(piece, text=piece.title, heading="", before="")).names == 1
        )
        here = relevance.judge(replace(piece, title="", heading="", before="")).names == 1
        defines = (here and _COPULA.search(fold(piece.text)) is not None) or "是" in piece.text
        if scored.names >= 0.85 and (scored.coverage >= 0.5 or own):
            fit = scored.coverage + 0.5 * own + 0.4 * here + 0.2 * defines + 0.1 * (piece.heading == "")
            ranked.append((fit, -piece.number, piece))
    chosen: list[Evidence] = []
    for _, _, piece in sorted(ranked, key=lambda item: item[:2], reverse=True):
        if len(chosen) < MAX_CLAIMS and not any(_repeats(piece, other) for other in chosen):
            chosen.append(piece)
    return Reading(claims=tuple(claim(piece) for piece in chosen)) if chosen else best_sentences(desk, 3, floor=0.6)


def themes(desk: Desk) -> Reading:
    """What many documents speak of: recurring words among the sentences that answer the question, with a sentence
    each."""
    relevance = desk.relevance
    judged = relevance.rank(_sentences(desk.evidence))
    best = max((scored.coverage for scored in judged), default=0.0)
    if best < FAINT:
        return abstain(desk.ask)
    ranked = [scored for scored in judged if scored.coverage >= best / 2]
    spread = _spread([scored.evidence for scored in ranked], set(relevance.weights))
    chosen: dict[int, Evidence] = {}
    found = []
    for word in spread[:MAX_THEMES]:
        holders = [s.evidence for s in ranked if word in fold(s.evidence.text)]
        documents: dict[str, Evidence] = {}
        for piece in holders:
            if piece.number not in chosen:
                documents.setdefault(piece.document, piece)
        if documents:
            found.append(word)
            chosen |= {piece.number: piece for piece in list(documents.values())[:2]}
    for scored in ranked:
        if len(chosen) >= MAX_CLAIMS + 2:
            break
        if scored.evidence.document not in {piece.document for piece in chosen.values()}:
            chosen[scored.evidence.number] = scored.evidence
    mark = "、" if desk.ask.chinese else ", "
    return Reading(
        claims=tuple(claim(piece) for piece in chosen.values()),
        lead=f"{mark.join(found)}.".capitalize() if found else "",
    )


def _spread(pieces: Sequence[Evidence], asked: set[str]) -> list[str]:
    """Lower-case words by the number of documents whose sentences hold them, those of the question left out."""
    documents: dict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        for word in WORD.findall(piece.text):
            if is_han(word) or not word.islower() or len(word) < 4 or word in STOPWORDS | _COMMON:
                continue
            if not asked & set(concept_terms(word)):
                documents[word].add(piece.document)
    counted = [(len(names), word) for word, names in documents.items() if len(names) >= 3]
    return [word for _, word in sorted(counted, key=lambda item: (-item[0], item[1]))]


def connect(desk: Desk) -> Reading:
    """How two things are tied: the chain of relations between them, a quoted statement for each link."""
    if not _is_chain(desk.elements):
        return best_sentences(desk, 3, floor=0.5)
    links = [f"{piece.label} -[{piece.attribute}]-> {piece.value}" for piece in desk.elements]
    numbers = dict.fromkeys(piece.number for piece in desk.elements)
    by_number = {piece.number: piece for piece in desk.elements}
    ends = {name for piece in desk.elements for name in (piece.label, piece.value)}
    inner = tuple(sorted(name for name in ends if fold(name) not in fold(desk.ask.text)))
    return Reading(
        claims=tuple(claim(by_number[n]) for n in numbers), values=inner, lead="; ".join(dict.fromkeys(links)) + "."
    )


def _is_chain(elements: Sequence[Evidence]) -> bool:
    """Whether each relation goes on where the one before it ends; passages and tables are none."""
    whole = bool(elements) and all(piece.label and piece.attribute and piece.value for piece in elements)
    return whole and all({a.label, a.value} & {b.label, b.value} for a, b in pairwise(elements))


def _sentences(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [
        p
        for p in evidence
        if p.attribute != "step"
        and not p.text.lstrip().startswith("#")
        and (len(p.text) >= _MIN_LENGTH or is_han(p.text))
    ]


def _by_document(pieces: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    found: dict[str, list[Evidence]] = defaultdict(list)
    for piece in pieces:
        found[piece.document].append(piece)
    return found


def _central(pieces: Sequence[Evidence]) -> dict[int, float]:
    """How much of what a document keeps saying each sentence says (0-1): mean frequency of its terms, openings
    preferred."""
    counts = Counter(term for piece in pieces for term in set(concept_terms(piece.text)))
    scores = {}
    for place, piece in enumerate(pieces):
        terms = set(concept_terms(piece.text))
        weight = sum(counts[term] - 1 for term in terms) / (len(terms) + 6)
        scores[piece.number] = weight + 0.5 / (1 + place)
    top = max(scores.values(), default=1.0) or 1.0
    return {number: score / top for number, score in scores.items()}


def _repeats(one: Evidence, two: Evidence) -> bool:
    """Whether two sentences say much the same."""
    first, second = set(concept_terms(one.text)), set(concept_terms(two.text))
    return len(first & second) > 0.7 * min(len(first), len(second))


_COMMON = frozenset(
    """about across almost along already also although always another around away back became become been before
    began being
    between both bring brought came come could days done down during each early either enough even ever every first
    five four
    from gave give given goes good great half have held high hours however into itself just keep kept know known
    large last
    later least left less like little long made make many metres might more most much must near nearly never next
    nine north
    often once only open other over part place planned several seven short should since small some soon south still such
    taken takes than that their them then there these they thing things this those though three through time times today
    together took toward twelve twice under until upon used usually very want were west what when where which while
    whole
    whose will with within without work works would year years young yours east eight half hundred million thousand
    million
    number name named found company people called different based including according therefore result results
    example using
    second third above below january february march april june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday morning evening night winter summer spring autumn week weeks month
    months century town city""".split()
)
