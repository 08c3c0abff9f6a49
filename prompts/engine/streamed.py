"""What do the events of a streamed answer, its reason to end and its count of tokens say?"""

from prompts.engine.calls import Call, Finish, Reply, rough_tokens, without_thinking
from prompts.engine.redact import DraftMask, redacted
from prompts.engine.thinking import ThinkingFilter


class Gathered:
    """A streamed answer so far."""

    def __init__(self, call: Call) -> None:
        self.finish: Finish | None = None
        self._call = call
        self._parts: list[str] = []
        self._thought = 0
        self._refused = False
        self._usage: object = None
        self._visible = ThinkingFilter()
        self._masked = DraftMask()

    def add(self, event: dict[str, object]) -> str:
        """What of this event is to be shown."""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        delta = choices[0].get("delta") or {}
        self._refused = self._refused or bool(delta.get("refusal"))
        self._thought += len(str(delta.get("reasoning_content") or delta.get("reasoning") or ""))
        if choices[0].get("finish_reason"):
            self.finish = finish_of(choices[0]["finish_reason"])
        text = str(delta.get("content") or "")
        self._parts.append(text)
        return self._masked.add(self._visible.add(text))

    def rest(self) -> str:
        """What is to be shown when no event follows."""
        return self._masked.rest()

    def reply(self) -> Reply:
        raw = redacted("".join(self._parts))
        given, written = usage_of(self._usage, self._call, raw + " " * self._thought)
        if not raw and self._refused:
            self.finish = "withheld"
        return Reply(without_thinking(raw), self.finish or "length", given, written)


def finish_of(reason: object) -> Finish:
    """Why an answer ended."""
    if reason in {"length", "max_tokens"}:
        return "length"
    return "withheld" if reason in {"content_filter", "safety"} else "stop"


def usage_of(usage: object, call: Call, written: str) -> tuple[int, int]:
    """(input, output) tokens. Where thinking is counted apart it still is in the total; without a count: a guess."""
    if not isinstance(usage, dict) or not isinstance(usage.get("prompt_tokens"), int):
        return call.tokens(), rough_tokens(written)
    given = usage["prompt_tokens"]
    answered = usage.get("completion_tokens") or 0
    return given, max(answered, (usage.get("total_tokens") or 0) - given)
