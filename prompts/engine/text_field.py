"""What of one text field can be shown while the JSON that holds it is still being written?"""

import json
import re

# Whole characters and escapes; a pair of surrogates is one character.
_WHOLE = re.compile(
    r'(?:[^"\\]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*'
)


class TextField:
    """Takes pieces of JSON, gives pieces of the first string under the key `name`; without a name, all as it is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._opening = re.compile(rf'"{re.escape(name)}"\s*:\s*"')
        self._held = ""
        self._inside = False
        self._done = False

    def add(self, piece: str) -> str:
        """What this piece adds to the text."""
        if not self._name:
            return piece
        if self._done:
            return ""
        self._held += piece
        if not self._inside:
            opening = self._opening.search(self._held)
            if opening is None:
                return ""
            self._held, self._inside = self._held[opening.end() :], True
        return self._taken()

    def _taken(self) -> str:
        whole = _WHOLE.match(self._held)
        ready = whole.group() if whole else ""
        self._held = self._held[len(ready) :]
        self._done = self._held.startswith('"')
        return _decoded(ready)


def _decoded(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return ""  # broken JSON: the whole answer will be refused
