"""Of which parts are the patterns made that read English questions over tables?"""

import re

from prompts.language.table_plan import Operation, TablePlan
from prompts.language.table_wording import Planned, cleaned, periods_in, without_periods

QUOTED = re.compile(r"['\"‘“](?P<quoted>[^'\"‘’“”]{2,80}(?:['’](?=s )[^'\"‘’“”]{2,80})?)['\"’”](?!\w)")
THING = r"(?P<thing>.+?)"
SPAN = r"(?=,? (?:over|from|between|based|in|during|for)\b|\?|$)"
DURING = r"(?=,? (?:over|from|between|during)\b)"
CHANGE = r"(?:change|develop|evolve|vary|move|grow|fluctuate)"
HAS = r"(?:\w+ ){0,3}?(?:have|has|had|with|report|reported|show|showed)"
ATTRIBUTE = r"(?P<attribute>.+?)"
NOUN = r"(?P<noun>(?!the |an? )[a-z][\w-]*(?: [a-z][\w-]*)?)"
OF_ALL = (
    r"(?:all|each|every|any|these|those|the|both)(?: of)? (?:(?:the|these|those) )?(?:[\w-]+ ){0,3}?"
    r"(?P<all>compan(?:y|ies)|firm|document|report|file|bank|business|trust|[a-z]{3,}s|(?<=each )[a-z]+|"
    r"(?<=every )[a-z]+)\b"
)
SUPERLATIVE = (
    r"(?P<most>highest|lowest|most|least|largest|smallest|greatest|biggest|fewest|longest|shortest|oldest|newest|"
    r"higher|lower|more|less|larger|smaller|greater|bigger|fewer|longer|shorter|maximum|minimum|top|best|worst)"
)
NUMBER_WORDS = {word: n for n, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}
MANY = rf"(?P<many>\d{{1,2}}|{'|'.join(NUMBER_WORDS)})"


def planned(
    operation: Operation, attribute: str, match: re.Match[str], *, sure: bool = True, **more: object
) -> Planned | None:
    """A plan with the attribute in its quotation marks or without the words that only ask for it."""
    quoted = QUOTED.search(attribute) or QUOTED.search(match.string)
    named = quoted["quoted"] if quoted and quoted["quoted"] in match.string else attribute
    groups = match.groupdict()
    more.setdefault("things", (cleaned(without_periods(groups["thing"])),) if groups.get("thing") else ())
    more.setdefault("periods", periods_in(match.string))
    name = cleaned(without_periods(named))
    if not name or len(name) > 120:
        return None
    return Planned(TablePlan.model_validate({"operation": operation, "attribute": name, **more}), sure)
