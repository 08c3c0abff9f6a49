"""Vectors from a server that speaks OpenAI's `/v1/embeddings`."""

import copy
import random
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx
import numpy as np
from pydantic import BaseModel, ValidationError

from prompts.engine.calls import most_tokens, rough_tokens
from prompts.engine.embedders import CachingEmbedder, Floats, Lazy, VectorCache
from prompts.engine.errors import BadKey, ModelRefused, ModelUnavailable
from prompts.engine.failures import LONGEST_WAIT, backoff, refused, unreachable
from prompts.engine.key_masking import keep_secret, mask_error, mask_keys, secrets_of_address
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.spending import Meter, SpendBudget, Spent, price_of
from prompts.text.tokens import count_tokens

STEP = "embed"  # in the ledger
_BATCH = 64
_ATTEMPTS = 5
_MAX_TOKENS = 512  # what most served models read; their servers refuse or cut more


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _EmbeddingResponse(BaseModel):
    data: list[_Row]
    usage: object = None


class ApiEmbedder(CachingEmbedder):
    """A served embedding model. Its name holds the host, for two servers may call two models the same.

    The vectors of one request are in the cache before the next request is sent.
    """

    kept_after = _BATCH

    def __init__(
        self, where: Endpoint, cache: VectorCache | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(f"{where.model}@{urlsplit(where.url).netloc.rpartition('@')[2]}", _MAX_TOKENS, cache)
        keep_secret((where.key, *secrets_of_address(where.url)))
        self._where = where
        self._url = f"{where.url}/embeddings"
        self._price = price_of(where.name) if where.listed else None
        self._sleep = sleep
        self._client = Lazy(self._connected)
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
    def unpriced(self) -> bool:
        """Whether nobody knows what it costs."""
        return self._price is None

    def forecast(self, texts: Mapping[str, str]) -> Spent:
        """What embedding these texts, by their hashes, would take; for what is in the cache nothing."""
        known = self._cache.get_many(self.name, list(texts)) if self._cache else {}
        missing = [text for key, text in texts.items() if key not in known]
        tokens = sum(count_tokens(missing))
        cost = self._price.cost(tokens, 0) if self._price else None
        return Spent(calls=-(-len(missing) // _BATCH), input_tokens=tokens, cost_usd=cost if missing else 0.0)

    @property
    def dimension(self) -> int:
        """Asked of the server by one short text where no vector has come yet."""
        if not self._widths:
            self._encode(["dimension"])
        return self._widths[0]

    def _connected(self) -> httpx.Client:
        if self._where.lacks:
            raise BadKey(
                f"The embedding model {self._where.name!r} needs a key.",
                f"Set TRELLIS_EMBEDDING_API_KEY or {self._where.lacks}, or use the embedding `bundled`.",
            )
        headers = {"Authorization": f"Bearer {self._where.key}"} if self._where.key else {}
        return httpx.Client(headers=headers, timeout=60.0)

    def _encode(self, texts: list[str]) -> Floats:
        started = time.monotonic()
        most = most_tokens(texts) if self.spend_budget.limited else 0
        with self.spend_budget.reserved_in_thread(most, self._price) as bill:
            content = self._posted(self._client.get(), texts)
            bill.used = bill.most
            answer = self._read(content)
            counted = answer.usage.get("prompt_tokens") if isinstance(answer.usage, dict) else None
            tokens = counted if isinstance(counted, int) else sum(map(rough_tokens, texts))
            cost, seconds = self._price.cost(tokens, 0) if self._price else None, time.monotonic() - started
            self.meter.record(STEP, self.name, Spent(calls=1, input_tokens=tokens, cost_usd=cost, seconds=seconds))
            bill.used = tokens, 0
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise ModelRefused(f"{self.name!r} answered {len(texts)} texts with {len(rows)} vectors.", "Try again.")
        widths = sorted({len(row.embedding) for row in rows})
        if not self._widths and len(widths) == 1:
            self._widths.extend(widths)
        if widths != self._widths:
            raise ModelRefused(
                f"{self.name!r} answered vectors of {widths} numbers; the first ones had {self._widths}.",
                "Its server now serves another model: name that one, and index again with --full.",
            )
        return np.array([row.embedding for row in rows], np.float32)

    def _read(self, content: bytes) -> _EmbeddingResponse:
        try:
            return _EmbeddingResponse.model_validate_json(content)
        except ValidationError as error:
            raise ModelRefused(
                f"{without_user(self._url)} did not answer in the form of /v1/embeddings: "
                f"{mask_keys(error.errors()[0]['msg'])}.",
                "Check that the base URL ends in the path under which the server offers `/embeddings`, mostly `/v1`.",
            ) from mask_error(error)

    def _count(self, texts: int, missing: int) -> None:
        """What the cache spared are the calls that would have been made without it."""
        if spared := -(-texts // _BATCH) - -(-missing // _BATCH):
            self.meter.record(STEP, self.name, Spent(cached_calls=spared))

    def _posted(self, client: httpx.Client, texts: list[str]) -> bytes:
        address, failed = without_user(self._url), 0
        body = {"model": self._where.model, "input": texts, "encoding_format": "float"}
        while True:
            try:
                response = client.post(self._url, json=body)
                if response.is_success:
                    return response.content
                after, words = response.headers.get("retry-after"), mask_keys(response.text)
                failure = refused(self.name, address, response.status_code, words, after, "TRELLIS_EMBEDDING")
            except httpx.TransportError as error:
                failure = unreachable(self.name, address, f"{type(error).__name__}: {mask_keys(str(error))}")
            failed += 1
            if not failure.retryable:
                raise failure.error
            # a server that asks for more than a minute is reported as unavailable sooner than waited for
            if failed == _ATTEMPTS or (failure.wait or 0) > LONGEST_WAIT:
                raise ModelUnavailable(
                    f"The embedding model {self.name!r} gave no vectors: {failure.error.message}",
                    "Check that its server runs and its limits allow the load, then run again.",
                )
            self._sleep(backoff(failed, failure.wait, random.random()))  # noqa: S311 -- jitter
