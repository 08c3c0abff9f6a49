"""Calls servers of embedding and reranking models: JSON requests, JSON answers."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from prompts.engine.errors import BadKey, ModelRefused, ModelUnavailable
from prompts.engine.key_masking import keep_secret, mask_error, mask_keys, secrets_of_address
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.refusals import (
    LONGEST_REPLY,
    LONGEST_WAIT,
    Failure,
    backoff,
    refused,
    unreachable,
)

Answer = TypeVar("Answer", bound=BaseModel)
_ATTEMPTS = 5
_SECONDS = 60.0  # for one request and its whole reply


@dataclass(frozen=True)
class ApiUse:
    """The purpose of a server: path, kind of model, setting, and what a user can do without it."""

    path: str
    kind: str
    setting: str
    instead: str


class JsonApi:
    """One path of a server, called from any thread.

    `name` holds the host, because two servers may have models of one name.
    """

    def __init__(
        self,
        where: Endpoint,
        use: ApiUse,
        sleep: Callable[[float], None] = time.sleep,
        seconds: float = _SECONDS,
    ) -> None:
        self.name = f"{where.model}@{urlsplit(where.url).netloc.rpartition('@')[2]}"
        self.address = without_user(f"{where.url}{use.path}")
        keep_secret((where.key, *secrets_of_address(where.url)))
        self._where = where
        self._use = use
        self._sleep = sleep
        self._seconds = seconds

    def post(self, body: Mapping[str, object], form: type[Answer]) -> Answer:
        """The server's answer; overload and broken connections are tried again.

        Raises an EngineError with a remedy, ModelRefused for an answer of another form.
        """
        content = self._content(body)
        try:
            return form.model_validate_json(content)
        except ValidationError as error:
            raise ModelRefused(
                f"{self.address} did not answer in the form of {self._use.path}: "
                f"{mask_keys(error.errors()[0]['msg'])}.",
                f"Check {self._use.setting}_BASE_URL: `{self._use.path}` is called under it; it "
                "mostly ends in `/v1`.",
            ) from mask_error(error)

    def _content(self, body: Mapping[str, object]) -> bytes:
        failed = 0
        while True:
            answer = self._tried(body)
            if isinstance(answer, bytes):
                return answer
            failed += 1
            if not answer.retryable:
                raise answer.error from answer
            # Where the server asks for a wait of more than a minute, the user decides.
            if failed == _ATTEMPTS or (answer.wait or 0) > LONGEST_WAIT:
                raise ModelUnavailable(
                    f"The {self._use.kind} {self.name!r} did not answer: {answer.error.message}",
                    "Check that its server runs and its limits allow the load, then run again.",
                )
            self._sleep(backoff(failed, answer.wait, random.random()))  # noqa: S311 -- jitter

    def _tried(self, body: Mapping[str, object]) -> bytes | Failure:
        url, until = f"{self._where.url}{self._use.path}", time.monotonic() + self._seconds
        content = bytearray()
        try:
            with self._client.stream("POST", url, json=dict(body)) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > LONGEST_REPLY:
                        words = f"the reply is longer than {LONGEST_REPLY // 1_000_000} MB"
                        return unreachable(self.name, self.address, words)
                    if time.monotonic() > until:  # the client's limit is for each chunk
                        words = f"the reply was not whole within {self._seconds:g} s"
                        return unreachable(self.name, self.address, words)
        except httpx.TransportError as error:
            return unreachable(self.name, self.address, f"{type(error).__name__}: {error}")
        if response.is_success:
            return bytes(content)
        words, after = content.decode("utf-8", "replace"), response.headers.get("retry-after")
        where, setting = (self.name, self.address), self._use.setting
        return refused(where, response.status_code, words, after, setting)

    @cached_property
    def _client(self) -> httpx.Client:
        if self._where.lacks:
            raise BadKey(
                f"The {self._use.kind} {self._where.name!r} needs a key.",
                f"Set {self._use.setting}_API_KEY or {self._where.lacks}, or {self._use.instead}.",
            )
        headers = {"Authorization": f"Bearer {self._where.key}"} if self._where.key else {}
        return httpx.Client(headers=headers, timeout=self._seconds)
