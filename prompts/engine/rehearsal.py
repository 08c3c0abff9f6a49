"""How is a run tried without a server? A stand-in answers in its place, and no answer is kept.

What the cache holds is answered from there, as the run would be.
"""

from collections.abc import AsyncGenerator, Callable

from prompts.engine.calls import Call, Reply, Transport
from prompts.engine.client import AnswerCache
from prompts.text.tokens import count_tokens

# What a chat format adds to each message, and to the whole.
_AROUND = 3

# The answer to a call, and about how many tokens a model would write.
Answerer = Callable[[Call], tuple[str, int]]


class StandIn:
    """Answers in place of the server at the same address, so that both have the same keys in the cache."""

    def __init__(self, transport: Transport, answerer: Answerer) -> None:
        self.address = transport.address
        self.model = transport.model
        self.structured = transport.structured
        self._answer = answerer

    async def send(self, call: Call) -> Reply:
        text, written = self._answer(call)
        read = _AROUND + sum(count + _AROUND for count in count_tokens([one.content for one in call.messages]))
        return Reply(text, "stop", read, written)

    async def stream(self, call: Call) -> AsyncGenerator[str | Reply]:
        yield await self.send(call)


class Aside:
    """A cache that is read, and written to in memory only."""

    def __init__(self, cache: AnswerCache | None) -> None:
        self._cache = cache
        self._own: dict[str, str | None] = {}

    def get(self, key: str) -> str | None:
        if key in self._own:
            return self._own[key]
        return self._cache.get(key) if self._cache is not None else None

    def put(self, key: str, answer: str) -> None:
        self._own[key] = answer

    def remove(self, key: str) -> None:
        self._own[key] = None
