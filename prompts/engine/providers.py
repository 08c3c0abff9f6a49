"""The server and the key that a model's name (`provider/model`) means.

Servers with `/chat/completions` are called at their address; others through DSPy, by its own
clients or LiteLLM's. `providers.toml` lists both.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from prompts.engine.errors import ModelMisconfigured

OFFLINE = "offline"
LOCAL = "transformers/"  # a language model of this machine: a folder or a name in the Hub's cache
ENCODER = "cross-encoder/"  # a model of this machine that only labels passages
GGUF = "gguf/"  # a language model of this machine in one file, by llama.cpp
Backend = Literal["torch", "onnx", "openvino"]  # of sentence-transformers


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as DSPy names it, and its address and key where they are not the provider's usual."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is a language model of this machine."""
        return self.base_url is None and self.name.startswith((LOCAL, GGUF))

    @property
    def is_gguf(self) -> bool:
        return self.base_url is None and self.name.startswith(GGUF)

    @property
    def is_encoder(self) -> bool:
        return self.base_url is None and self.name.startswith(ENCODER)


@dataclass(frozen=True)
class GgufSettings:
    """How llama.cpp runs a model of this machine.

    `context` is the tokens that one call may read and write together, `slots` the number of calls
    at once. `threads` None leaves their number to llama.cpp.
    """

    context: int = 12_288
    slots: int = 1
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with OpenAI's interface: its address, and the variables that may hold its key."""

    url: str | None = None
    keys: Sequence[str] = ()
    needs_key: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server of a model.

    `listed`: it is a provider's own address, where list prices hold. `lacks` is the variable for
    a key that the provider needs and nobody has set.
    """

    name: str
    model: str
    url: str
    key: str | None = field(repr=False)
    listed: bool
    lacks: str | None = None


@cache
def _providers(table: str = "direct") -> dict[str, Provider]:
    """The providers in a table of `providers.toml`; those called through DSPy have no address."""
    data: dict[str, Any] = tomllib.loads(
        Path(__file__).with_name("providers.toml").read_text(encoding="utf-8")
    )
    if table == "through_dspy":
        return {name: Provider() for name in data[table].split()}
    return {name: Provider(**row) for name, row in data[table].items()}


def is_provider(prefix: str) -> bool:
    """Whether this prefix of a model's name is a provider's."""
    return prefix in _providers() or prefix in _providers("through_dspy")


def is_local_model(name: str) -> bool:
    """Whether a name can mean a model of sentence-transformers: a folder, or `ORG/NAME`."""
    prefix, _, rest = name.partition("/")
    return bool(rest and not is_provider(prefix)) or Path(name).expanduser().is_dir()


def check(choice: ModelChoice) -> None:
    """Raise ModelMisconfigured, with the choices, for a name or an address that cannot work."""
    prefix, _, model = choice.name.partition("/")
    if choice.base_url is not None:
        _check_url(choice.base_url)
        if choice.name.strip("/ "):
            return  # a server of one's own, whatever it calls its models
    if choice.name == OFFLINE or (model and choice.name.startswith((LOCAL, ENCODER, GGUF))):
        return
    if model and is_provider(prefix):
        if prefix in _providers() and _providers()[prefix].url is None:
            raise ModelMisconfigured(
                f"The model {choice.name!r} has no address.",
                "Set TRELLIS_LM_BASE_URL, such as http://localhost:8000/v1.",
            )
        return
    unknown = f"No provider is known for the model {choice.name!r}."
    if choice.name.endswith(".gguf"):
        raise ModelMisconfigured(unknown, f"Write {GGUF}{choice.name} for a file.")
    own = (LOCAL[:-1], ENCODER[:-1], GGUF[:-1])
    names = sorted((*_providers(), *_providers("through_dspy"), *own))
    near = difflib.get_close_matches(prefix, [*names, OFFLINE], n=3)
    raise ModelMisconfigured(
        unknown,
        f"Write provider/model (providers: {', '.join(near or names)}), `{OFFLINE}`, or set "
        "TRELLIS_LM_BASE_URL for an own server.",
    )


def endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """The server of a model; None where it is called through DSPy.

    A key of the environment goes to its own provider only. Raises ModelMisconfigured where a key
    is missing.
    """
    check(choice)
    if choice.name.partition("/")[0] in _providers("through_dspy"):
        return None
    located = _located(choice, environment, _providers())
    if located is not None and located.lacks:
        raise ModelMisconfigured(
            f"The model {choice.name!r} needs a key.",
            f"Set TRELLIS_LM_API_KEY or {located.lacks}, or use `{OFFLINE}`.",
        )
    return located


def embedding_endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """The server of an embedding model; None for a name without an address."""
    return _located(choice, environment, _providers())


def rerank_endpoint(choice: ModelChoice, environment: Mapping[str, str]) -> Endpoint | None:
    """The server of a reranker (the address before `/rerank`); None without an address."""
    return _located(choice, environment, _providers("rerank"), version="")


def _located(
    choice: ModelChoice,
    environment: Mapping[str, str],
    providers: Mapping[str, Provider],
    version: str = "/v1",
) -> Endpoint | None:
    """The server of a model; `version` completes the address of a bare host."""
    prefix, _, rest = choice.name.partition("/")
    known = providers.get(prefix) if rest else None
    own, url = known.url if known else None, known.url if known else None
    if choice.base_url is not None:
        _check_url(choice.base_url)
        url = _base_of(choice.base_url, version)
    if url is None:
        return None
    if known is None:
        return Endpoint(choice.name, choice.name, url, choice.api_key, listed=False)
    # A program of the user's machine, such as Ollama, needs no key and is no provider.
    listed, key = url == own and known.needs_key, choice.api_key
    if key is None and (listed or own is None):
        key = next((environment[name] for name in known.keys if environment.get(name)), None)
    lacks = known.keys[0] if listed and known.needs_key and key is None else None
    return Endpoint(choice.name, rest, url, key, listed, lacks)


def without_user(url: str) -> str:
    """The address without the password or token before its host, as it may be shown."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", url)


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ModelMisconfigured(
            f"{without_user(url)!r} is not the address of a model server.",
            "Give one such as http://localhost:11434/v1.",
        )


def _base_of(url: str, version: str) -> str:
    """The address before `/chat/completions` and the like."""
    base = url.rstrip("/")
    for path in ("/chat/completions", "/embeddings", "/rerank"):
        base = base.removesuffix(path)
    return base if urlsplit(base).path.strip("/") else f"{base}{version}"
