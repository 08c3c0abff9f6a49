"""Counts the requests to the scripted server: calls, tokens, repeats, the most at once."""

import hashlib
import time
from collections import Counter, deque
from collections.abc import Mapping
from functools import lru_cache

from prompts.text.tokens import count_tokens

_MESSAGE_OVERHEAD = 3  # tokens that a chat format adds to each message and to the whole


@lru_cache(maxsize=1024)
def _counted(text: str) -> int:
    return count_tokens([text])[0]


def tokens_of(texts: list[str]) -> int:
    """Tokens of a chat's messages, the format's own included."""
    return sum(_counted(text) + _MESSAGE_OVERHEAD for text in texts) + _MESSAGE_OVERHEAD


class Ledger:
    """Counters since the start or the last reset; bodies of the last ten thousand requests."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        self.most_in_flight = self.in_flight
        self.steps: dict[str, Counter[str]] = {}
        self.kinds: Counter[str] = Counter()
        self.others: list[str] = []
        self.bodies: deque[dict[str, object]] = deque(maxlen=10_000)
        self._seen: set[bytes] = set()
        self.repeated = 0
        self.dropped = 0

    def arrive(
        self, path: str, step: str, text: str, body: Mapping[str, object], key: str | None
    ) -> dict[str, object]:
        """Enter a request, `text` as sent and `body` as read; `depart` takes the row.

        `at` is the machine's monotonic clock, `tokens` those in and out of the answer.
        """
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._of(step)["calls"] += 1
        row: dict[str, object] = {
            "path": path,
            "step": step,
            "body": body,
            "authorization": key,
            "at": time.monotonic(),
            "tokens": 0,
        }
        self.bodies.append(row)
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self.repeated += digest in self._seen
        self._seen.add(digest)
        return row

    def depart(
        self, row: dict[str, object], kind: str, prompt: int = 0, completion: int = 0
    ) -> None:
        """Enter its answer: `kind` is "answered", "refused" or a kind of misbehaviour."""
        self.in_flight -= 1
        self.kinds[kind] += 1
        row["tokens"] = prompt + completion
        tokens = {"prompt_tokens": prompt, "completion_tokens": completion}
        self._of(str(row["step"])).update(tokens)

    def stats(self) -> Mapping[str, object]:
        totals: Counter[str] = Counter()
        for counted in self.steps.values():
            totals.update(counted)
        return {
            "calls": totals["calls"],
            "prompt_tokens": totals["prompt_tokens"],
            "completion_tokens": totals["completion_tokens"],
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "repeated": self.repeated,
            "dropped_by_client": self.dropped,
            "steps": self.steps,
            "kinds": self.kinds,
            "others": self.others,
        }

    def _of(self, step: str) -> Counter[str]:
        return self.steps.setdefault(step, Counter(calls=0, prompt_tokens=0, completion_tokens=0))
