"""What does the scripted model answer to each step? One stated rule a step, the same answer on every machine.

| step | rule |
|---|---|
| extract | capitalised spans are entities, pairs in one sentence are relations, sentences with a year are claims |
| glean | the single capitalised words that the list lacks, with the relations that have one of them |
| doctor | who "was born", and the first year |
| resolve | the same where the last words of both names are equal |
| summarize | the first statement |
| relate | of each relation the first statement, and its content words that neither end has |
| report | title: the first three entities; findings: the first statements |
| rewrite | the question; its pronoun becomes the last name of the history; no further queries |
| keywords | low: the names; high: the first content words that no name holds |
| filter | entailment where two content words are shared, else neutral |
| route | by keywords |
| choose | the whole where the question says "themes", "often", "across" or 哪些, else a part |
| structurize | an element for each sentence with a figure, else for the first sentence, in the form of the structure |
| decompose | the question; two parts where it holds " and " |
| tune | a reader of the first name; actor and scene; the first sentence with two names as an example |
| plan | s*o between two names, else sp* along the first relation that the question does not hold |
| plan_table | the highest figure of the first table's last column; no plan for "who" |
| rate | three for each content word that a report shares with the question |
| partial | the findings that share content words with the question |
| explore | the same; next are the names in them |
| hypothesize | the question as a statement |
| direct | the last name of the question |
| schema | the last two words |
| answer | the evidence sentence that shares most content words, with its marker; under two shared: not answerable |
| reduce | the points as they are |
"""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from tests.server import collection, tables, traversal
from tests.server.outputs import (
    Answer,
    Answered,
    Born,
    Cell,
    Cells,
    Claim,
    Done,
    Entity,
    Example,
    Extraction,
    Finding,
    Judgement,
    Judgements,
    Keys,
    Kind,
    Line,
    Lines,
    Link,
    Parts,
    Relation,
    RelationSummaries,
    RelationSummary,
    Report,
    Rewriting,
    Routed,
    Scope,
    Steps,
    Summary,
    Triples,
    Tuned,
    Verdict,
    Verdicts,
)
from tests.server.words import content_words, figures, is_chinese, names, sentences

Fields = Mapping[str, str | Sequence[str]]

LEAST_SHARED = 2
MOST_ENTITIES, MOST_RELATIONS, MOST_FINDINGS, MOST_KEYS = 40, 60, 5, 5
# A passage with fewer longer names than one in so many characters also yields single capitalised words.
SPARSE = 400
_NUMBERED = re.compile(r"\[(\d+)\]\s*(.*)", re.S)
_YEAR = re.compile(r"(?<!\d)(?:1\d|20)\d{2}(?!\d)")
_DOUBT = re.compile(r"\b(?:alleged|accused|suspected)|涉嫌|据称")
_PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their)\b|[他她它]们?", re.I)
_ROUTES = (
    ("algorithm", "asks for steps", r"\bhow (?:do|to|can|should)\b|\bsteps?\b|\bplan\b|如何|怎样|步骤"),
    ("catalogue", "asks for an overview", r"\bsummar|\boverview\b|\bthemes?\b|总结|概述|概括"),
    ("table", "compares figures", r"\bcompare\b|\bhow (?:many|much)\b|\b(?:most|high(?:er|est)) |比较|多少"),
    ("graph", "asks for a connection", r"\bconnect|\brelat|\bwhose\b|\bof the .* of\b|关系|联系"),
)


class NoRuleError(LookupError):
    """No rule answers the request: an unknown step, or one without a field that its rule reads."""


def extract(fields: Fields) -> Extraction:
    """Pairs keep the order of the text and are given once in either direction."""
    return _extracted(fields, thorough=False)


def glean(fields: Fields) -> Extraction:
    known = set(_items(fields, "known"))
    found = _extracted(fields, thorough=True)
    entities = tuple(entity for entity in found.entities if entity.name not in known)
    new = {entity.name for entity in entities}
    relations = tuple(link for link in found.relations if new & {link.source, link.target})
    return Extraction(entities, relations, tuple(claim for claim in found.claims if claim.subject in new))


