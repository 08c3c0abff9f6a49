"""How fast-graphrag 0.0.5 asks, and what the scripted model says to it: the rules of the steps, in
the form it reads.

Its prompts name no step; each is known by its first words. The answers are JSON objects.
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
    """What these messages of fast-graphrag ask for, as `fast-graphrag extract`; None where they are
    not its own.
    """
    last = texts[-1].lstrip() if texts else ""
    return next(
        (f"fast-graphrag {step}" for step, words in _FIRST_WORDS.items() if last.startswith(words)),
        None,
    )


def peer_answer(texts: Sequence[str]) -> str:
    """The message's content, for messages that `peer_step` knows."""
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
        return answer_step(
            step, {"statements": _between(text, "\nCurrent:", "\nUpdated:").splitlines()}
        )
    if step == "group":
        return {
            "grouped_facts": _equal(_FACT.findall(_between(text, "# INPUT:\nFacts:", "\nOuput:")))
        }
    # A passage is given as its title and, below, its text: evidence as ours is `title: text`.
    evidence = "\n\n".join(
        f"[{number}] " + source.replace("\n", ": ", 1) for number, source in _SOURCE.findall(text)
    )
    question = _between(text, "# USER QUERY", "# INSTRUCTIONS")
    said = answer_step(step, {"question": question, "evidence": evidence})
    return {"answer": said["answer"] or "No relevant information was found."}


def _graph(found: Mapping[str, list[Answered]]) -> Answered:
    entities = [
        {"name": row["name"], "type": row["kind"], "desc": row["description"]}
        for row in found["entities"]
    ]
    links = [
        {"source": r["source"], "target": r["target"], "desc": r["description"]}
        for r in found["relations"]
    ]
    return {"entities": entities, "relationships": links, "other_relationships": []}


def _equal(facts: Sequence[tuple[str, str]]) -> list[Answered]:
    """Facts in the same words are one."""
    groups: dict[str, list[int]] = {}
    for number, fact in facts:
        groups.setdefault(fact, []).append(int(number))
    return [
        {"ids": numbers, "description": fact}
        for fact, numbers in groups.items()
        if len(numbers) > 1
    ]


def _between(text: str, start: str, end: str) -> str:
    """What stands after the last `start`, up to the last `end`: examples of a prompt come before
    its input.
    """
    return text.rpartition(start)[2].rpartition(end)[0].strip()
