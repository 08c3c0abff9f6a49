"""Further searches of a question: one for each thing compared, link of a chain, part, year of a period.

(ERM4, Query Rewriter+: several queries on different aspects.)
"""

import re

from prompts.offline.conversation import named, stand_alone
from prompts.offline.parts import parts_in
from prompts.text.asked import Ask
from prompts.text.chains import chain

_YEAR = r"(?:1[0-9]|20)\d{2}"
_PERIOD = re.compile(
    rf"\b(?:from|between)\s+(?P<a>{_YEAR})\s+(?:to|until|till|through|and)\s+(?P<b>{_YEAR})\b|"
    rf"(?:从)?(?P<c>{_YEAR})年?(?:到|至|~|—|–|-)(?P<d>{_YEAR})年(?:间|期间|之间)?",
    re.I,
)
_MOST_YEARS = 3


def aspects(taken: Ask) -> list[str]:
    """Further queries in the order in which they matter; empty for a question that one search answers."""
    if taken.options:
        return list(taken.options)
    return _parts(taken) or _links(taken) or _years(taken.text)


def _links(taken: Ask) -> list[str]:
    if taken.chinese:
        return []
    return [part for part in chain(taken.text)[:-1] if "{" not in part]


def _parts(taken: Ask) -> list[str]:
    """The questions of one that asks several things, each with what it means by those before it."""
    parts = parts_in(taken.text)
    if len(parts) < 2:
        return []
    found = [parts[0]]
    for place, part in enumerate(parts[1:], 1):
        whole = stand_alone(part, parts[:place]).text
        about = named(parts[0])
        if taken.chinese and about and not named(whole):
            whole = f"{about[0].text}{whole}"  # the subject is left out where it stays the same
        found.append(whole)
    return found


def _years(text: str) -> list[str]:
    """The same for a year each: the first, the last and the one in the middle of a long period."""
    period = _PERIOD.search(text)
    if period is None:
        return []
    first, last = (int(period[name] or period[other]) for name, other in (("a", "c"), ("b", "d")))
    if not first < last:
        return []
    years = [first, last] if last - first < 2 else [first, (first + last) // 2, last]
    han = period["c"] is not None
    return [
        f"{text[: period.start()]}{f'{year}年' if han else f'in {year}'}{text[period.end() :]}"
        for year in years[:_MOST_YEARS]
    ]
