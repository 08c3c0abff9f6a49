"""Calls to a model that does not speak OpenAI's language: by DSPy's own clients, and LiteLLM where it has none."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompts.engine.calls import Call, Finish, Reply, rough_tokens, without_thinking
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.failures import Failure, refused, unreachable
from prompts.engine.key_masking import keep_secret, mask_error, mask_keys, secrets_of_address, secrets_of_environment
from prompts.engine.providers import ModelChoice, without_user

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import Request, Response

_FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "withheld", "refusal": "withheld"}
# What an error of DSPy's without an HTTP status would have had as one.
_STATUS = {"LMAuthError": 401, "LMBillingError": 402, "LMRateLimitError": 429, "LMServerError": 500}


def _connect(choice: ModelChoice, timeout: float) -> "dspy.LM":
    """A DSPy model without DSPy's cache and retries."""
    # Without this LiteLLM tries to download a price list on its first call.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy

    own = {"api_base": choice.base_url, "api_key": choice.api_key}
    options = {name: value for name, value in own.items() if value}
    return dspy.LM(choice.name, cache=False, num_retries=0, timeout=timeout, **options)


class DspyTransport:
    """Such a model."""

    def __init__(self, choice: ModelChoice, timeout: float = 120.0) -> None:
        keep_secret((choice.api_key, *secrets_of_address(choice.base_url), *secrets_of_environment(os.environ)))
        self.address = without_user(choice.base_url) if choice.base_url else choice.name.partition("/")[0]
        self.model = choice.name
        self._choice = choice
        self._timeout = timeout
        self._lm: dspy.LM | None = None
        self._takes_schema = True

    @property
    def structured(self) -> str:
        return "json_schema" if self._takes_schema else "text"

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """One request and its reply, which is shown as one piece."""
        import dspy
        from dspy.utils.exceptions import LMError, LMUnsupportedFeatureError

        if self._lm is None:
            self._lm = _connect(self._choice, self._timeout)
            self._takes_schema = bool(self._lm.supports_response_schema)
        asked = call.schema is not None and self._takes_schema
        try:
            with dspy.context(disable_history=True):
                reply = _reply(await self._lm.acall(self._request(call)), call)
        except LMError as error:
            unsupported = isinstance(error, LMUnsupportedFeatureError) or "response_format" in str(error)
            failure = self._failure(error)
            failure.adapted = asked and unsupported
            self._takes_schema = self._takes_schema and not failure.adapted
            raise failure from mask_error(error)
        if show is not None:
            show(reply.text)
        return reply

    def _request(self, call: Call) -> "Request":
        from dspy.lm15 import Config, Message, Request

        system = "\n\n".join(message.content for message in call.messages if message.role == "system")
        turns = tuple(
            Message.user(message.content) if message.role == "user" else Message.assistant(message.content)
            for message in call.messages
            if message.role != "system"
        )
        schema = None
        if call.schema is not None and self._takes_schema:
            schema = {"type": "json_schema", "name": call.step, "strict": True, "schema": call.schema}
        config = Config(
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            response_format=schema,
            extensions=dict(call.extra) or None,
        )
        return Request(model=self.model, messages=turns, system=system, config=config)

    def _failure(self, error: Exception) -> Failure:
        """What DSPy's error means for us."""
        words = " ".join(mask_keys(str(error)).split())[:300]
        kinds = [kind.__name__ for kind in type(error).__mro__]
        if "LMConfigurationError" in kinds or "LMUnsupportedFeatureError" in kinds:
            return Failure(ModelMisconfigured(f"{self.model}: {words}", "Check the model's name, address and key."))
        if "LMTransportError" in kinds or "LMTimeoutError" in kinds:
            return unreachable(self.model, self.address, words)
        status, after = getattr(error, "status", None), getattr(error, "retry_after", None)
        status = status or next((_STATUS[kind] for kind in kinds if kind in _STATUS), 400)
        return refused(self.model, self.address, status, words, None if after is None else str(after))


def _reply(response: "Response", call: Call) -> Reply:
    raw = mask_keys("".join(part.text for part in response.message.parts if getattr(part, "type", "") == "text"))
    usage = response.usage
    input_tokens = usage.input_tokens if usage.input_tokens is not None else call.tokens()
    answered = usage.output_tokens if usage.output_tokens is not None else rough_tokens(raw)
    written = max(answered, (usage.total_tokens or 0) - input_tokens)
    return Reply(without_thinking(raw), _FINISHES.get(str(response.finish_reason), "stop"), input_tokens, written)
