"""Rerankers: which model says how relevant each passage is to a question; one that is served is called at `/rerank`.

The request is that of Cohere, Jina, Voyage, vLLM, Infinity and llama.cpp.
"""

import copy
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from prompts.engine.calls import rough_tokens
from prompts.engine.embedders import is_local_model
from prompts.engine.errors import ModelMisconfigured, ModelRefused
from prompts.engine.json_api import ApiUse, JsonApi
from prompts.engine.key_masking import mask_error, mask_keys
from prompts.engine.providers import Backend, Endpoint, ModelChoice, rerank_endpoint
from prompts.engine.spending import Meter, Spent

STEP = "rerank"  # in the ledger
CHOICES = (
    "Name a cross-encoder of sentence-transformers as `ORG/NAME` or by its folder, `cohere/NAME` (`jina_ai/…`, "
    "`voyage/…`, `together_ai/…`), or any model's name together with TRELLIS_RERANKER_BASE_URL, the address before "
    "`/rerank`."
)
_USE = ApiUse("/rerank", "reranker", "TRELLIS_RERANKER", "leave TRELLIS_RERANKER empty")


class Reranker(ABC):
    """How relevant passages are to a question, by a model that reads both together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.meter = Meter()

    @abstractmethod
    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """One score a passage, the greater the more relevant; comparable within one call."""

    def metered(self, meter: Meter) -> "Reranker":
        """The same reranker, whose calls are entered into this ledger under the step `rerank`."""
        view = copy.copy(self)
        view.meter = meter
        return view


class _Score(BaseModel):
    index: int
    score: float = Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)


class _Tokens(BaseModel):
    total_tokens: int | None = None


class _RerankResponse(BaseModel):
    results: list[_Score] = Field(validation_alias=AliasChoices("results", "data"))
    usage: _Tokens | None = None


class ApiReranker(Reranker):
    """A served reranker."""

    def __init__(self, where: Endpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._api = JsonApi(where, _USE, sleep)
        super().__init__(self._api.name)
        self._model = where.model

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        started = time.monotonic()
        answer = self._read(self._api.post({"model": self._model, "query": query, "documents": list(passages)}))
        tokens = answer.usage.total_tokens if answer.usage else None
        if tokens is None:
            tokens = sum(rough_tokens(query) + rough_tokens(passage) for passage in passages)
        spent = Spent(calls=1, input_tokens=tokens, cost_usd=None, seconds=time.monotonic() - started)
        self.meter.record(STEP, self.name, spent)
        scores = {row.index: row.score for row in answer.results}
        if sorted(scores) != list(range(len(passages))):
            raise ModelRefused(
                f"{self.name!r} answered {len(passages)} passages with scores for {len(scores)}.",
                "Its server must rank all of them: raise its limit, or lower TRELLIS_RERANKER_PASSAGES.",
            )
        return [scores[place] for place in range(len(passages))]

    def _read(self, content: bytes) -> _RerankResponse:
        try:
            return _RerankResponse.model_validate_json(content)
        except ValidationError as error:
            raise ModelRefused(
                f"{self._api.address} did not answer with `results` that have `index` and `relevance_score`: "
                f"{mask_keys(error.errors()[0]['msg'])}.",
                "Check TRELLIS_RERANKER_BASE_URL: `/rerank` is called under it.",
            ) from mask_error(error)


def open_reranker(
    name: str, base_url: str | None = None, api_key: str | None = None, *, backend: Backend = "torch",
    allow_download: bool = False,
) -> Reranker:  # fmt: skip
    """The reranker that the settings name, not loaded yet. Raises ModelMisconfigured for an unknown name.

    A key that is not given is read from the provider's own variable, for its own address alone.
    """
    served = rerank_endpoint(ModelChoice(name, base_url, api_key), os.environ)
    if served is not None:
        return ApiReranker(served)
    if is_local_model(name):
        from prompts.engine.local_models import CrossEncoderReranker

        return CrossEncoderReranker(name, backend=backend, allow_download=allow_download)
    raise ModelMisconfigured(f"There is no reranker {name!r}.", CHOICES)
