"""Drafts: what of an answer is shown while a model still writes it, and how it is taken back."""

from collections.abc import Callable

from pydantic_core import from_json

from prompts.engine.calls import Call, Finish, Reply, rough_tokens, visible_so_far, without_thinking
from prompts.engine.key_masking import held_back, mask_keys

_FINISHES: dict[object, Finish] = {
    "length": "length", "max_tokens": "length", "content_filter": "withheld", "safety": "withheld"
}  # fmt: skip


class Withdrawn:
    """What was shown so far does not hold: another answer follows, or an error."""


Show = Callable[[str | Withdrawn], None]


class Draft:
    """What one caller sees of an answer; without `show` nobody watches."""

    def __init__(self, show: Show | None = None) -> None:
        self._show = show
        self._shown = False

    @property
    def watched(self) -> bool:
        return self._show is not None

    def add(self, piece: str) -> None:
        """Show a further piece."""
        if self._show is not None:
            self._shown = True
            self._show(piece)

    def withdraw(self) -> bool:
        """Take back what was shown; False where nothing was."""
        if not self._shown or self._show is None:
            return False
        self._shown = False
        self._show(Withdrawn())
        return True


class TextField:
    """Takes pieces of JSON, gives pieces of the first string under the key `name`; without a name, all as it is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._json = ""
        self._shown = 0

    def add(self, piece: str) -> str:
        """What this piece adds to the text."""
        if not self._name:
            return piece
        self._json += piece
        begin = self._json.find("{")
        if begin < 0:
            return ""
        try:
            text = _first_text(from_json(self._json[begin:], allow_partial="trailing-strings"), self._name)
        except ValueError:  # broken JSON, which will be refused, or prose after it
            return ""
        added = text[self._shown :]
        self._shown += len(added)
        return added


def _first_text(value: object, name: str) -> str:
    if isinstance(value, dict):
        if isinstance(text := value.get(name), str):
            return text
        value = list(value.values())
    return next((text for item in value if (text := _first_text(item, name))), "") if isinstance(value, list) else ""


class StreamedReply:
    """The events of a streamed answer so far; thinking and keys are not shown."""

    def __init__(self, call: Call) -> None:
        self.finish: Finish | None = None
        self._call = call
        self._text = ""
        self._thought = 0
        self._refused = False
        self._usage: object = None
        self._shown = 0

    def add(self, event: dict[str, object]) -> str:
        """What of this event is to be shown."""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        delta = choices[0].get("delta") or {}
        self._refused = self._refused or bool(delta.get("refusal"))
        self._thought += len(str(delta.get("reasoning_content") or delta.get("reasoning") or ""))
        if reason := choices[0].get("finish_reason"):
            self.finish = _FINISHES.get(reason, "stop")
        self._text += str(delta.get("content") or "")
        text = mask_keys(visible_so_far(self._text))
        return self._show(text[: len(text) - held_back(text)])

    def rest(self) -> str:
        """What is to be shown when no event follows."""
        return self._show(mask_keys(visible_so_far(self._text)))

    def reply(self) -> Reply:
        """The whole; without a count of tokens, which holds those of the thinking, with a guess."""
        text = mask_keys(self._text)
        input_tokens, written = self._call.tokens(), rough_tokens(text + " " * self._thought)
        if isinstance(self._usage, dict) and isinstance(self._usage.get("prompt_tokens"), int):
            input_tokens = self._usage["prompt_tokens"]
            # Where thinking is counted apart it still is in the total.
            written = max(
                self._usage.get("completion_tokens") or 0, (self._usage.get("total_tokens") or 0) - input_tokens
            )
        if not text and self._refused:
            self.finish = "withheld"
        return Reply(without_thinking(text), self.finish or "length", input_tokens, written)

    def _show(self, text: str) -> str:
        added = text[self._shown :]
        self._shown += len(added)
        return added
