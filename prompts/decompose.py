"""Into which smaller questions does a question fall? (StructRAG, section 2.4: decompose(q, B))"""

import re
from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.asked import DIRECTION, Ask
from prompts.reading.chains import chain, chains_of
from prompts.reading.compare import measured
from prompts.reading.sure import is_plain

MAX_PARTS = 6
# Forms that are answered as a whole.
WHOLE = frozenset({"about", "connect", "global", "howto", "summary"})


class Parts(BaseModel):
    """Sub-questions in the order in which they must be answered; `{n}` stands for the answer of the n-th."""

    questions: list[str] = Field(min_length=1, max_length=MAX_PARTS)


class DecomposeQuestion(dspy.Signature):
    """Split the question into the fewest sub-questions, in its language, that the described knowledge can answer one
    by one. Write {1} where the first answer is needed, {2} for the second. A simple question stays as it is."""

    question: str = dspy.InputField()
    knowledge: list[str] = dspy.InputField(desc="One description for each document.")
    parts: Parts = dspy.OutputField()


class Decompose(Step):
    """A question and what is known → sub-questions; a model is asked where rules find no parts but there may be."""

    step = "decompose"
    role = "decompose"
    task = DecomposeQuestion

    async def run(self, ask: Ask, descriptions: Sequence[str]) -> list[str]:
        by_rule = decompose_offline(ask)
        if self.is_offline or len(by_rule) > 1 or ask.form in WHOLE or is_plain(ask):
            return by_rule
        prediction = await self.acall(question=ask.text, knowledge=list(descriptions))
        parts: Parts = prediction.parts
        return parts.questions


def decompose_offline(ask: Ask) -> list[str]:
    """One question for each thing compared (two where it must be found first), one for each link of a chain, else the
    question itself."""
    if ask.form == "compare" and ask.options:
        linked = chains_of(ask)
        if not linked:
            return [_of_option(ask, option) for option in ask.options]
        pairs = [(first, last.format(f"{{{2 * place + 1}}}")) for place, (first, last) in enumerate(linked)]
        return [part for pair in pairs for part in pair]
    if ask.form in {"fact", "list"} and not ask.chinese:
        return chain(ask.text)
    return [ask.text]


_EVENT = re.compile(
    r"\b(?P<done>born|founded|formed|released|opened|built|established|published|launched|created|completed|started)\b",
    re.I,
)
_POSITIVE = {
    "larger largest": "large",
    "bigger biggest": "big",
    "longer longest": "long",
    "shorter shortest": "short",
    "higher highest": "high",
    "taller tallest": "tall",
    "older oldest younger youngest": "old",
    "wider widest": "wide",
    "deeper deepest": "deep",
    "heavier heaviest": "heavy",
}
_ADJECTIVE = {word: adjective for words, adjective in _POSITIVE.items() for word in words.split()}
_HAVING = re.compile(r"\b(?:has|had|have) (?:the )?(?P<most>\w+) (?P<measure>.+)$", re.I)


def _of_option(ask: Ask, option: str) -> str:
    """What a comparison asks of one of the things compared."""
    if ask.chinese:
        return f"{option}：{ask.text}"
    head = ask.text.rstrip(" ?")
    for other in ask.options:
        head = head.replace(other, "")
    head = re.sub(r"(?:[\s,:]|\b(?:or|and|the|of|between|one)\b)+$", "", head, flags=re.I)
    head = re.sub(r"^(?:between|of|from|out of)\s+(?:and|or)\s*,?\s*", "", head, flags=re.I)
    event, having = _EVENT.search(head), _HAVING.search(head)
    if event and measured(ask) == "date":
        return f"When was {option} {event['done'].lower()}?"
    if having and having["most"].lower() in DIRECTION:
        return f"What is the {having['measure']} of {option}?"
    adjective = next((_ADJECTIVE[word] for word in reversed(head.lower().split()) if word in _ADJECTIVE), None)
    if adjective and head.lower().split()[-1].strip(",") in _ADJECTIVE:
        return f"How {adjective} is {option}?"
    return f"{head}: {option}?"
