"""The answers of the scripted model: a rule for each step, the same on every machine."""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from tests.server.words import content_words, figures, is_chinese, names, sentences

Fields = Mapping[str, str | Sequence[str]]
Answered = dict[str, Any]  # the parts of an answer, by the names of the output format

# Fields that a request may lack.
MAY_BE_EMPTY = frozenset(
    "question passages title known history names unknown around relations points documents".split()
)
LEAST_SHARED = 2
MOST_ENTITIES, MOST_RELATIONS = 40, 60
MOST_FINDINGS, MOST_KEYS, MOST_POINTS, MOST_FOLLOW_UPS = 5, 5, 5, 2
# A passage with fewer longer names than one in so many characters also yields single words.
SPARSE = 400
_NUMBERED = re.compile(r"\[(\d+)\]\s*(.*)", re.S)
_FINDING = re.compile(r"^\[(\d+)\]\s*(.*)$", re.M)
_COLUMN = re.compile(r"^- (?P<name>[^:\n]+): (?P<cells>.*)$", re.M)
_YEAR = re.compile(r"(?<!\d)(?:1\d|20)\d{2}(?!\d)")
_DOUBT = re.compile(r"\b(?:alleged|accused|suspected)|涉嫌|据称")
_PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their)\b|[他她它]们?", re.I)
_ROUTES = {
    "algorithm": r"\bhow (?:do|to|can|should)\b|\bsteps?\b|\bplan\b|如何|怎样|步骤",
    "catalogue": r"\bsummar|\boverview\b|\bthemes?\b|总结|概述|概括",
    "table": r"\bcompare\b|\bhow (?:many|much)\b|\b(?:most|high(?:er|est)) |比较|多少",
    "graph": r"\bconnect|\brelat|\bwhose\b|\bof the .* of\b|关系|联系",
}


class NoRuleError(LookupError):
    """No rule answers the request: an unknown step, or a missing field."""


def extract(fields: Fields) -> Answered:
    return _extracted(fields, thorough=False)


def glean(fields: Fields) -> Answered:
    known = set(_items(fields, "known"))
    found = _extracted(fields, thorough=True)
    entities = [entity for entity in found["entities"] if entity["name"] not in known]
    new = {entity["name"] for entity in entities}
    relations = [link for link in found["relations"] if new & {link["source"], link["target"]}]
    claims = [claim for claim in found["claims"] if claim["subject"] in new]
    return {"entities": entities, "relations": relations, "claims": claims}


