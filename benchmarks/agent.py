"""Whether mode `agent` sees all that a question of several links needs, and keeps its budget: a
scripted planner stands in for the model.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.retrieval import ranked
from benchmarks.runner import Cell, Run, measure, option, share
from benchmarks.sets import SETS, Row, files_of, open_set, read_rows
from flows.modes.agent import budget_of, tools_for
from flows.question import AskOptions, resources_for
from flows.session import Session
from prompts.agent import FINISH, CallTool, ToolCall, ToolName, ToolResult
from prompts.engine.models import Models
from prompts.text.languages import names_of
from prompts.text.words import content_terms, fold
from storage.answer_records import Effort
from storage.evaluation_records import EvaluationQuestion
from tasks.agent import explore

SET = "musique_train100"
ASKED = 40
TOP = 5
_ANSWER_OF = re.compile(r"#(\d+)")


@dataclass
class Link:
    """A sub-question of the data set, its answer, and how often it was asked."""

    question: str
    answer: str
    tries: int = 0
    is_read: bool = False


class Planner(CallTool):
    """A planner that takes a question apart as the data set does, and reads what tools show.

    It knows the sub-questions, as a model would make them. It knows an answer only from the moment
    at which a line of a result holds it together with a word of its sub-question, and only then
    asks by it. It searches for each sub-question once, and goes on where no line answers it: with
    the entity that the sub-question names, the search by words, the search by meaning. It knows
    neither the passages nor the titles of the evidence.
    """

    def __init__(self, models: Models, links: Sequence[Link]) -> None:
        super().__init__(models)
        self.links = links
        self.read: dict[int, str] = {}  # the answers that were read, by the place of their link

    @property
    def is_offline(self) -> bool:
        return False

    async def run(
        self, question: str, tools: Sequence[str], calls: Sequence[ToolResult], left: int
    ) -> ToolCall:
        """The next call for the first sub-question that can be asked and has to be."""
        for place, link in enumerate(self.links, 1):
            if self.asked(link) and reads(link, self.filled(link), calls):
                link.is_read, self.read[place] = True, link.answer
        offered = {tool.partition("(")[0] for tool in tools}
        for link in self.links:
            if (link.is_read and link.tries) or not self.asked(link):
                continue
            asked = self.filled(link)
            ways = [way for way in _ways(asked) if way[0] in offered]
            if link.tries < len(ways):
                tool, argument = ways[link.tries]
                link.tries += 1
                return ToolCall(thought=f"Missing: {asked}", tool=tool, arguments=(argument,))
        return FINISH.model_copy()

    def asked(self, link: Link) -> bool:
        """Whether the answers that a sub-question needs are known."""
        return all(int(number) in self.read for number in _ANSWER_OF.findall(link.question))

    def filled(self, link: Link) -> str:
        filled = _ANSWER_OF.sub(lambda match: self.read[int(match[1])], link.question)
        return " ".join(filled.replace(">>", " ").split())


def reads(link: Link, asked: str, calls: Sequence[ToolResult]) -> bool:
    """Whether a line that was shown holds the answer and a word of the sub-question."""
    answer = fold(link.answer)
    words = set(content_terms(asked)) - set(content_terms(link.answer))
    return any(
        answer in fold(line) and words & set(content_terms(line))
        for call in calls
        for line in call.result
    )


def _ways(asked: str) -> list[tuple[ToolName, str]]:
    """The calls to try for a sub-question, in order."""
    named = max((span.text for span in names_of(asked)), key=len, default="")
    entity: list[tuple[ToolName, str]] = [("entity", named)] if named else []
    return [("search", asked), *entity, ("search_words", asked), ("search_meaning", asked)]


@dataclass(frozen=True)
class Seen:
    """What the agent saw of a question's evidence, beside one search."""

    hops: int
    found: float  # the share of the gold documents
    searched: float  # by one search of TOP passages
    as_many: float  # by one search of as many passages
    passages: int
    asked: int
    tokens: int
    in_budget: bool


@measure(
    option("--effort", choices=("low", "medium", "high"), default="medium", help="(medium)"),
    sets=files_of(SET),
)
def agent(run: Run) -> None:
    """Does mode agent see all gold passages of MuSiQue's questions, within its budget?

    A planner that knows the data set's sub-questions stands in for the model; it uses an answer
    only once a result has shown it. Beside it: one search of five passages, and one of as many
    passages as the agent saw. 40 questions, unless --limit names another number.
    """
    known, count = SETS[SET], run.limit or ASKED
    rows = list(read_rows(run.file(known.questions)))[:count]
    questions = known.read_questions(run.options.data, count)
    with open_set(run, SET) as session:
        seen = asyncio.run(_all(rows, questions, session, run.options.effort))
    by_hops = {f"{hops} hops": [one for one in seen if one.hops == hops] for hops in (2, 3, 4)}
    run.table(
        f"{SET}: {len(seen)} questions at {run.options.effort} effort",
        {name: _figures(own) for name, own in {"all": seen, **by_hops}.items() if own},
    )
    run.show(
        f"{row['question']} | {one.found:.2f} | {one.asked} calls"
        for row, one in zip(rows, seen, strict=True)
        if one.found < 1
    )


async def _all(
    rows: Sequence[Row], questions: Sequence[EvaluationQuestion], session: Session, effort: Effort
) -> list[Seen]:
    return [
        await _seen(row, question, session, effort)
        for row, question in zip(rows, questions, strict=True)
    ]


async def _seen(row: Row, question: EvaluationQuestion, session: Session, effort: Effort) -> Seen:
    options = AskOptions(mode="agent", effort=effort)
    resources = await resources_for(question.question, options, session)
    links = [Link(str(part["question"]), str(part["answer"])) for part in row["decomposition"]]
    tools, budget = await tools_for(resources), budget_of(resources)
    found = await explore(
        question.question, tools.seen, tools, Planner(resources.models, links), budget
    )
    documents = list(dict.fromkeys(source.document for source in found.sources))
    gold = set(question.gold_documents)

    async def by_one_search(k: int) -> float:
        return len(gold & set(await ranked(question.question, k, session))) / len(gold)

    return Seen(
        hops=len(links),
        found=len(gold & set(documents)) / len(gold),
        searched=await by_one_search(TOP),
        as_many=await by_one_search(max(len(documents), TOP)),
        passages=len(documents),
        asked=found.asked,
        tokens=found.tokens,
        in_budget=found.asked <= budget.calls and found.tokens <= budget.tokens,
    )


def _figures(rows: Sequence[Seen]) -> Mapping[str, Cell]:
    return {
        "questions": len(rows),
        "all gold seen": share([one.found == 1 for one in rows]),
        "recall": share([one.found for one in rows]),
        f"one search @{TOP}": share([one.searched == 1 for one in rows]),
        "one search, as many": share([one.as_many == 1 for one in rows]),
        "passages": share([one.passages for one in rows]),
        "calls": share([one.asked for one in rows]),
        "tokens": share([one.tokens for one in rows]),
        "most tokens": max(one.tokens for one in rows),
        "in budget": share([one.in_budget for one in rows]),
    }
