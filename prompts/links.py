"""Links: what a sub-question takes from the answers of earlier ones, written `{1}`, `{2}`."""

import re
from collections.abc import Mapping

_LINK = re.compile(r"\{(\d+)\}")


def needs(part: str) -> list[int]:
    """The numbers of the answers that a sub-question waits for."""
    return [int(number) for number in _LINK.findall(part)]


def filled(part: str, answers: Mapping[int, str]) -> str:
    """The sub-question with the answers in their places; what is not answered stays as it is."""
    return _LINK.sub(lambda found: answers.get(int(found[1]), found[0]), part)
