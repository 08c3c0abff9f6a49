"""A language model in one file as a role's model: `gguf/PATH`, run by llama.cpp.

llama.cpp's own server runs inside this process, with OpenAI's interface on a local port and a key
that no other user knows.
"""

import asyncio
import secrets
import threading
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prompts.engine.chat_server import ChatServer
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.key_masking import keep_secret
from prompts.engine.providers import GGUF, Endpoint, GgufSettings
from prompts.engine.refusals import Habits

_KEPT_PROMPTS = 1024  # MiB; llama.cpp would keep read prompts in up to 8 GiB of memory
_LOADING = threading.Lock()  # one call loads a model, the others wait for it
_ERRORS = 1  # llama.cpp's verbosity: errors alone


def file_of(name: str) -> Path:
    """The file of the model `gguf/PATH`; ModelMisconfigured where it is no GGUF file."""
    path = Path(name.removeprefix(GGUF)).expanduser()
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except OSError as error:
        raise ModelMisconfigured(
            f"The model file {str(path)!r} cannot be read: {error.strerror}.",
            f"Write {GGUF}PATH, the path of a .gguf file.",
        ) from error
    if begins != b"GGUF":
        raise ModelMisconfigured(
            f"{str(path)!r} is not a GGUF file: it begins with {begins!r}.",
            "Name a model in llama.cpp's form (.gguf). A folder of safetensors is "
            "transformers/PATH.",
        )
    return path.resolve()


def address_of_file(name: str) -> str:
    """The model's name with the time of its file, since an earlier file gave other answers."""
    return f"{name}@{file_of(name).stat().st_mtime_ns}"


class FileServer(ChatServer):
    """A model in one file, loaded at its first call."""

    def __init__(self, name: str, settings: GgufSettings, habits: Habits) -> None:
        self.address = address_of_file(name)
        endpoint = Endpoint(name, Path(name).stem, self.address, key=None, listed=False)
        super().__init__(endpoint, habits)
        self._file = self.address, file_of(name), settings

    async def located(self) -> Endpoint:
        """llama.cpp's endpoint. Raises ModelMisconfigured where it cannot load the model."""
        url, key = await asyncio.to_thread(self._load)
        return replace(self.endpoint, url=url, key=key)

    def _load(self) -> tuple[str, str]:
        with _LOADING:
            return served(*self._file)[:2]


@cache
def served(_address: str, path: Path, settings: GgufSettings) -> tuple[str, str, Any]:
    """The address and key of a file's server, and the server, which lives with the process."""
    if find_spec("xllamacpp") is None:
        raise ModelMisconfigured(
            f"{GGUF}{path} needs llama.cpp, which is not installed.",
            "Install it: pip install 'trellis-rag[local]'.",
        )
    import xllamacpp  # of the extra `local`

    key = secrets.token_urlsafe(24)
    keep_secret((key,))
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem}
    params.n_ctx = settings.context * settings.slots
    params.n_parallel = settings.slots
    if settings.threads is not None:
        params.cpuparams.n_threads = settings.threads
        params.cpuparams_batch.n_threads = settings.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system chooses
    params.api_keys = [key]
    params.ui = False
    params.cache_ram_mib = _KEPT_PROMPTS
    params.verbosity = _ERRORS
    try:
        server = xllamacpp.Server(params)
    except Exception as error:
        raise ModelMisconfigured(
            f"llama.cpp {version('xllamacpp')} cannot load {path}: {error}",
            "Where the file may be cut, compare its SHA-256 with its publisher's; where memory is "
            "short, lower TRELLIS_GGUF_CONTEXT or TRELLIS_GGUF_SLOTS; where the model is newer, "
            "run pip install -U xllamacpp.",
        ) from error
    return f"{server.listening_address}/v1", key, server
