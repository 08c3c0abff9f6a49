"""How is a model called that does not speak OpenAI's language? By DSPy's own clients, and LiteLLM where it has none."""

import os
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from prompts.engine.calls import Call, Finish, Reply, rough_tokens, without_thinking
from prompts.engine.errors import (
    BadKey,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)
from prompts.engine.faults import Failure, refused
from prompts.engine.providers import ModelChoice, without_user
from prompts.engine.redact import keep_secret, redact, redacted, secrets_of_address, secrets_of_environment

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import Request, Response

_FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "withheld", "refusal": "withheld"}


def connect(choice: ModelChoice, timeout: float = 120.0, max_tokens: int = 4096) -> "dspy.LM":
    """A plain DSPy model without DSPy's cache and retries: for other providers, teachers and optimisers."""
    # Without this LiteLLM tries to download a price list on its first call.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy

    options: dict[str, object] = {"timeout": timeout}
    if choice.base_url:
        options["api_base"] = choice.base_url
    if choice.api_key:
        options["api_key"] = choice.api_key
    return dspy.LM(choice.name, cache=False, num_retries=0, max_tokens=max_tokens, **options)


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

    async def send(self, call: Call) -> Reply:
        """One request and its reply."""
        import dspy
        from dspy.utils.exceptions import LMError, LMUnsupportedFeatureError

        if self._lm is None:
            self._lm = connect(self._choice, self._timeout)
            self._takes_schema = bool(self._lm.supports_response_schema)
        asked = call.schema is not None and self._takes_schema
        try:
            with dspy.context(disable_history=True):
                return _reply(await self._lm.acall(self._request(call)), call)
        except LMError as error:
            unsupported = isinstance(error, LMUnsupportedFeatureError) or "response_format" in str(error)
            failure = self._failure(error)
            failure.adapted = asked and unsupported
            self._takes_schema = self._takes_schema and not failure.adapted
            raise failure from redact(error)

    async def stream(self, call: Call) -> AsyncGenerator[str | Reply]:
        """The whole answer as one piece, then the reply."""
        reply = await self.send(call)
        yield reply.text
        yield reply

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
        """What DSPy's error means for us; its class is surer than its words."""
        from dspy.utils import exceptions as kinds

        said = f"{self.model}: {' '.join(redacted(str(error)).split())[:300]}"
        rules: tuple[tuple[object, type[EngineError], str], ...] = (
            (
                (kinds.LMAuthError, kinds.LMNotConfiguredError),
                BadKey,
                "Set TRELLIS_LM_API_KEY or the provider's variable.",
            ),
            (kinds.LMBillingError, QuotaExhausted, "Add credit to the account, or use another model."),
            (kinds.LMUnsupportedModelError, UnknownModel, "Name a model that the provider offers."),
            (
                kinds.ContextWindowExceededError,
                ContextOverflow,
                "Use a model with a longer context, or smaller chunks (TRELLIS_CHUNK_TOKENS).",
            ),
            (
                (kinds.LMConfigurationError, kinds.LMUnsupportedFeatureError),
                ModelMisconfigured,
                "Check the model's name, address and key.",
            ),
        )
        for which, kind, remedy in rules:
            if isinstance(error, which):  # type: ignore[arg-type]
                return Failure(kind(said, remedy))
        passing = (kinds.LMRateLimitError, kinds.LMServerError, kinds.LMTransportError, kinds.LMTimeoutError)
        if isinstance(error, passing):
            wait = getattr(error, "retry_after", None)
            return Failure(ModelUnavailable(said, "Run again later."), retryable=True, wait=wait)
        status = getattr(error, "status", None)
        return refused(self.model, self.address, status if isinstance(status, int) else 400, said)


def _reply(response: "Response", call: Call) -> Reply:
    raw = redacted("".join(part.text for part in response.message.parts if getattr(part, "type", "") == "text"))
    usage = response.usage
    given = usage.input_tokens if usage.input_tokens is not None else call.tokens()
    answered = usage.output_tokens if usage.output_tokens is not None else rough_tokens(raw)
    written = max(answered, (usage.total_tokens or 0) - given)
    return Reply(without_thinking(raw), _FINISHES.get(str(response.finish_reason), "stop"), given, written)
