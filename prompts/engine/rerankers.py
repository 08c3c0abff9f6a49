"""Rerankers judge how relevant each passage is to a question.

A served one is called at `/rerank`, as Cohere, Jina, Voyage, vLLM, Infinity and llama.cpp have it.
"""

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pydantic import AliasChoices, BaseModel, Field

from prompts.engine.errors import ModelRefused
from prompts.engine.json_api import ApiUse, JsonApi
from prompts.engine.messages import rough_tokens
from prompts.engine.providers import Endpoint
from prompts.engine.spending import Meter, Spent

STEP = "rerank"  # in the ledger
_USE = ApiUse("/rerank", "reranker", "TRELLIS_RERANKER", "leave TRELLIS_RERANKER empty")


class Reranker(ABC):
    """A model that reads a question and a passage together and judges the relevance."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.meter = Meter()

    @abstractmethod
    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """A score for each passage, greater for a more relevant one; comparable within a call."""

    def metered(self, meter: Meter) -> "Reranker":
        """The same reranker, which enters its calls into this ledger under the step `rerank`."""
        copied = copy.copy(self)
        copied.meter = meter
        return copied

    def _enter(
        self, query: str, passages: Sequence[str], started: float, cost: float | None
    ) -> None:
        tokens = sum(rough_tokens(query) + rough_tokens(passage) for passage in passages)
        seconds = time.monotonic() - started
        spent = Spent(calls=1, input_tokens=tokens, cost_usd=cost, seconds=seconds)
        self.meter.record(STEP, self.name, spent)


class _Score(BaseModel):
    index: int
    score: float = Field(
        validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False
    )


class _RerankResponse(BaseModel):
    results: list[_Score] = Field(validation_alias=AliasChoices("results", "data"))


class ApiReranker(Reranker):
    """A served reranker."""

    def __init__(self, where: Endpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._api = JsonApi(where, _USE, sleep)
        super().__init__(self._api.name)
        self._model = where.model

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        started = time.monotonic()
        body = {"model": self._model, "query": query, "documents": list(passages)}
        answer = self._api.post(body, _RerankResponse)
        self._enter(query, passages, started, None)
        scores = {row.index: row.score for row in answer.results}
        if sorted(scores) != list(range(len(passages))):
            raise ModelRefused(
                f"{self.name!r} answered {len(passages)} passages with scores for {len(scores)}.",
                "Its server must rank all of them: raise its limit, or lower "
                "TRELLIS_RERANKER_PASSAGES.",
            )
        return [scores[place] for place in range(len(passages))]
