"""Which jobs can be given to a model of their own?"""

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
