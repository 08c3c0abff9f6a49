"""How are vectors fetched from a server that speaks OpenAI's /v1/embeddings?"""

import copy
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx
import numpy as np
from pydantic import BaseModel, ValidationError

from prompts.engine.calls import rough_tokens
from prompts.engine.embedder import CachingEmbedder, Floats, Lazy, VectorCache
from prompts.engine.errors import BadKey, ModelMisconfigured, ModelRefused, ModelUnavailable, QuotaExhausted
from prompts.engine.faults import refused, seconds_asked
from prompts.engine.meter import Meter, Spent
from prompts.engine.prices import price_of
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.purse import Purse
from prompts.engine.redact import keep_secret, redact, redacted, secrets_of_address
from prompts.text.tokens import count_tokens

STEP = "embed"  # in the ledger
_BATCH = 64
_ATTEMPTS = 5
_LONGEST_WAIT = 60.0  # seconds; a server that asks for more is reported as unavailable sooner than waited for
_MAX_TOKENS = 512  # what most served models read; their servers refuse or cut more


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]
    usage: object = None


class ApiEmbedder(CachingEmbedder):
    """A served embedding model. Its name holds the host, for two servers may call two models the same.

    The vectors of one request are in the cache before the next request is sent.
    """

    kept_after = _BATCH

    def __init__(
        self,
        where: Endpoint,
        cache: VectorCache | None = None,
        *,
        meter: Meter | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(f"{where.model}@{urlsplit(where.url).netloc.rpartition('@')[2]}", _MAX_TOKENS, cache)
        keep_secret((where.key, *secrets_of_address(where.url)))
        self._where = where
        self._url = f"{where.url}/embeddings"
        self._price = price_of(where.name) if where.listed else None
        self.meter = meter or Meter()
        self.purse = Purse()
        self._sleep = sleep
        # All views share the connection and the length of the first vector that came.
        self._client = Lazy(self._connected)
        self._widths: list[int] = []

    def metered(self, meter: Meter) -> "ApiEmbedder":
        view = copy.copy(self)
        view.meter = meter
        return view

    def within(self, purse: Purse) -> "ApiEmbedder":
        """The same embedder with this to spend."""
        view = copy.copy(self)
        view.purse = purse
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
        rows = self._batch(self._client.get(), texts)
        widths = {len(row) for row in rows}
        if not self._widths and len(widths) == 1:
            self._widths.extend(widths)
        if widths != set(self._widths):
            raise ModelRefused(
                f"{self.name!r} answered vectors of {sorted(widths)} numbers; the first ones had {self._widths}.",
                "Its server now serves another model: name that one, and index again with --full.",
            )
        return np.array(rows, np.float32)

    def _batch(self, client: httpx.Client, texts: list[str]) -> list[list[float]]:
        started = time.monotonic()
        with self.purse.spending_here(_most_tokens(texts) if self.purse.limited else 0, self._price) as bill:
            response = self._posted(client, texts)
            bill.used = bill.most
            try:
                answer = _Answer.model_validate_json(response.content)
            except ValidationError as error:
                raise ModelRefused(
                    f"{without_user(self._url)} did not answer in the form of /v1/embeddings: "
                    f"{redacted(error.errors()[0]['msg'])}.",
                    "Check that the base URL ends in the path under which the server offers `/embeddings`, mostly "
                    "`/v1`.",
                ) from redact(error)
            bill.used = self._enter(texts, answer.usage, time.monotonic() - started), 0
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise ModelRefused(f"{self.name!r} answered {len(texts)} texts with {len(rows)} vectors.", "Try again.")
        return [row.embedding for row in rows]

    def _found(self, texts: int, missing: int) -> None:
        """What the cache spared are the calls that would have been made without it."""
        spared = -(-texts // _BATCH) - -(-missing // _BATCH)
        if spared:
            self.meter.record(STEP, self.name, Spent(cached_calls=spared))

    def _enter(self, texts: list[str], usage: object, seconds: float) -> int:
        """How many tokens were paid for."""
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        tokens = counted if isinstance(counted, int) else sum(map(rough_tokens, texts))
        cost = self._price.cost(tokens, 0) if self._price else None
        self.meter.record(STEP, self.name, Spent(calls=1, input_tokens=tokens, cost_usd=cost, seconds=seconds))
        return tokens

    def _posted(self, client: httpx.Client, texts: list[str]) -> httpx.Response:
        failure = ""
        for attempt in range(_ATTEMPTS):
            wait = float(2**attempt) / 2
            try:
                response = client.post(
                    self._url, json={"model": self._where.model, "input": texts, "encoding_format": "float"}
                )
            except httpx.TransportError as error:
                failure = f"{type(error).__name__}: {redacted(str(error))}"
            else:
                if response.is_success:
                    return response
                status, said = response.status_code, redacted(response.text)
                failure = f"HTTP {status} {said[:200]}"
                if isinstance(refused(self.name, self._url, status, said).error, QuotaExhausted):
                    raise QuotaExhausted(
                        f"The server of {self.name!r} has no credit for it: {failure}",
                        "Add credit, or use another embedding (TRELLIS_EMBEDDING).",
                    )
                if status != 429 and status < 500:
                    raise _refusal(status, failure, self.name)
                asked = seconds_asked(response.headers.get("retry-after"))
                wait = wait if asked is None else asked
            if wait > _LONGEST_WAIT or attempt == _ATTEMPTS - 1:
                break
            self._sleep(wait)
        raise ModelUnavailable(
            f"The embedding model {self.name!r} gave no vectors: {failure}",
            "Check that its server runs and its limits allow the load, then run again.",
        )


def _most_tokens(texts: list[str]) -> int:
    """How many tokens they have at the most: a sixth more than one tokenizer counts, for servers have their own."""
    counted = count_tokens(texts)
    return sum(number + number // 6 + 4 for number in counted)


def _refusal(status: int, said: str, name: str) -> ModelMisconfigured | ModelRefused:
    if status in {401, 403}:
        return BadKey(f"The server of {name!r} refused the key: {said}", "Set its key: TRELLIS_EMBEDDING_API_KEY.")
    if status == 404:
        return ModelMisconfigured(
            f"The server has no model or address for {name!r}: {said}", "Check the name and base URL."
        )
    return ModelRefused(f"The server of {name!r} refused the texts: {said}", "Check the model's limits.")
