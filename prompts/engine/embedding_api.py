"""Vectors from a server with OpenAI's `/v1/embeddings`."""

import copy
import time
from collections.abc import Callable, Mapping

import numpy as np
from pydantic import BaseModel

from prompts.engine.embedders import Embedder, EmbeddingForm, Floats, VectorCache
from prompts.engine.errors import BatchTooLarge, ModelRefused
from prompts.engine.json_api import ApiUse, JsonApi
from prompts.engine.messages import most_tokens, rough_tokens
from prompts.engine.providers import Endpoint
from prompts.engine.refusals import HABITS, Failure
from prompts.engine.spending import Meter, SpendBudget, Spent, price_of
from prompts.text.tokens import count_tokens

STEP = "embed"  # in the ledger
_BATCH_SIZE = 64
_ENCODING = "encoding_format"
USE = ApiUse("/embeddings", "embedding model", "TRELLIS_EMBEDDING", "use the embedding `bundled`")


class _Row(BaseModel):
    index: int | None = None
    embedding: list[float]


class _EmbeddingResponse(BaseModel):
    data: list[_Row]
    usage: object = None


class ApiEmbedder(Embedder):
    """A served embedding model, with its host in its name."""

    max_tokens = 512  # what most served models read; their servers refuse or cut more

    def __init__(
        self,
        where: Endpoint,
        cache: VectorCache | None = None,
        form: EmbeddingForm | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = JsonApi(where, USE, sleep)
        super().__init__(self._api.name, cache, form)
        self._model = where.model
        self._habits = HABITS[self._api.address, where.name]
        self._price = price_of(where.name) if where.listed else None
        self._widths: list[int] = []  # of the first vectors; shared by all copies
        self.meter = Meter()
        self.spend_budget = SpendBudget()

    def metered(self, meter: Meter) -> "ApiEmbedder":
        copied = copy.copy(self)
        copied.meter = meter
        return copied

    def within(self, spend_budget: SpendBudget) -> "ApiEmbedder":
        copied = copy.copy(self)
        copied.spend_budget = spend_budget
        return copied

    @property
    def batch_size(self) -> int:  # type: ignore[override]  # it is learnt
        return self._habits.most_texts or _BATCH_SIZE

    @property
    def unpriced(self) -> bool:
        return self._price is None

    def forecast(self, texts: Mapping[str, str]) -> Spent:
        """The cost of embedding these texts by their hashes; cached ones cost nothing."""
        known = self.cache.get_many(self.name, list(texts)) if self.cache else {}
        missing = [text for key, text in texts.items() if key not in known]
        tokens, calls = sum(count_tokens(missing)), -(-len(missing) // self.batch_size)
        cost = self._price.cost(tokens, 0) if self._price else None
        return Spent(calls=calls, input_tokens=tokens, cost_usd=cost if missing else 0.0)

    @property
    def width(self) -> int:
        """The width of the server's vectors; a short text is embedded to learn it."""
        if not self._widths:
            self._encode(["dimension"], query=False)
        return self._widths[0]

    def _encode(self, texts: list[str], query: bool) -> Floats:
        """The server's vectors; smaller requests, or without an encoding, after a refusal."""
        size = self.batch_size
        if len(texts) > size:
            parts = [texts[at : at + size] for at in range(0, len(texts), size)]
            return np.concatenate([self._encode(part, query) for part in parts])
        try:
            return self._asked(texts, query)
        except BatchTooLarge as error:
            if len(texts) == 1:
                raise
            words = error.__cause__.words if isinstance(error.__cause__, Failure) else ""
            self._habits.take_fewer_texts(words, len(texts))
        except ModelRefused as error:
            if _ENCODING not in error.message or _ENCODING in self._habits.left_out:
                raise
            self._habits.left_out.add(_ENCODING)
        return self._encode(texts, query)

    def _asked(self, texts: list[str], query: bool) -> Floats:
        started, price = time.monotonic(), self._price
        prompt = self.form.query_prompt if query else self.form.passage_prompt
        texts = [f"{prompt}{text}" for text in texts] if prompt else texts
        most = most_tokens(texts) if self.spend_budget.limited else 0
        with self.spend_budget.reserved_in_thread(most, price) as bill:
            body: dict[str, object] = {"model": self._model, "input": texts}
            if self.form.input_types:
                body["input_type"] = self.form.input_types[not query]
            if _ENCODING not in self._habits.left_out:
                body[_ENCODING] = "float"
            answer = self._api.post(body, _EmbeddingResponse)
            count = answer.usage.get("prompt_tokens") if isinstance(answer.usage, dict) else None
            tokens = count if isinstance(count, int) else sum(map(rough_tokens, texts))
            bill.used = tokens, 0
        cost = price.cost(tokens, 0) if price else None
        seconds = time.monotonic() - started
        spent = Spent(calls=1, input_tokens=tokens, cost_usd=cost, seconds=seconds)
        self.meter.record(STEP, self.name, spent)
        return self._checked(answer.data, len(texts))

    def _checked(self, data: list[_Row], many: int) -> Floats:
        """The vectors in the order of the texts; ModelRefused without one for each text."""
        rows = _in_order(data)
        if len(rows) != many:
            raise ModelRefused(
                f"{self._api.address} answered {many} texts for the model {self._model!r} with "
                f"{len(data)} vectors.",
                "Check that its server answers each text with one vector.",
            )
        widths = sorted({len(row.embedding) for row in rows})
        if not self._widths and len(widths) == 1:
            self._widths.extend(widths)
        if widths != self._widths:
            raise ModelRefused(
                f"{self.name!r} answered vectors of {widths} numbers; the first ones had "
                f"{self._widths}.",
                "Its server now serves another model: name that one, and index again with --full.",
            )
        return np.array([row.embedding for row in rows], np.float32)

    def _count(self, texts: int, missing: int) -> None:
        """Enter the calls that the cache has spared."""
        if spared := -(-texts // self.batch_size) - -(-missing // self.batch_size):
            self.meter.record(STEP, self.name, Spent(cached_calls=spared))


def _in_order(rows: list[_Row]) -> list[_Row]:
    """The rows by their index, or as given without one; none where the indexes are wrong."""
    numbers = [row.index for row in rows]
    if len(set(numbers)) <= 1:
        return rows
    if set(numbers) != set(range(len(rows))):
        return []
    return sorted(rows, key=lambda row: row.index or 0)
