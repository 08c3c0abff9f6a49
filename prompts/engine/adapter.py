"""How does DSPy itself write and read our form, where a step is given a DSPy model of its own?"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy
from dspy.clients.engines.streaming import EngineChunk

from prompts.engine.calls import without_thinking
from prompts.engine.redact import redacted
from prompts.engine.wire import Wire, conversation


class WireAdapter(dspy.Adapter):
    """DSPy's adapter over a step's wire. No marker in an input is ever turned into an image or a file."""

    def __init__(self, step: str, wire: Wire, read: Callable[[str], dict[str, object]], examples: str) -> None:
        super().__init__()
        self._step = step
        self._wire = wire
        self._read = read
        self._examples = examples

    def format(
        self, signature: type[dspy.Signature], demos: Sequence[Mapping[str, object]], inputs: Mapping[str, object]
    ) -> list[dict[str, Any]]:
        """DSPy's message dictionaries."""
        messages = conversation(self._step, signature, self._wire, demos, inputs, self._examples)
        return [{"role": message.role, "content": message.content} for message in messages]

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, object]:
        """The output fields; NotAsAsked where the answer is not in form."""
        return self._read(without_thinking(redacted(completion)))


def chunk(model: str, predict_id: int, text: str) -> EngineChunk:
    """A piece of an answer as DSPy's stream listeners take it."""
    delta = {"index": 0, "delta": EngineChunk(content=text), "finish_reason": None}
    return EngineChunk(id=None, model=model, predict_id=predict_id, choices=[EngineChunk(delta)])
