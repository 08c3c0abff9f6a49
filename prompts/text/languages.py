"""Languages: what differs between them is asked of one object each."""

from functools import lru_cache

from prompts.text.names import NameSpan, name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.words import is_han


@lru_cache(maxsize=20_000)
def names_of(text: str) -> tuple[NameSpan, ...]:
    """The names in a text by their looks; kept, since telling Chinese words apart takes milliseconds."""
    return tuple(name_spans_zh(text) if is_han(text) else name_spans(text, [(0, len(text))]))
