"""Which pieces of a streamed answer are thinking, and not to be shown?"""

import re

_OPEN = re.compile(r"\s*<(think|thinking|thought|reasoning|reflection|seed:think)>")
_LONGEST_TAG = 16


class ThinkingFilter:
    """Passes an answer on piece by piece and leaves its leading thinking out.

    Thinking that has only a closing tag cannot be known before it ends; the whole reply, which is read, is free of it.
    """

    def __init__(self) -> None:
        self._held = ""
        self._closing: str | None = None
        self._open = True

    def add(self, piece: str) -> str:
        """What of the answer may be shown now."""
        if not self._open:
            return piece
        self._held += piece
        while True:
            if self._closing is not None:
                before, found, after = self._held.partition(self._closing)
                if not found:
                    self._held = before[-_LONGEST_TAG:]
                    return ""
                self._held, self._closing = after, None
            match = _OPEN.match(self._held)
            if match is None:
                break
            self._held, self._closing = self._held[match.end() :], f"</{match[1]}>"
        begun = self._held.lstrip()
        if not begun or (begun.startswith("<") and ">" not in begun and len(begun) < _LONGEST_TAG):
            return ""
        self._open, self._held = False, ""
        return begun
