"""Token counts of texts, made offline and the same on every machine."""

import importlib.util
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken


class TokenizerUnavailable(RuntimeError):
    """The token encoding is neither among the installed packages nor in the cache folder."""


_ENCODING = "o200k_base"
_ENCODING_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # how tiktoken names that encoding in its cache folder
_CACHE_SETTING = "TIKTOKEN_CACHE_DIR"


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens (`o200k_base`) of each text, with no network; special-token names count as ordinary text.

    Raises `TokenizerUnavailable` where the encoding is not installed.
    """
    # Not tiktoken's batches: they start a job on a thread for each text, which halves the speed for short ones.
    encode = encoding().encode_ordinary
    return [len(encode(text)) for text in texts]


@lru_cache(maxsize=1)
def encoding() -> "tiktoken.Encoding":
    """The tokenizer, from the files of an installed package; loaded once."""
    import tiktoken

    if os.environ.get(_CACHE_SETTING):
        return tiktoken.get_encoding(_ENCODING)
    # litellm ships the encoding; importing litellm for it would cost two seconds, its folder is enough.
    spec = importlib.util.find_spec("litellm")
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        folder = Path(place) / "litellm_core_utils" / "tokenizers"
        if (folder / _ENCODING_FILE).is_file():
            os.environ[_CACHE_SETTING] = str(folder)
            try:
                return tiktoken.get_encoding(_ENCODING)
            finally:
                del os.environ[_CACHE_SETTING]
    raise TokenizerUnavailable(
        f"The token encoding {_ENCODING} was not found in the installed litellm package. "
        f"Reinstall the project's dependencies, or set {_CACHE_SETTING} to a folder that holds {_ENCODING_FILE}."
    )
