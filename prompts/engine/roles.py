"""Which jobs can be given to a model of their own, and which of them wait for the others?"""

from typing import Literal, get_args

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
]
ROLES: tuple[Role, ...] = get_args(Role)
# Nobody waits for these with a question on the screen.
BACKGROUND: frozenset[Role] = frozenset({"extract", "resolve", "summarize", "report", "judge", "tune", "synthesize"})


def priority(role: Role) -> int:
    """0 for a question's own calls, 1 for indexing, tuning and judging; the lower goes first."""
    return int(role in BACKGROUND)
