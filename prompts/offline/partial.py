"""Points by rules: the statements themselves, each as helpful as it says about what is asked."""

from collections.abc import Iterable
from dataclasses import dataclass

from prompts.text.evidence import Evidence
from prompts.text.gist import Gist

MOST = 100


@dataclass(frozen=True)
class RulePoint:
    """A statement on one line, how much it helps (0-100), and its number."""

    text: str
    score: int
    number: int


def partial_offline(statements: Iterable[Evidence], gist: Gist) -> list[RulePoint]:
    """The statements in their order; what each helps is `Gist.worth`."""
    return [
        RulePoint(" ".join(piece.text.split()), round(MOST * gist.worth(piece)), piece.number) for piece in statements
    ]
