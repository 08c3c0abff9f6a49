"""Rewriting by rules: what a question means by its conversation, and further queries for its aspects."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.offline.aspects import aspects
from prompts.offline.conversation import Doubt, doubts, stand_alone
from prompts.text.question import ask

MAX_QUERIES = 4


@dataclass(frozen=True)
class RuleRewriting:
    """A question that stands on its own, its queries (itself first), and what in it is ambiguous."""

    question: str
    queries: list[str]
    ambiguities: list[Doubt]


def rewrite_offline(question: str, history: Sequence[str] = ()) -> RuleRewriting:
    """White space folded; pronouns, "that bridge", "the latter" and half questions filled in from the history; one
    further query for each thing compared, link of a chain, part, and year of a period."""
    standing = stand_alone(question, history)
    queries = [standing.text, *aspects(ask(standing.text))]
    return RuleRewriting(standing.text, list(dict.fromkeys(queries))[:MAX_QUERIES], list(doubts(standing)))
