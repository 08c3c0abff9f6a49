"""Which server a model's name means (`provider/model` as DSPy and LiteLLM write it), and with which key it is called.

Servers that offer `/chat/completions` are called at their address by DSPy's client for that; the others are DSPy's own
providers, and LiteLLM's where DSPy has none. `providers.toml` lists both.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from prompts.engine.errors import ModelMisconfigured

OFFLINE = "offline"
# A model of this machine, a folder or a name in the Hub's cache: one that writes, and one that only labels passages.
LOCAL, ENCODER = "transformers/", "cross-encoder/"
GGUF = "gguf/"  # a language model of this machine, a file, by llama.cpp
Backend = Literal["torch", "onnx", "openvino"]  # what computes a model of sentence-transformers


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as DSPy names it (`provider/model`), with an own endpoint and key where it needs them."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is a language model of this machine."""
        return self.base_url is None and self.name.startswith((LOCAL, GGUF))

    @property
    def is_gguf(self) -> bool:
        """Whether it is a language model in one file."""
        return self.base_url is None and self.name.startswith(GGUF)

    @property
    def is_encoder(self) -> bool:
        """Whether it is a cross-encoder of this machine."""
        return self.base_url is None and self.name.startswith(ENCODER)


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's language: its address, the variables with its key, what holds it to a schema."""

    url: str | None = None
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


@cache
def _direct(table: str = "direct") -> dict[str, Provider]:
    rows = _data()[table]
    return {name: Provider(**{**row, "keys": tuple(row.get("keys", ()))}) for name, row in rows.items()}


@cache
def _through_dspy() -> tuple[str, ...]:
    return tuple(_data()["through_dspy"].split())


def _data() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("providers.toml").read_text(encoding="utf-8"))


def check(choice: ModelChoice) -> None:
    """ModelMisconfigured, with the choices, where the name or the address cannot be meant."""
    prefix, slash, model = choice.name.partition("/")
    direct = _direct()
    of_servers = (*direct, *_through_dspy())
    names = (*of_servers, LOCAL[:-1], ENCODER[:-1], GGUF[:-1])
    if choice.base_url is not None:
        _check_url(choice.base_url)
    elif choice.name.startswith((LOCAL, ENCODER, GGUF)) and model:
        return
    if choice.name == OFFLINE or (slash and model and prefix in of_servers):
        if prefix in direct and direct[prefix].url is None and choice.base_url is None:
            raise ModelMisconfigured(
                f"The model {choice.name!r} has no address.",
                "Set TRELLIS_LM_BASE_URL, such as http://localhost:8000/v1.",
            )
        return
    if choice.base_url is not None and choice.name.strip("/ "):
        return  # a server of one's own: whatever it calls its models
    if choice.name.endswith(".gguf"):
        raise ModelMisconfigured(
            f"No provider is known for the model {choice.name!r}.", f"Write {GGUF}{choice.name} for a file."
        )
    near = difflib.get_close_matches(prefix, [*names, OFFLINE], n=3) if prefix else []
    choices = ", ".join(near or sorted(names))
    raise ModelMisconfigured(
        f"No provider is known for the model {choice.name!r}.",
        f"Write provider/model (providers: {choices}), `{OFFLINE}`, or set TRELLIS_LM_BASE_URL for an own server.",
    )


def endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """Where a model is served; None where DSPy knows. A key of the environment goes to its provider only."""
    check(choice)
    if choice.name.partition("/")[0] in _through_dspy():
        return None
    located = _located(choice, environment, _direct(), _api)
    if located.lacks:
        raise ModelMisconfigured(
            f"The model {choice.name!r} needs a key.", f"Set TRELLIS_LM_API_KEY or {located.lacks}, or use `{OFFLINE}`."
        )
    return located


def is_provider(prefix: str) -> bool:
    """Whether model names that begin so mean a provider's models."""
    return prefix in _direct() or prefix in _through_dspy()


def embedding_endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """Where an embedding model is served; None for a name without an address. Keys as for `endpoint`."""
    return _served(choice, environment, _direct())


def rerank_endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """Where a reranker is served: its address is that before `/rerank`; else as `embedding_endpoint`."""
    return _served(choice, environment, _direct("rerank"), lambda url: url.rstrip("/").removesuffix("/rerank"))


def _served(
    choice: ModelChoice, environment: Mapping[str, str], providers: Mapping[str, Provider],
    api: Callable[[str], str] | None = None,
) -> Endpoint | None:  # fmt: skip
    prefix, _, model = choice.name.partition("/")
    if choice.base_url is not None:
        _check_url(choice.base_url)
    elif not model or providers.get(prefix, Provider()).url is None:
        return None
    return _located(choice, environment, providers, api or _api)


def _located(
    choice: ModelChoice, environment: Mapping[str, str], providers: Mapping[str, Provider], api: Callable[[str], str]
) -> Endpoint:
    prefix, _, rest = choice.name.partition("/")
    known = providers.get(prefix)
    own = known.url if known else None
    url = api(choice.base_url) if choice.base_url else own
    assert url is not None  # noqa: S101 - the callers have seen to it
    if known is None:
        return Endpoint(choice.name, choice.name, url, choice.api_key, "json_schema", listed=False)
    listed, key = url == own, choice.api_key
    if key is None and (listed or own is None):
        key = next((environment[name] for name in known.keys if environment.get(name)), None)
    lacks = known.keys[0] if listed and known.needs_key and key is None else None
    return Endpoint(choice.name, rest, url, key, known.structured, listed, lacks)


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