def _extracted(fields: Fields, *, thorough: bool) -> Extraction:
    """`thorough` takes single words however many longer names there are."""
    passage = _text(fields, "passage")
    kinds = _items(fields, "kinds") if "kinds" in fields else ["thing"]
    said = [(sentence, names(sentence)) for sentence in sentences(passage)]
    longer = {name for _, named in said for name in named if " " in name}
    single = thorough or is_chinese(passage) or len(longer) < max(2, len(passage) // SPARSE)
    entities: dict[str, Entity] = {}
    relations: dict[frozenset[str], Relation] = {}
    for sentence, named in said:
        inside = [name for name in named if single or " " in name]
        for name in inside:
            kind = kinds[zlib.crc32(name.encode()) % len(kinds)]
            if len(entities) < MOST_ENTITIES:
                entities.setdefault(name, Entity(name, kind, sentence[:200]))
        for source, target in combinations((name for name in inside if name in entities), 2):
            if len(relations) < MOST_RELATIONS:
                link = Relation(source, target, _between(sentence, source, target), sentence[:200])
                relations.setdefault(frozenset((source, target)), link)
    claims = [claim for sentence, named in said if (claim := _claim(sentence, [n for n in named if n in entities]))]
    return Extraction(tuple(entities.values()), tuple(relations.values()), tuple(claims))


def _claim(sentence: str, named: Sequence[str]) -> Claim | None:
    """Of the first name, with the second; the first year is the period, and a word of doubt makes it suspected."""
    years = _YEAR.findall(sentence)
    if not years or not named:
        return None
    status = "suspected" if _DOUBT.search(sentence) else "true"
    said = sentence[:200]
    return Claim(named[0], "".join(named[1:2]), "fact", status, years[0], years[0], said, said)


def _between(sentence: str, source: str, target: str) -> str:
    """The words between two names where they are one to five and short, else a fixed phrase."""
    words = re.findall(r"\w+", sentence.partition(source)[2].partition(target)[0])
    said = " ".join(words)
    return said if 1 <= len(words) <= 5 and len(said) <= 40 else "is mentioned with"


def doctor(fields: Fields) -> Born:
    text = _text(fields, "text")
    return Born(text.partition(" was born")[0].strip(), int(next(iter(re.findall(r"\d{4}", text)), "0")))


def resolve(fields: Fields) -> Verdicts:
    verdicts = []
    for number, pair in _numbered(_items(fields, "pairs")):
        last = [side.partition(" (")[0].split()[-1:] for side in pair.split(" | ")[:2]]
        same = last[0] == last[1]
        verdicts.append(Verdict(number, f"the last words are {'' if same else 'not '}equal", same))
    return Verdicts(tuple(verdicts))


def summarize(fields: Fields) -> Summary:
    statements = _items(fields, "statements")
    return Summary(statements[0] if statements else "")


def relate(fields: Fields) -> RelationSummaries:
    made = []
    for number, stated in _numbered(_items(fields, "relations")):
        head, *statements = stated.split("\n- ")
        keys = sorted(content_words(statements[0]) - content_words(head))[:MOST_KEYS]
        made.append(RelationSummary(number, statements[0], tuple(keys)))
    return RelationSummaries(tuple(made))


def report(fields: Fields) -> Report:
    titles = [entity.partition(":")[0].strip() for entity in _items(fields, "entities")]
    statements = _numbered(_items(fields, "statements"))
    findings = tuple(
        Finding(", ".join(names(text)[:3]) or text[:40], text, (number,)) for number, text in statements[:MOST_FINDINGS]
    )
    summary = statements[0][1] if statements else ""
    return Report(", ".join(titles[:3]), summary, findings, f"{len(titles)} entities", 5.0)


def rewrite(fields: Fields) -> Rewriting:
    question = _text(fields, "question")
    known = [name for earlier in _items(fields, "history") for said in sentences(earlier) for name in names(said)]
    return Rewriting(_PRONOUN.sub(known[-1], question, count=1) if known else question, ())


def keywords(fields: Fields) -> Keys:
    question = _text(fields, "question")
    low = names(question)
    high = sorted(
        content_words(question) - content_words(" ".join(low)), key=lambda word: (question.lower().find(word), word)
    )
    return Keys(tuple(high[:MOST_KEYS]), tuple(low[:MOST_KEYS]))


def judge_passages(fields: Fields) -> Judgements:
    """The rule of the step `filter`."""
    asked = content_words(_text(fields, "question"))
    judged = []
    for number, passage in _pieces(_text(fields, "passages")):
        shared = sorted(asked & content_words(passage))
        label = "entailment" if len(shared) >= LEAST_SHARED else "neutral"
        judged.append(Judgement(number, f"shares {', '.join(shared) or 'nothing'}", label))
    return Judgements(tuple(judged))


def route(fields: Fields) -> Routed:
    question = _text(fields, "question")
    for structure, reason, words in _ROUTES:
        if re.search(words, question, re.I):
            return Routed(reason, structure, 0.9, 0.6)
    return Routed("asks for a single fact", "chunk", 0.9, 0.6)


def choose(fields: Fields) -> Scope:
    whole = re.search(r"\bthemes?\b|\boften\b|\bacross\b|哪些", _text(fields, "question"), re.I) is not None
    return Scope("by its words", "whole" if whole else "part", 0.9)


def structurize(fields: Fields) -> Cells | Triples | Steps | Lines:
    """An element for each sentence with a figure (the first of them, exactly as written), else for the first one."""
    title, given = _text(fields, "title"), _numbered(_text(fields, "sentences").splitlines())
    told = [(number, text) for number, text in given if figures(text)] or given[:1]
    about = f"{title}: {len(told)} elements"
    structure = _text(fields, "structure")
    if structure == "graph":
        named = [(number, text, names(text)) for number, text in told]
        links = [
            Link(found[0], _between(text, *found[:2]), found[1], number)
            for number, text, found in named
            if len(found) > 1
        ]
        return Triples(about, tuple(links))
    if structure == "algorithm":
        return Steps(about, tuple(Done(str(place), "", text, number) for place, (number, text) in enumerate(told, 1)))
    if structure == "catalogue":
        return Lines(about, tuple(Line(str(place), text, number) for place, (number, text) in enumerate(told, 1)))
    cells = [
        Cell(title, " ".join(sorted(content_words(text))[:3]), (figures(text) or [text])[0], number)
        for number, text in told
    ]
    return Cells(about, tuple(cells))


def decompose(fields: Fields) -> Parts:
    question = _text(fields, "question")
    first, joined, second = question.partition(" and ")
    return Parts((f"{first.rstrip(' ?,')}?", f"{second.rstrip(' ?')}?") if joined else (question,))


def answer(fields: Fields) -> Answer:
    asked = content_words(_text(fields, "question"))
    best, shared, marker = "", LEAST_SHARED - 1, 0
    for number, piece in _pieces(_text(fields, "evidence")):
        for sentence in sentences(piece.partition(": ")[2] or piece):
            if len(asked & content_words(sentence)) > shared:
                best, shared, marker = sentence, len(asked & content_words(sentence)), number
    if not best:
        return Answer("", (), answerable=False)
    values = [*figures(best), *(name for name in names(best) if not content_words(name) & asked)]
    return Answer(f"{best.rstrip('.。')} [{marker}].", tuple(values[:1]), answerable=True)


def reduce_points(fields: Fields) -> Answer:
    """The points of the notes as they are, the best first; the rule of the step `reduce`."""
    points = re.findall(r"^\(\d+\) (.*)$", _text(fields, "notes"), re.M)
    return Answer("\n".join(points), (), answerable=bool(points))


def _pieces(evidence: str) -> list[tuple[int, str]]:
    """Numbered pieces of evidence, as `[n] title: text` with a blank line between them."""
    found = re.split(r"^\[(\d+)\] ", evidence, flags=re.M)
    return [(int(number), text.strip()) for number, text in zip(found[1::2], found[2::2], strict=True)]


def tune(fields: Fields) -> Tuned:
    """The example's first name is an actor, every other a scene."""
    sample = _items(fields, "sample")
    said = [sentence for passage in sample for sentence in sentences(passage.partition(": ")[2])]
    first, named = next(((one, found) for one in said if len(found := names(one)) > 1), ("", [""]))
    entities = tuple(Entity(name, "scene" if place else "actor", first) for place, name in enumerate(named) if name)
    relations = tuple(Relation(named[0], other, _between(first, named[0], other), first) for other in named[1:2])
    return Tuned(
        f"You are a reader of {named[0] or 'nothing'}.",
        "Chinese" if is_chinese("".join(sample)) else "English",
        (Kind("actor", "who acts"), Kind("scene", "where it happens")),
        (Example(first, entities, relations),) if entities else (),
    )


RULES: Mapping[str, Callable[[Fields], Answered]] = {
    "extract": extract,
    "glean": glean,
    "doctor": doctor,
    "resolve": resolve,
    "summarize": summarize,
    "relate": relate,
    "report": report,
    "rewrite": rewrite,
    "keywords": keywords,
    "filter": judge_passages,
    "route": route,
    "choose": choose,
    "structurize": structurize,
    "decompose": decompose,
    "answer": answer,
    "reduce": reduce_points,
    "tune": tune,
    "plan": traversal.plan,
    "plan_table": tables.plan_table,
    "schema": tables.find_schema,
    "rate": collection.rate,
    "partial": collection.partial,
    "explore": collection.explore,
    "hypothesize": collection.hypothesize,
    "direct": collection.direct,
}


def answer_step(step: str, fields: Fields) -> Answered:
    """The rule's answer; NoRuleError for a step that has none or a request without a field that the rule reads."""
    if step not in RULES:
        raise NoRuleError(f"there is no rule for the step {step!r}; the steps are {', '.join(RULES)}")
    return RULES[step](fields)


def _text(fields: Fields, name: str) -> str:
    value = _field(fields, name)
    return value if isinstance(value, str) else "\n".join(value)


def _items(fields: Fields, name: str) -> list[str]:
    value = _field(fields, name)
    return ([value] if value else []) if isinstance(value, str) else list(value)


def _field(fields: Fields, name: str) -> str | Sequence[str]:
    if name not in fields:
        raise NoRuleError(f"the request has no field {name!r}; it has {', '.join(fields) or 'none'}")
    return fields[name]


def _numbered(items: Sequence[str]) -> list[tuple[int, str]]:
    """Items by the number in their brackets, else by their place from 0."""
    found = [(place, item, _NUMBERED.match(item)) for place, item in enumerate(items)]
    return [(int(match[1]), match[2]) if match else (place, item) for place, item, match in found]
