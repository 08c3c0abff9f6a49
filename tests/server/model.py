"""What does the scripted model say to a request: by rule, or as recorded?"""

from collections.abc import Mapping

from tests.server import wire
from tests.server.answers import NoRuleError, answer_step
from tests.server.replay import Recording


class Model:
    """Answers by rule; with a recording, passages are answered as recorded, `raw` or in the form asked for (`wire`)."""

    def __init__(self, recording: Recording | None = None, *, raw: bool = True) -> None:
        self._recording = recording
        self._raw = raw

    def answer(self, body: Mapping[str, object]) -> str:
        """The message's content. NoRuleError or NotRecordedError where there is nothing to say."""
        asked = wire.read(body)
        passage = asked.fields.get("passage")
        if self._recording is None or not isinstance(passage, str):
            return wire.write(asked, answer_step(asked.step, asked.fields))
        recorded = self._recording.of(passage)
        if asked.step == "glean":
            return recorded.glean_response
        if self._raw:
            return recorded.response
        if recorded.found is None:
            raise NoRuleError(f"{self._recording.path.name} holds raw answers alone: replay them raw")
        return wire.write(asked, recorded.found)
