"""Answers fast-graphrag 0.0.5 by the rules of our steps, in JSON objects as it reads them.

Its prompts name no step; each is recognised by its first words.
"""

import json
import re
from collections.abc import Mapping, Sequence

from tests.server.answers import Answered, answer_step

_FIRST_WORDS = {
    "extract": "**IMPORTANT JSON FORMATTING RULES",
    "keywords": "Given the query below, your task is to extract all entities",
    "summarize": "You are a helpful assistant responsible for generating a summary",
    "group": "You are a helpful assistant responsible for maintaining a list of facts",
    "answer": "You are a helpful assistant analyzing the given input data",
}
_SOURCE = re.compile(r"^\[(\d+)\]  (.*?)\n=====\n", re.M | re.S)
_FACT = re.compile(r"^(\d+), (.*)$", re.M)


def peer_step(texts: Sequence[str]) -> str | None:
    """The step of fast-graphrag, as `fast-graphrag extract`; None for other messages."""
    last = texts[-1].lstrip() if texts else ""
    steps = (step for step, words in _FIRST_WORDS.items() if last.startswith(words))
    return next((f"fast-graphrag {step}" for step in steps), None)


def peer_answer(texts: Sequence[str]) -> str:
    """The content of the answer to messages that `peer_step` recognises."""
    step, last = str(peer_step(texts)).removeprefix("fast-graphrag "), texts[-1]
    return json.dumps(_said(step, last), ensure_ascii=False)


def _said(step: str, text: str) -> Answered:
    if step == "extract":
        kinds = _between(text, "**Entity Types**:", "<<ENTITY_TYPES_END>>").split(",")
        passage = _between(text, "**Document**:", "<<DOCUMENT_END>>")
        return _graph(answer_step(step, {"passage": passage, "kinds": kinds}))
    if step == "keywords":
        found = answer_step(step, {"question": _between(text, "-INPUT-\nQuery:", "\nOutput:")})
        return {"named": found["low"], "generic": found["high"]}
    if step == "summarize":
        statements = _between(text, "\nCurrent:", "\nUpdated:").splitlines()
        return answer_step(step, {"statements": statements})
    if step == "group":
        facts = _FACT.findall(_between(text, "# INPUT:\nFacts:", "\nOuput:"))
        return {"grouped_facts": _equal(facts)}
    # Its passages have their title on a line of its own, our evidence is `title: text`.
    sources = ((number, it.replace("\n", ": ", 1)) for number, it in _SOURCE.findall(text))
    evidence = "\n\n".join(f"[{number}] {source}" for number, source in sources)
    question = _between(text, "# USER QUERY", "# INSTRUCTIONS")
    said = answer_step(step, {"question": question, "evidence": evidence})
    return {"answer": said["answer"] or "No relevant information was found."}


def _graph(found: Mapping[str, list[Answered]]) -> Answered:
    things, ties = found["entities"], found["relations"]
    entities = [{"name": r["name"], "type": r["kind"], "desc": r["description"]} for r in things]
    links = [{"source": r["source"], "target": r["target"], "desc": r["description"]} for r in ties]
    return {"entities": entities, "relationships": links, "other_relationships": []}


def _equal(facts: Sequence[tuple[str, str]]) -> list[Answered]:
    """Facts in the same words are one."""
    groups: dict[str, list[int]] = {}
    for number, fact in facts:
        groups.setdefault(fact, []).append(int(number))
    rows = groups.items()
    return [{"ids": ids, "description": fact} for fact, ids in rows if len(ids) > 1]


def _between(text: str, start: str, end: str) -> str:
    """The text from the last `start` to the last `end`, after the examples of a prompt."""
    return text.rpartition(start)[2].rpartition(end)[0].strip()
