"""What do a model and we say to each other, and how is an answer sent back?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prompts.engine.guard import neutralise

Schema = dict[str, object]
MOST_SHOWN = 6000  # characters of a refused answer that are shown to the model again


class NotAsAsked(ValueError):
    """An answer is not of the asked form; the text says what is wrong, in words that the model can act on."""


class Doubtful(NotAsAsked):
    """An answer is in form, but looks like an oversight: the model is asked once more, and what it says then stands.

    `outputs` are the answer as it was read.
    """

    def __init__(self, problem: str, outputs: dict[str, object]) -> None:
        super().__init__(problem)
        self.outputs = outputs


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


def repair(messages: Sequence[Message], answer: str, problem: str) -> tuple[Message, ...]:
    """The conversation goes on: the refused answer, what is wrong with it, and the request for another."""
    wrong = neutralise(problem)  # which may quote the answer
    said = answer if len(answer) <= MOST_SHOWN else f"{answer[:MOST_SHOWN]}…"
    ask = f"This answer cannot be read: {wrong} Answer again: complete, in the form asked for, nothing else."
    return (*messages, Message("assistant", neutralise(said) or "(empty)"), Message("user", ask))
