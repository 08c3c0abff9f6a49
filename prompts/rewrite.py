"""What exactly is asked, and by which queries is the evidence found? (ERM4, Query Rewriter+: p → (s, Q))"""

import re
from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.question import ask
from prompts.language.words import is_han
from prompts.reading.chains import chain
from prompts.reading.pick import names_of

MAX_QUERIES = 4
_REFERS = re.compile(r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|this|that one|these|those)\b", re.I)
_ZH_REFERS = re.compile(r"[他她它](?:们)?|其|这个|那个|该")
_PERSONAL = frozenset("he she him her his hers 他 她".split())
_NOT_PEOPLE = frozenset({"place", "organisation", "work", "method", "event"})


class Rewriting(BaseModel):
    """One unambiguous question and the search queries for its aspects."""

    question: str
    queries: list[str] = Field(description=f"At most {MAX_QUERIES}.")


class RewriteQuestion(dspy.Signature):
    """Rewrite the question so that it stands on its own, with what the history says put in place of pronouns, in its
    own language. Add search queries for different aspects only where one query cannot find everything."""

    question: str = dspy.InputField()
    history: list[str] = dspy.InputField(desc="Earlier questions and answers, oldest first.")
    rewriting: Rewriting = dspy.OutputField()


class Rewrite(Step):
    """A question with its history → one question and its queries; a model is asked only where there is a history."""

    step = "rewrite"
    role = "rewrite"
    task = RewriteQuestion

    async def run(self, question: str, history: Sequence[str]) -> Rewriting:
        # Without a history there is nothing that a pronoun could stand for, and the rules find the further queries.
        if self.is_offline or not history:
            return rewrite_offline(question, history)
        prediction = await self.acall(question=question, history=list(history))
        rewriting: Rewriting = prediction.rewriting
        return rewriting


def rewrite_offline(question: str, history: Sequence[str] = ()) -> Rewriting:
    """White space folded; a pronoun without any name in the question takes the last name of the history; one further
    query for each thing compared and for the innermost part of a chain."""
    text = _resolved(" ".join(question.split()), history)
    taken = ask(text)
    queries = [text]
    if taken.options:
        queries += list(taken.options)
    elif not taken.chinese:
        queries += [part for part in chain(text)[:-1] if "{" not in part]
    return Rewriting(question=text, queries=list(dict.fromkeys(queries))[:MAX_QUERIES])


def _resolved(text: str, history: Sequence[str]) -> str:
    """A pronoun's place taken by the name that the history speaks of last; a question with a name stays as it is."""
    chinese = is_han(text)
    pronoun = (_ZH_REFERS if chinese else _REFERS).search(text)
    if pronoun is None or any(name.start > 0 for name in names_of(text)):
        return text
    wants_person = pronoun.group().lower() in _PERSONAL
    for earlier in reversed(history):
        names = [name for name in names_of(earlier) if name.start > 0 or " " in name.text or chinese]
        # "He" and "she" are people: a name that looks like nothing else comes before a place or an organisation.
        names.sort(key=lambda name: (wants_person and name.kind in _NOT_PEOPLE, name.start))
        if names:
            owns = pronoun.group().lower() in {"his", "its", "their"} and not chinese
            possessive = "'s" if owns else ""
            return f"{text[: pronoun.start()]}{names[0].text}{possessive}{text[pronoun.end() :]}"
    return text
