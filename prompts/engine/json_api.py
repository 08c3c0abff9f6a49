"""Calls servers of models that do not write (embeddings, reranking): a JSON body there, a JSON body back."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prompts.engine.embedders import Lazy
from prompts.engine.error_words import words_of
from prompts.engine.errors import BadKey, ModelUnavailable
from prompts.engine.failures import LONGEST_REPLY, LONGEST_WAIT, Failure, backoff, refused, unreachable
from prompts.engine.key_masking import keep_secret, mask_keys, secrets_of_address
from prompts.engine.providers import Endpoint, without_user

if TYPE_CHECKING:  # where every model is of this machine, nobody waits for it
    import httpx

_ATTEMPTS = 5
_SECONDS = 60.0  # for one request, and for the reply to it from its first byte awaited to its last


@dataclass(frozen=True)
class ApiUse:
    """What a server is called for, in the words of its errors: its path, the setting that names it, what to do else."""

    path: str
    kind: str
    setting: str
    instead: str


class JsonApi:
    """One path of a server, called from any thread. `name` holds the host: two servers may call two models the same."""

    def __init__(
        self, where: Endpoint, use: ApiUse, sleep: Callable[[float], None] = time.sleep, seconds: float = _SECONDS
    ) -> None:
        self.name = f"{where.model}@{urlsplit(where.url).netloc.rpartition('@')[2]}"
        self.address = without_user(f"{where.url}{use.path}")
        keep_secret((where.key, *secrets_of_address(where.url)))
        self._where = where
        self._use = use
        self._sleep = sleep
        self._seconds = seconds
        self._client = Lazy(self._connected)

    def post(self, body: Mapping[str, object]) -> bytes:
        """What the server answers. Overload and broken connections are tried again; EngineError with a remedy else."""
        client, failed = self._client.get(), 0
        while True:
            failure = self._tried(client, body)
            if isinstance(failure, bytes):
                return failure
            failed += 1
            if not failure.retryable:
                raise failure.error from failure
            # a server that asks for more than a minute is reported as unavailable sooner than waited for
            if failed == _ATTEMPTS or (failure.wait or 0) > LONGEST_WAIT:
                raise ModelUnavailable(
                    f"The {self._use.kind} {self.name!r} did not answer: {failure.error.message}",
                    "Check that its server runs and its limits allow the load, then run again.",
                )
            self._sleep(backoff(failed, failure.wait, random.random()))  # noqa: S311 -- jitter

    def _tried(self, client: "httpx.Client", body: Mapping[str, object]) -> bytes | Failure:
        from httpx import TransportError

        try:
            with client.stream("POST", f"{self._where.url}{self._use.path}", json=dict(body)) as response:
                content = bytearray()
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > LONGEST_REPLY:
                        words = f"the reply is longer than {LONGEST_REPLY // 1_000_000} MB"
                        return unreachable(self.name, self.address, words)
        except TransportError as error:
            return unreachable(self.name, self.address, f"{type(error).__name__}: {mask_keys(str(error))}")
        if response.is_success:
            return bytes(content)
        after = response.headers.get("retry-after")
        words = mask_keys(words_of(content.decode("utf-8", "replace")))
        return refused(self.name, self.address, response.status_code, words, after, self._use.setting)

    def _connected(self) -> "httpx.Client":
        import httpx

        from prompts.engine.reply_bound import bound_replies

        if self._where.lacks:
            raise BadKey(
                f"The {self._use.kind} {self._where.name!r} needs a key.",
                f"Set {self._use.setting}_API_KEY or {self._where.lacks}, or {self._use.instead}.",
            )
        headers = {"Authorization": f"Bearer {self._where.key}"} if self._where.key else {}
        client = httpx.Client(headers=headers, timeout=self._seconds)
        bound_replies(client, self._seconds)
        return client
