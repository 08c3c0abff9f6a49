"""Which year does a question mean by "the year after" or 当年? The one that the conversation speaks of last, moved."""

import re
from collections.abc import Sequence

from prompts.language.mentions import Turn

_YEAR = re.compile(r"(?<!\d)(?:1[0-9]|20)\d{2}(?!\d)")
_STEP = re.compile(
    r"\b(?:in |during )?(?:(?P<back>the (?:year before|previous year|prior year|preceding year))|"
    r"(?P<on>the (?:year after|following year|next year))|(?P<same>that (?:same )?year|the same year))\b"
    r"(?! (?:when|that|in which))|"
    r"(?P<back_zh>(?:前|上)一年|之前一年)|(?P<on_zh>(?:后|下|次|翌)一?年(?!级)|之后一年)|(?P<same_zh>那一?年|当年|同年|同一年)",
    re.I,
)


def in_year(question: str, turns: Sequence[Turn]) -> str:
    """The question with the year that it points to; as it is where it points to none, names one itself, or nobody has
    named one."""
    step = _STEP.search(question)
    if step is None or _YEAR.search(question):
        return question
    said = next((years[-1] for turn in reversed(turns) if (years := _YEAR.findall(turn.text))), "")
    if not said:
        return question
    moved = -1 if step["back"] or step["back_zh"] else 1 if step["on"] or step["on_zh"] else 0
    chinese = bool(step["back_zh"] or step["on_zh"] or step["same_zh"])
    year = f"{int(said) + moved}年" if chinese else f"in {int(said) + moved}"
    return f"{question[: step.start()]}{year}{question[step.end() :]}"
