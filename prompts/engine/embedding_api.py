"""How are vectors fetched from a server that speaks OpenAI's /v1/embeddings?"""

import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import numpy as np
from pydantic import BaseModel, ValidationError

from prompts.engine.embedder import CachingEmbedder, Floats, VectorCache
from prompts.engine.errors import ModelMisconfigured, ModelRefused, ModelUnavailable
from prompts.engine.faults import seconds_asked

OPENAI_URL = "https://api.openai.com/v1"
_BATCH = 64
_ATTEMPTS = 5
_LONGEST_WAIT = 60.0  # seconds; a server that asks for more is reported as unavailable sooner than waited for
_MAX_TOKENS = 512  # what most served models read; their servers refuse or cut more


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]


class ApiEmbedder(CachingEmbedder):
    """A served embedding model. Its name holds the host, for two servers may call two models the same."""

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str | None = None,
        cache: VectorCache | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        host = urlsplit(base_url)
        if host.scheme not in {"http", "https"} or not host.hostname:
            raise ModelMisconfigured(
                f"{base_url!r} is not the address of an embedding server.",
                "Give one such as http://localhost:11434/v1.",
            )
        super().__init__(f"{model}@{host.netloc.rpartition('@')[2]}", _MAX_TOKENS, cache)
        self._model = model
        self._url = f"{base_url.rstrip('/').removesuffix('/embeddings')}/embeddings"
        self._key = api_key
        self._sleep = sleep
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        """Asked of the server by one short text where no vector has come yet."""
        if self._dimension is None:
            self._encode(["dimension"])
        assert self._dimension is not None  # noqa: S101 - `_encode` sets it or raises
        return self._dimension

    def _encode(self, texts: list[str]) -> Floats:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        with httpx.Client(headers=headers, timeout=60.0) as client:
            batches = [self._batch(client, texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
        widths = {len(row) for batch in batches for row in batch}
        if self._dimension is None and len(widths) == 1:
            self._dimension = next(iter(widths))
        if widths != {self._dimension}:
            raise ModelRefused(
                f"{self.name!r} answered vectors of {sorted(widths)} numbers; the first ones had {self._dimension}.",
                "Its server now serves another model: name that one, and index again with --full.",
            )
        return np.array([row for batch in batches for row in batch], np.float32)

    def _batch(self, client: httpx.Client, texts: list[str]) -> list[list[float]]:
        response = self._posted(client, texts)
        try:
            rows = sorted(_Answer.model_validate_json(response.content).data, key=lambda row: row.index)
        except ValidationError as error:
            raise ModelRefused(
                f"{self._url} did not answer in the form of /v1/embeddings: {error.errors()[0]['msg']}.",
                "Check that the base URL ends in the path under which the server offers `/embeddings`, mostly `/v1`.",
            ) from error
        if [row.index for row in rows] != list(range(len(texts))):
            raise ModelRefused(f"{self.name!r} answered {len(texts)} texts with {len(rows)} vectors.", "Try again.")
        return [row.embedding for row in rows]

    def _posted(self, client: httpx.Client, texts: list[str]) -> httpx.Response:
        failure = ""
        for attempt in range(_ATTEMPTS):
            wait = float(2**attempt) / 2
            try:
                response = client.post(
                    self._url, json={"model": self._model, "input": texts, "encoding_format": "float"}
                )
            except httpx.TransportError as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if response.is_success:
                    return response
                failure = self._said(response)
                if response.status_code != 429 and response.status_code < 500:
                    raise _refusal(response.status_code, failure, self.name)
                asked = seconds_asked(response.headers.get("retry-after"))
                wait = wait if asked is None else asked
            if wait > _LONGEST_WAIT or attempt == _ATTEMPTS - 1:
                break
            self._sleep(wait)
        raise ModelUnavailable(
            f"The embedding model {self.name!r} gave no vectors: {failure}",
            "Check that its server runs and its limits allow the load, then run again.",
        )

    def _said(self, response: httpx.Response) -> str:
        said = f"HTTP {response.status_code} {response.text[:200]}"
        return said.replace(self._key, "***") if self._key else said


def _refusal(status: int, said: str, name: str) -> ModelMisconfigured | ModelRefused:
    if status in {401, 403}:
        return ModelMisconfigured(f"The server of {name!r} refused the key: {said}", "Set the API key of this server.")
    if status == 404:
        return ModelMisconfigured(
            f"The server has no model or address for {name!r}: {said}", "Check the name and base URL."
        )
    return ModelRefused(f"The server of {name!r} refused the texts: {said}", "Check the model's limits.")
