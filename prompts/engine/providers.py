"""Which server does a model's name mean, and does it speak OpenAI's language?

`provider/model` as DSPy and LiteLLM write it. Servers that offer `/chat/completions` are called directly; the others go
through DSPy, and LiteLLM where DSPy has no client of its own.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from prompts.engine.errors import ModelMisconfigured

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as DSPy names it (`provider/model`), with an own endpoint and key where it needs them."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's language: its address, the variables with its key, what holds it to a schema."""

    url: str | None
    keys: tuple[str, ...] = ()
    structured: str = "json_schema"
    needs_key: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served. `listed`: at its provider's own address, where list prices hold.

    `lacks`: the variable for the key that the provider asks for and nobody has set.
    """

    name: str
    model: str
    url: str
    key: str | None = field(repr=False)
    structured: str
    listed: bool
    lacks: str | None = None


_DIRECT = {
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "ollama": Provider("http://localhost:11434/v1", needs_key=False),
    "ollama_chat": Provider("http://localhost:11434/v1", needs_key=False),
    "hosted_vllm": Provider(None, ("HOSTED_VLLM_API_KEY",), needs_key=False),
    "lm_studio": Provider("http://localhost:1234/v1", needs_key=False),
    "llamafile": Provider("http://localhost:8080/v1", needs_key=False),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), structured="json_object"),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "together_ai": Provider("https://api.together.xyz/v1", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",)),
}
_THROUGH_DSPY = (
    "ai21 anthropic anyscale azure azure_ai baseten bedrock cerebras cloudflare codestral cohere cohere_chat dashscope"
    " databricks deepinfra featherless_ai fireworks_ai friendliai gemini github github_copilot gigachat huggingface"
    " hyperbolic lambda_ai litellm_proxy meta_llama minimax moonshot nebius novita nscale nvidia_nim oci openai_like"
    " ovhcloud perplexity replicate sagemaker sagemaker_chat sambanova snowflake vertex_ai vertex_ai_beta volcengine"
    " watsonx zai"
).split()
_KNOWN = (*_DIRECT, *_THROUGH_DSPY)


def check(choice: ModelChoice) -> None:
    """ModelMisconfigured, with the choices, where the name or the address cannot be meant."""
    prefix, slash, model = choice.name.partition("/")
    if choice.base_url is not None:
        _check_url(choice.base_url)
    if choice.name == OFFLINE or (slash and model and prefix in _KNOWN):
        if prefix in _DIRECT and _DIRECT[prefix].url is None and choice.base_url is None:
            raise ModelMisconfigured(
                f"The model {choice.name!r} has no address.",
                "Set TRELLIS_LM_BASE_URL, such as http://localhost:8000/v1.",
            )
        return
    if choice.base_url is not None and choice.name.strip("/ "):
        return  # a server of one's own: whatever it calls its models
    near = difflib.get_close_matches(prefix, [*_KNOWN, OFFLINE], n=3) if prefix else []
    choices = ", ".join(near) if near else ", ".join(sorted(_KNOWN))
    raise ModelMisconfigured(
        f"No provider is known for the model {choice.name!r}.",
        f"Write provider/model (providers: {choices}), `{OFFLINE}`, or set TRELLIS_LM_BASE_URL for an own server.",
    )


def endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """Where to call a model directly; None where DSPy has to. A key of the environment goes to its provider only."""
    check(choice)
    if choice.name.partition("/")[0] in _THROUGH_DSPY:
        return None
    found = _located(choice, environment)
    if found.lacks:
        raise ModelMisconfigured(
            f"The model {choice.name!r} needs a key.", f"Set TRELLIS_LM_API_KEY or {found.lacks}, or use `{OFFLINE}`."
        )
    return found


def embedding_endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """Where an embedding model is served; None for a name without an address. Keys as for `endpoint`."""
    prefix, _, model = choice.name.partition("/")
    if choice.base_url is not None:
        _check_url(choice.base_url)
    elif not model or prefix not in _DIRECT or _DIRECT[prefix].url is None:
        return None
    return _located(choice, environment)


def _located(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint:
    prefix, _, rest = choice.name.partition("/")
    known = _DIRECT.get(prefix)
    own = known.url if known else None
    url = _api(choice.base_url) if choice.base_url else own
    assert url is not None  # noqa: S101 - the callers have seen to it
    listed = known is not None and url == own
    key = choice.api_key
    if key is None and known is not None and (listed or known.url is None):
        key = next((environment[name] for name in known.keys if environment.get(name)), None)
    lacks = known.keys[0] if known is not None and listed and known.needs_key and key is None else None
    structured = known.structured if known else "json_schema"
    return Endpoint(choice.name, rest if known else choice.name, url, key, structured, listed, lacks)


def without_user(url: str) -> str:
    """The address as it may be shown and stored: what stands before the host is a password, or a token."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", url)


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ModelMisconfigured(
            f"{without_user(url)!r} is not the address of a model server.",
            "Give one such as http://localhost:11434/v1.",
        )


def _api(url: str) -> str:
    """The path before `/chat/completions` or `/embeddings`; a bare host is meant to be under `/v1`."""
    base = url.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings")
    return base if urlsplit(base).path.strip("/") else f"{base}/v1"
