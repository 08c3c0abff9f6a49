"""Which modes bring their own context? All others are served by search, filter and router.

To add one: a function of the type `Bring` in a file of its own, a row here and in `asking_view.MODES`, and its name in
`cli.parser.MODES`.
"""

from collections.abc import Mapping, Sequence

from flows.asking_view import View
from flows.baselines import by_parts, by_texts, directly, hypothetically, plainly
from flows.by_levels import LEVELS, by_levels, passages_by_levels
from flows.by_reports import by_reports
from flows.contexts import Bring
from flows.drifting import drifted
from flows.locally import local
from flows.traversing import traversed
from prompts.engine.models import Models
from storage.records import Mode, Passage

CONTEXTS: Mapping[Mode, Bring] = {
    **dict.fromkeys(LEVELS, by_levels),
    "traverse": traversed,
    "local": local,
    "global": by_reports,
    "drift": drifted,
    "direct": directly,
    "naive": plainly,
    "hyde": hypothetically,
    "rq": by_parts,
    "ts": by_texts,
}


async def ranked(view: View, queries: Sequence[str], models: Models, k: int) -> list[Passage]:
    """The k best passages in the question's mode; the question is the first of the queries."""
    if view.options.mode in LEVELS:
        return (await passages_by_levels(view, queries, models, k))[:k]
    return (await view.search(queries, k))[:k]


async def look_up(view: View, part: str, k: int) -> list[Passage]:
    """The k best passages for a part of the question, in its mode; no model is asked for each part."""
    return await ranked(view, [part], Models.offline(), k)
