"""The process that computes a model for `prompts/engine/gguf.py`, by llama.cpp's own server.

It reads its order as the first line of standard input, writes the address at which it serves
as a line, and ends when standard input closes: that is, when the process that started it ends.
"""

import os
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from prompts.engine.models import GgufSettings

_ERRORS = 1  # llama.cpp's verbosity: errors alone
# llama.cpp keeps read prompts in up to 8 GiB of memory, which many machines do not have to spare.
_KEPT_PROMPTS = 1024  # MiB


class Order(BaseModel):
    """The model to compute, how, and the key to ask for."""

    model_config = ConfigDict(frozen=True)

    path: str
    settings: GgufSettings
    key: str


def main() -> None:
    """Serve one model until standard input closes."""
    import xllamacpp  # of the extra `local`

    order = Order.model_validate_json(sys.stdin.readline())
    settings = order.settings
    params = xllamacpp.CommonParams()
    params.model.path = order.path
    params.model_alias = {Path(order.path).stem}
    params.n_ctx = settings.context * settings.slots
    params.n_parallel = settings.slots
    if settings.threads is not None:
        params.cpuparams.n_threads = settings.threads
        params.cpuparams_batch.n_threads = settings.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system chooses
    params.api_keys = [order.key]
    params.ui = False
    params.cache_ram_mib = _KEPT_PROMPTS
    params.verbosity = _ERRORS
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - it is what the caller reads
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
