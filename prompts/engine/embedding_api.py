"""Vectors from a server that speaks OpenAI's `/v1/embeddings`."""

import copy
import time
from collections.abc import Callable, Mapping

import numpy as np
from pydantic import BaseModel

from prompts.engine.calls import most_tokens, rough_tokens
from prompts.engine.embedders import Embedder, EmbeddingForm, Floats, VectorCache
from prompts.engine.errors import BatchTooLarge, ModelRefused
from prompts.engine.json_api import ApiUse, JsonApi
from prompts.engine.providers import Endpoint
from prompts.engine.refusals import HABITS, Failure, Habits
from prompts.engine.spending import Meter, SpendBudget, Spent, price_of
from prompts.text.tokens import count_tokens

STEP = "embed"  # in the ledger
_BATCH = 64
_ENCODING = "encoding_format"
USE = ApiUse("/embeddings", "embedding model", "TRELLIS_EMBEDDING", "use the embedding `bundled`")


class _Row(BaseModel):
    index: int | None = None
    embedding: list[float]


class _EmbeddingResponse(BaseModel):
    data: list[_Row]
    usage: object = None


class ApiEmbedder(Embedder):
    """A served embedding model. Its name holds the host.

    The vectors of one request are in the cache before the next request is sent.
    """

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
        self._habits = HABITS.setdefault((self._api.address, where.name), Habits())
        self._price = price_of(where.name) if where.listed else None
        self._widths: list[int] = []  # of the first vectors; shared by all views
        self.meter = Meter()
        self.spend_budget = SpendBudget()

    def metered(self, meter: Meter) -> "ApiEmbedder":
        view = copy.copy(self)
        view.meter = meter
        return view

    def within(self, spend_budget: SpendBudget) -> "ApiEmbedder":
        """The same embedder with this to spend."""
        view = copy.copy(self)
        view.spend_budget = spend_budget
        return view

    @property
    def kept_after(self) -> int:  # type: ignore[override]  # it is learnt
        """As many texts as one request holds."""
        return self._habits.most_texts or _BATCH

    @property
    def unpriced(self) -> bool:
        """Whether nobody knows what it costs."""
        return self._price is None

    def forecast(self, texts: Mapping[str, str]) -> Spent:
        """What embedding these texts, by their hashes, would take; cached ones take nothing."""
        known = self.cache.get_many(self.name, list(texts)) if self.cache else {}
        missing = [text for key, text in texts.items() if key not in known]
        tokens, calls = sum(count_tokens(missing)), -(-len(missing) // self.kept_after)
        cost = self._price.cost(tokens, 0) if self._price else None
        return Spent(calls=calls, input_tokens=tokens, cost_usd=cost if missing else 0.0)

    @property
    def width(self) -> int:
        """Asked of the server by one short text where no vector has come yet."""
        if not self._widths:
            self._encode(["dimension"], query=False)
        return self._widths[0]

    def _encode(self, texts: list[str], query: bool) -> Floats:
        """Asks for fewer texts at a time, or without an encoding, once the server refused it."""
        size = self.kept_after
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
            if _ENCODING not in self._habits.left_out:
                body[_ENCODING] = "float"
            answer = self._api.post(body, _EmbeddingResponse)
            told = answer.usage.get("prompt_tokens") if isinstance(answer.usage, dict) else None
            tokens = told if isinstance(told, int) else sum(map(rough_tokens, texts))
            bill.used = tokens, 0
        cost = price.cost(tokens, 0) if price else None
        seconds = time.monotonic() - started
        spent = Spent(calls=1, input_tokens=tokens, cost_usd=cost, seconds=seconds)
        self.meter.record(STEP, self.name, spent)
        return self._checked(answer.data, len(texts))

    def _checked(self, data: list[_Row], many: int) -> Floats:
        """The vectors in the order of the texts; ModelRefused where they are not one a text."""
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
        """What the cache spared are the calls that would have been made without it."""
        if spared := -(-texts // self.kept_after) - -(-missing // self.kept_after):
            self.meter.record(STEP, self.name, Spent(cached_calls=spared))


def _in_order(rows: list[_Row]) -> list[_Row]:
    """The rows by their numbers, or as they came without; none where two have one number."""
    numbers = [row.index for row in rows]
    if len(set(numbers)) <= 1:
        return rows
    if set(numbers) != set(range(len(rows))):
        return []
    return sorted(rows, key=lambda row: row.index or 0)