def _extracted(fields: Fields, *, thorough: bool) -> Answered:
    """Each name, and each pair of names in a sentence, once, in the order of the text.

    `thorough` takes single words however many longer names there are.
    """
    passage = _text(fields, "passage")
    kinds = _items(fields, "kinds") if "kinds" in fields else ["thing"]
    named_in = [(sentence, names(sentence)) for sentence in sentences(passage)]
    longer = {name for _, named in named_in for name in named if " " in name}
    single = thorough or is_chinese(passage) or len(longer) < max(2, len(passage) // SPARSE)
    entities: dict[str, Answered] = {}
    relations: dict[frozenset[str], Answered] = {}
    for sentence, named in named_in:
        inside = [name for name in named if single or " " in name]
        for name in inside:
            kind = kinds[zlib.crc32(name.encode()) % len(kinds)]
            if len(entities) < MOST_ENTITIES:
                entities.setdefault(name, _entity(name, kind, sentence))
        for ends in combinations((name for name in inside if name in entities), 2):
            if len(relations) < MOST_RELATIONS:
                relations.setdefault(frozenset(ends), _relation(sentence, *ends))
    claims = (_claim(text, [it for it in named if it in entities]) for text, named in named_in)
    return {
        "entities": list(entities.values()),
        "relations": list(relations.values()),
        "claims": [claim for claim in claims if claim],
    }


def _entity(name: str, kind: str, sentence: str) -> Answered:
    return {"name": name, "kind": kind, "description": sentence[:200]}


def _relation(sentence: str, source: str, target: str) -> Answered:
    return {
        "source": source,
        "target": target,
        "predicate": _between(sentence, source, target),
        "description": sentence[:200],
        "strength": 5.0,
        "keys": [],
    }


def _claim(sentence: str, named: Sequence[str]) -> Answered | None:
    """About the first name in the first year; a word of doubt makes it suspected."""
    years = _YEAR.findall(sentence)
    if not years or not named:
        return None
    return {
        "subject": named[0],
        "object": "".join(named[1:2]),
        "kind": "fact",
        "status": "suspected" if _DOUBT.search(sentence) else "true",
        "since": years[0],
        "until": years[0],
        "description": sentence[:200],
        "quote": sentence[:200],
    }


def _between(sentence: str, source: str, target: str) -> str:
    """The words between two names if they are one to five and short, else a fixed phrase."""
    words = re.findall(r"\w+", sentence.partition(source)[2].partition(target)[0])
    said = " ".join(words)
    return said if 1 <= len(words) <= 5 and len(said) <= 40 else "is mentioned with"


def resolve(fields: Fields) -> Answered:
    verdicts = []
    for number, pair in _numbered(_items(fields, "pairs")):
        first, second = (side.partition(" (")[0].split()[-1:] for side in pair.split(" | ")[:2])
        reason = f"the last words are {'' if first == second else 'not '}equal"
        verdicts.append({"pair": number, "reason": reason, "same": first == second})
    return {"verdicts": verdicts}


def summarize(fields: Fields) -> Answered:
    return {"description": "".join(_items(fields, "statements")[:1])}


def relate(fields: Fields) -> Answered:
    made = []
    for number, stated in _numbered(_items(fields, "relations")):
        head, *statements = stated.split("\n- ")
        keys = sorted(content_words(statements[0]) - content_words(head))[:MOST_KEYS]
        made.append({"relation": number, "description": statements[0], "keys": keys})
    return {"relations": made}


def report(fields: Fields) -> Answered:
    titles = [entity.partition(":")[0].strip() for entity in _items(fields, "entities")]
    findings = []
    statements = _numbered(_items(fields, "statements"))
    for number, text in statements[:MOST_FINDINGS]:
        summary = ", ".join(names(text)[:3]) or text[:40]
        findings.append({"summary": summary, "explanation": text, "statements": [number]})
    return {
        "title": ", ".join(titles[:3]),
        "summary": statements[0][1] if statements else "",
        "findings": findings,
        "rating_reason": f"{len(titles)} entities",
        "rating": 5.0,
    }


def rewrite(fields: Fields) -> Answered:
    question, known = _text(fields, "question"), _names_in(_items(fields, "history"))
    full = _PRONOUN.sub(known[-1], question, count=1) if known else question
    return {"question": full, "queries": []}


def keywords(fields: Fields) -> Answered:
    question = _text(fields, "question")
    low, lowered = names(question), question.lower()
    words = content_words(question) - content_words(" ".join(low))
    high = sorted(words, key=lambda word: (lowered.find(word), word))
    return {"high": high[:MOST_KEYS], "low": low[:MOST_KEYS]}


def judge_passages(fields: Fields) -> Answered:
    """The rule of the step `filter`."""
    asked = content_words(_text(fields, "question"))
    judged = []
    for number, passage in _pieces(_text(fields, "passages")):
        shared = sorted(asked & content_words(passage))
        label = "entailment" if len(shared) >= LEAST_SHARED else "neutral"
        why = f"shares {', '.join(shared) or 'nothing'}"
        judged.append({"passage": number, "explanation": why, "label": label})
    return {"judgements": judged}


def route(fields: Fields) -> Answered:
    question = _text(fields, "question")
    fitting = (name for name, words in _ROUTES.items() if re.search(words, question, re.I))
    structure = next(fitting, "chunk")
    return {"reason": "by its words", "structure": structure, "confidence": 0.9, "margin": 0.6}


def choose(fields: Fields) -> Answered:
    question = _text(fields, "question")
    whole = re.search(r"\bthemes?\b|\boften\b|\bacross\b|哪些", question, re.I)
    about = "whole" if whole else "part"
    if "types" in fields and re.search(
        r"\bhow many\b|\b(?:long|old|new)est\b|多少", question, re.I
    ):
        about = "facts"
    return {"reason": "by its words", "about": about, "confidence": 0.9}


def structurize(fields: Fields) -> Answered:
    """An element for each sentence with a figure, or for the first one, in all forms."""
    title, given = _text(fields, "title"), _numbered(_text(fields, "sentences").splitlines())
    chosen = [(number, text) for number, text in given if figures(text)] or given[:1]
    made: Answered = {"triples": [], "steps": [], "lines": [], "cells": []}
    for place, (sentence, text) in enumerate(chosen, 1):
        number = str(place)
        if len(named := names(text)) > 1:
            head, tail = named[:2]
            triple = {"head": head, "relation": _between(text, head, tail), "tail": tail}
            made["triples"].append({**triple, "sentence": sentence})
        step = {"number": number, "condition": "", "action": text, "sentence": sentence}
        made["steps"].append(step)
        made["lines"].append({"number": number, "text": text, "sentence": sentence})
        column, cell = " ".join(sorted(content_words(text))[:3]), (figures(text) or [text])[0]
        row = {"row": title, "column": column, "cell": cell, "sentence": sentence}
        made["cells"].append(row)
    return {"description": f"{title}: {len(chosen)} elements", **made}


def decompose(fields: Fields) -> Answered:
    question = _text(fields, "question")
    first, joined, second = question.partition(" and ")
    parts = [f"{first.rstrip(' ?,')}?", f"{second.rstrip(' ?')}?"]
    return {"questions": parts if joined else [question]}


def agent(fields: Fields) -> Answered:
    """Finish at once, with the numbers of the evidence that shares words with the question."""
    asked = content_words(_text(fields, "question"))
    lines = [line for call in _items(fields, "calls") for line in json.loads(call)["result"]]
    evidence = {number: text for number, text in _numbered(lines) if content_words(text) & asked}
    return {
        "thought": f"{len(evidence)} pieces share words.",
        "tool": "finish",
        "arguments": list(map(str, evidence)),
    }


def answer(fields: Fields) -> Answered:
    asked = content_words(_text(fields, "question"))
    best, shared, marker = "", LEAST_SHARED - 1, 0
    for number, piece in _pieces(_text(fields, "evidence")):
        for sentence in sentences(piece.partition(": ")[2] or piece):
            if len(asked & content_words(sentence)) > shared:
                best, shared, marker = sentence, len(asked & content_words(sentence)), number
    if not best:
        return {"answer": "", "values": [], "answerable": False}
    values = [*figures(best), *(name for name in names(best) if not content_words(name) & asked)]
    return {"answer": f"{best.rstrip('.。')} [{marker}].", "values": values[:1], "answerable": True}


def reduce_points(fields: Fields) -> Answered:
    """The points as they are; the rule of the step `reduce`."""
    points = re.findall(r"^\(\d+\) (.*)$", _text(fields, "points"), re.M)
    return {"answer": "\n".join(points), "values": [], "answerable": bool(points)}


def _pieces(evidence: str) -> list[tuple[int, str]]:
    """Numbered pieces of evidence, as `[n] title: text` with a blank line between them."""
    found = re.split(r"^\[(\d+)\] ", evidence, flags=re.M)
    pairs = zip(found[1::2], found[2::2], strict=True)
    return [(int(number), text.strip()) for number, text in pairs]


def tune(fields: Fields) -> Answered:
    """The first name of the example is an actor, every other a scene."""
    sample = _items(fields, "sample")
    said = [sentence for passage in sample for sentence in sentences(passage.partition(": ")[2])]
    first, named = next(((one, found) for one in said if len(found := names(one)) > 1), ("", []))
    kinds = ["actor", *["scene"] * len(named)]
    example = {
        "passage": first,
        "entities": [_entity(*it, first) for it in zip(named, kinds, strict=False)],
        "relations": [_relation(first, named[0], other) for other in named[1:2]],
    }
    return {
        "persona": f"You are a reader of {named[0] if named else 'nothing'}.",
        "language": "Chinese" if is_chinese("".join(sample)) else "English",
        "entity_types": [
            {"name": "actor", "meaning": "who acts"},
            {"name": "scene", "meaning": "where it happens"},
        ],
        "examples": [example] if named else [],
    }


def plan(fields: Fields) -> Answered:
    """Paths between two names; of one or more, the first relation that the question lacks."""
    question, named = _text(fields, "question").lower(), _items(fields, "names")
    kind, operator, source = "s**", "neighbours", "nothing"
    targets, relations = list[str](), list[str]()
    if len(named) == 2:
        kind, operator, source, targets = "s*o", "connect", named[0], named[1:]
    elif named:
        new = (one for one in _items(fields, "relations") if one.lower() not in question)
        kind, operator, source, relations = "sp*", "follow", named[0], [next(new)]
    hops = [{"relation": relation, "inverse": False, "kind": ""} for relation in relations]
    step = {"operator": operator, "sources": [source], "targets": targets, "hops": hops}
    return {"reasoning": f"{len(named)} names", "type": kind, "steps": [step]}


def plan_table(fields: Fields) -> Answered:
    """The row with the highest figure in the first table's last column; none for "who"."""
    who = _text(fields, "question").lower().startswith("who")
    columns = _COLUMN.findall(_text(fields, "tables").partition("\n\n")[0])
    named = [] if who else [name for name, cells in columns if re.match(r"[\d$]", cells)][-1:]
    return {
        "reason": "It asks for no figure." if who else "The last column of figures.",
        "operation": "max" if named else "none",
        "table": 1,
        "columns": named,
        "filters": [],
        "group_by": "",
        "aggregate": "sum",
        "order": "",
        "limit": 0,
    }


def rate(fields: Fields) -> Answered:
    """Three for each content word that a report shares with the question, ten at most."""
    asked = content_words(_text(fields, "question"))
    shared = [len(asked & content_words(text)) for text in _items(fields, "reports")]
    rows = enumerate(shared)
    return {"ratings": [{"report": number, "rating": min(10, 3 * many)} for number, many in rows]}


def partial(fields: Fields) -> Answered:
    """The findings that share content words with the question, twenty points for each word."""
    asked = content_words(_text(fields, "question"))
    found = [
        {"text": said, "findings": [int(number)], "score": min(100, 20 * shared)}
        for report in _items(fields, "reports")
        for number, said in _FINDING.findall(report)
        if (shared := len(asked & content_words(said)))
    ]
    return {"points": sorted(found, key=lambda point: -int(str(point["score"])))[:MOST_POINTS]}


def explore(fields: Fields) -> Answered:
    """The same points; then the names in them that the question does not have."""
    points = partial(fields)["points"]
    known = {*names(_text(fields, "question")), *names(_text(fields, "focus"))}
    named = (name for point in points for name in names(point["text"]) if name not in known)
    new = list(dict.fromkeys(named))[:MOST_FOLLOW_UPS]
    follow_ups = [{"question": f"What about {name}?", "score": 50} for name in new]
    return {"points": points, "follow_ups": follow_ups}


def subquestions(fields: Fields) -> Answered:
    """The parts around "and", each with the first names of the documents."""
    named = " ".join(_items(fields, "names")[:MOST_KEYS])
    parts = decompose(fields)["questions"]
    return {"questions": [{"question": part, "search": named} for part in parts]}


def relevance(fields: Fields) -> Answered:
    """The sentences that share content words with the question."""
    asked = content_words(_text(fields, "question"))
    found = [one for text in _items(fields, "passages") for one in _FINDING.findall(text)]
    return {"sentences": [int(number) for number, said in found if asked & content_words(said)]}


def recognize(fields: Fields) -> Answered:
    """The statements that share two content words with the question."""
    asked, given = content_words(_text(fields, "question")), _items(fields, "statements")
    near = [n for n, said in _numbered(given) if len(asked & content_words(said)) >= LEAST_SHARED]
    return {"statements": near[:MOST_POINTS]}


def propositions(fields: Fields) -> Answered:
    """Each sentence after the title."""
    title, given = _text(fields, "title"), _numbered(_items(fields, "sentences"))
    listed = [{"text": f"{title}: {said}"[:240], "sentence": n} for n, said in given[:30]]
    return {"propositions": listed}


def hypothesize(fields: Fields) -> Answered:
    return {"passage": f"It is known that {_text(fields, 'question').rstrip('?')}."}


def direct(fields: Fields) -> Answered:
    """The last name of the question."""
    named = names(_text(fields, "question"))
    return {"answer": f"It is {named[-1]}." if named else "", "values": named[-1:]}


def judge(fields: Fields) -> Answered:
    """The answer with more content words; of directness the first one, which is a known bias."""
    if _text(fields, "criterion").startswith("directness"):
        return {"reason": "It is shown first.", "winner": "first"}
    first, second = (len(content_words(_text(fields, name))) for name in ("first", "second"))
    winner = "tie" if first == second else "first" if first > second else "second"
    return {"reason": f"{first} and {second} words", "winner": winner}


def grade(fields: Fields) -> Answered:
    """The percentage of the right answer's content words; without one, ten for each word."""
    right, own = content_words(_text(fields, "right")), content_words(_text(fields, "answer"))
    known = _text(fields, "right") != "(none)"
    points = 100 * len(right & own) // max(1, len(right)) if known else min(100, 10 * len(own))
    return {"reason": f"{len(right & own)} of {len(right)} words", "score": points}


def describe(fields: Fields) -> Answered:
    """The titles and the names in the samples."""
    things = dict.fromkeys([*_items(fields, "titles"), *_names_in(_items(fields, "samples"))])
    return {"description": f"On {', '.join(things)}."[:6000]}


def picture(fields: Fields) -> Answered:
    """A chart of the last name beside it."""
    named = _names_in([_text(fields, "beside")])
    return {"description": f"Bar chart of {['nothing', *named][-1]}. The highest bar is 412."}


def users(fields: Fields) -> Answered:
    """Numbered users, each with numbered tasks."""
    many, tasks = int(_text(fields, "users")), int(_text(fields, "tasks"))
    return {
        "people": [
            {"user": f"Reader {n}", "tasks": [f"Task {n}.{task}" for task in range(1, tasks + 1)]}
            for n in range(1, many + 1)
        ]
    }


def ask_whole(fields: Fields) -> Answered:
    """Three things of the description to a question, drawn by the task.

    The first question is the same for every task, and the second asks for what is not there.
    """
    things = re.split("[,，]", _text(fields, "description").removeprefix("On "))
    task, known = _text(fields, "task"), _items(fields, "known")
    number = int(_text(fields, "number"))

    def question(place: int) -> str:
        lot = zlib.crc32(f"{task} {known} {place}".encode())
        drawn = [things[(lot // len(things) ** power) % len(things)] for power in range(3)]
        first, second, third = (thing.strip(" .") for thing in drawn)
        return f"Which themes tie {first}, {second} and {third}?"

    fixed = [] if known else ["Which themes matter most?", f"Who built Zorblax of {task}?"]
    return {"questions": [*fixed, *(question(place) for place in range(number))][:number]}


def ask_part(fields: Fields) -> Answered:
    """A sentence of the last passage without its last name, which is the answer.

    The first sentence of another passage is evidence too. What cannot be answered asks how tall a
    name is.
    """
    kind, passages = _text(fields, "kind").partition(":")[0], _items(fields, "passages")
    numbered = [_numbered(passage.split("\n")[1:]) for passage in passages]
    named = [(number, text, found) for number, text in numbered[-1] if (found := names(text))]
    nothing: Answered = {"question": "", "answer": "", "sentences": []}
    if not named:
        return {"reason": "No name.", **nothing}
    number, text, found = named[0]
    if kind == "unanswerable":
        return {"reason": "Not said.", **nothing, "question": f"How tall is {found[0]}?"}
    evidence = [*([numbered[0][0][0]] if len(passages) > 1 else []), number]
    question = f"{text.replace(found[-1], 'what').rstrip('.。')}?"
    return {"reason": "A name.", "question": question, "answer": found[-1], "sentences": evidence}


def check_question(fields: Fields) -> Answered:
    """Themes are global; who built Zorblax and how tall something is cannot be answered."""
    question = _text(fields, "question")
    if question.startswith("Which themes"):
        return {"reason": "About the whole.", "verdict": "global"}
    unknown = re.match("Who built Zorblax|How tall", question) or not _items(fields, "passages")
    return {"reason": "By its words.", "verdict": "unanswerable" if unknown else "answerable"}


Rule = Callable[[Fields], Answered]
_RULES = (
    *(extract, glean, resolve, summarize, relate, report, tune),
    *(rewrite, keywords, route, choose, structurize, decompose, answer, direct),
    *(agent, plan, plan_table, rate, partial, explore, subquestions, relevance, hypothesize),
    *(recognize, propositions, picture),
    *(judge, grade, describe, users, ask_whole, ask_part, check_question),
)
RULES: Mapping[str, Rule] = {
    "filter": judge_passages,
    "reduce": reduce_points,
    **{rule.__name__: rule for rule in _RULES},
}


def answer_step(step: str, fields: Fields) -> Answered:
    """The rule's answer; NoRuleError without a rule, or without a field that the rule reads."""
    if step not in RULES:
        known = ", ".join(RULES)
        raise NoRuleError(f"there is no rule for the step {step!r}; the steps are {known}")
    return RULES[step](fields)


def _text(fields: Fields, name: str) -> str:
    value = _field(fields, name)
    return value if isinstance(value, str) else "\n".join(value)


def _items(fields: Fields, name: str) -> list[str]:
    value = _field(fields, name)
    return ([value] if value else []) if isinstance(value, str) else list(value)


def _field(fields: Fields, name: str) -> str | Sequence[str]:
    """The field; an empty one is not sent."""
    if name in MAY_BE_EMPTY:
        return fields.get(name, "")
    if name not in fields:
        known = ", ".join(fields) or "none"
        raise NoRuleError(f"the request has no field {name!r}; it has {known}")
    return fields[name]


def _names_in(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for said in sentences(text) for name in names(said)]


def _numbered(items: Sequence[str]) -> list[tuple[int, str]]:
    """Items by the number in their brackets, or else by their place from 0."""
    found = [(place, item, _NUMBERED.match(item)) for place, item in enumerate(items)]
    return [(int(match[1]), match[2]) if match else (place, item) for place, item, match in found]
