"""The roles that a model may have, and how calls are made. Nothing here imports DSPy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from prompts.engine.providers import GgufSettings

Role = Literal[
    "extract",
    "resolve",
    "summarize",
    "report",
    "rewrite",
    "classify",
    "filter",
    "route",
    "structurize",
    "decompose",
    "answer",
    "judge",
    "tune",
    "synthesize",
    "describe",
]
ROLES: tuple[Role, ...] = get_args(Role)
# Nobody waits for these with a question on the screen.
BACKGROUND: frozenset[Role] = frozenset(
    {"extract", "resolve", "summarize", "report", "judge", "tune", "synthesize", "describe"}
)
# Most models see no pictures: this role has only the model that is set for it.
SEES: Role = "describe"


def priority(role: Role) -> int:
    """0 for a question's own calls, 1 for work in the background; the lower goes first."""
    return int(role in BACKGROUND)


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made.

    `concurrency` is a limit for each server, `timeout` (seconds; None: see `Patience`) for each
    try, `max_tokens` for each answer. `sampling` holds what the user has set for each role: a
    temperature (0 without one, `retry_temperature` at a second try), and other parameters under
    the server's names.
    """

    concurrency: int = 16
    max_attempts: int = 6
    timeout: float | None = None
    max_tokens: int = 4096
    gguf: GgufSettings = field(default_factory=GgufSettings)
    sampling: Mapping[Role, Mapping[str, object]] = field(default_factory=dict)
    retry_temperature: float = 0.5
