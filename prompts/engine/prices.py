"""What does a call cost? US dollars a million tokens, as listed on the date below; a model not here has no price.

The figures are those of LiteLLM 1.106's price list as read on that day. An own server and a proxy have no list price:
theirs is unknown, never zero.
"""

from dataclasses import dataclass

LISTED = "2026-11-21"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens, in and out."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """US dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


_PRICES: dict[str, tuple[float, float]] = {
    "anthropic/claude-haiku-4-5": (1.0, 5.0),
    "anthropic/claude-haiku-5-5": (0.1, 0.5),
    "anthropic/claude-opus-4-5": (5.0, 25.0),
    "anthropic/claude-opus-5": (5.0, 25.0),
    "anthropic/claude-opus-5-5": (4.0, 20.0),
    "anthropic/claude-sonnet-4-5": (3.0, 15.0),
    "anthropic/claude-sonnet-4-6": (3.0, 15.0),
    "anthropic/claude-sonnet-5": (2.0, 10.0),
    "anthropic/claude-sonnet-5-5": (2.0, 10.0),
    "deepseek/deepseek-chat": (0.28, 0.42),
    "deepseek/deepseek-reasoner": (0.28, 0.42),
    "gemini/gemini-2.5-flash": (0.3, 2.5),
    "gemini/gemini-2.5-flash-lite": (0.1, 0.4),
    "gemini/gemini-3.1-flash-lite": (0.25, 1.5),
    "gemini/gemini-3.5-flash": (1.5, 9.0),
    "gemini/gemini-3.5-flash-lite": (0.3, 2.5),
    "gemini/gemini-3.8-flash": (0.75, 3.75),
    "groq/openai/gpt-oss-120b": (0.15, 0.6),
    "groq/openai/gpt-oss-20b": (0.075, 0.3),
    "mistral/mistral-embed": (0.1, 0.0),
    "mistral/mistral-large-latest": (0.5, 1.5),
    "mistral/mistral-medium-latest": (1.5, 7.5),
    "mistral/mistral-small-latest": (0.15, 0.6),
    "openai/gpt-4.1": (2.0, 8.0),
    "openai/gpt-4.1-mini": (0.4, 1.6),
    "openai/gpt-4.1-nano": (0.1, 0.4),
    "openai/gpt-4o": (2.5, 10.0),
    "openai/gpt-4o-mini": (0.15, 0.6),
    "openai/gpt-5": (1.25, 10.0),
    "openai/gpt-5-mini": (0.25, 2.0),
    "openai/gpt-5-nano": (0.05, 0.4),
    "openai/gpt-5.1": (1.25, 10.0),
    "openai/gpt-5.2": (1.75, 14.0),
    "openai/gpt-5.4-mini": (0.75, 4.5),
    "openai/gpt-5.4-nano": (0.2, 1.25),
    "openai/gpt-5.6-luna": (0.2, 1.2),
    "openai/gpt-5.6-terra": (2.0, 12.0),
    "openai/o3": (2.0, 8.0),
    "openai/o3-mini": (1.1, 4.4),
    "openai/o4-mini": (1.1, 4.4),
    "openai/text-embedding-3-large": (0.13, 0.0),
    "openai/text-embedding-3-small": (0.02, 0.0),
    "openai/text-embedding-ada-002": (0.1, 0.0),
    "xai/grok-4.3": (1.25, 2.5),
    "xai/grok-4.5": (2.0, 6.0),
}


def price_of(model: str) -> Price | None:
    """The price of `provider/model`, with or without the date of its release at the end; None where it is unknown."""
    name = model
    while name:
        if name in _PRICES:
            return Price(*_PRICES[name])
        stem, dash, last = name.rpartition("-")
        if not dash or not last.isdigit() or len(last) not in {2, 4, 8}:
            return None
        name = stem
    return None
