"""What a model's help gives the search: statements of the graph that it keeps, further searches for
what the first leaves open, and propositions. A scripted reader stands in for the model.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agent import Link, Planner, reads
from benchmarks.runner import Cell, Run, measure, option, share, whole_number
from benchmarks.sets import (
    SETS,
    Row,
    open_set,
    read_rows,
    settings_in,
    triple_rows,
)
from flows.helped_search import followed, recognized
from flows.indexing.batches import embed_propositions
from flows.question import AskOptions, Resources, resources_for
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from prompts.agent import FINISH, CallTool, ToolCall, ToolResult
from prompts.engine.messages import rough_tokens
from prompts.engine.models import Models
from prompts.recognize import Recognize
from prompts.text.segment import sentences
from prompts.text.words import fold
from storage.evaluation_records import EvaluationQuestion
from storage.propositions import Proposition
from storage.records import Chunk, by_key
from tasks.retrieve.search import NO_SEEDS

OPENIE = "llm_outputs/musique_train100_openie_gpt35.jsonl.gz"
ASKED = 40
TOP, FURTHER_DOWN = 5, 10
OF_A_LINK = 2  # statements that the reader keeps for a link
WAYS = {"alone": "", "statements": "a", "further searches": "b", "both": "ab"}


def links_of(row: Row) -> list[Link]:
    """The links of a question: the sub-questions of MuSiQue, or a question for each triple of
    2Wiki; `#n` stands for the answer of the n-th.
    """
    triples = row.get("evidence_triples")
    if triples is None:
        return [Link(str(part["question"]), str(part["answer"])) for part in row["decomposition"]]
    links: list[Link] = []
    for subject, relation, value in triples:
        earlier = [
            place for place, link in enumerate(links, 1) if fold(link.answer) == fold(subject)
        ]
        asked = f"#{earlier[0]}" if earlier else subject
        links.append(Link(f"What is the {relation} of {asked}?", str(value)))
    return links


class Reader(Recognize):
    """A reader that keeps a statement where it holds the answer of a link together with a word of
    its sub-question.

    It fills in the answer of an earlier link only where a statement that it was shown holds that.
    """

    def __init__(self, models: Models, links: Sequence[Link]) -> None:
        super().__init__(models)
        self.links = links
        self.tokens = 0

    @property
    def is_offline(self) -> bool:
        return False

    async def run(self, question: str, statements: Sequence[str]) -> list[int]:
        """The places of the statements kept, link by link."""
        self.tokens = sum(map(rough_tokens, statements))
        planner, kept = Planner(self.models, self.links), list[int]()
        for number, link in enumerate(self.links, 1):
            if not planner.asked(link):
                continue
            holding = [
                place
                for place, line in enumerate(statements)
                if reads(link, planner.filled(link), [ToolResult(call="", result=[line])])
            ]
            if holding:
                planner.read[number] = link.answer
            kept += holding[:OF_A_LINK]
        return list(dict.fromkeys(kept))


class Follower(Planner):
    """A planner that asks only for links that no result answers, each once, and ends with the
    numbers of the evidence that answers the others.
    """

    async def run(
        self, question: str, tools: Sequence[str], calls: Sequence[ToolResult], left: int
    ) -> ToolCall:
        """The next search, or the end."""
        numbers: dict[str, None] = {}
        for place, link in enumerate(self.links, 1):
            if not self.asked(link):
                continue
            lines = (line for call in calls for line in call.result)
            answering = [
                line
                for line in lines
                if reads(link, self.filled(link), [ToolResult(call="", result=[line])])
            ]
            if answering:
                self.read[place] = link.answer
                numbers[answering[0].partition("]")[0].strip("[")] = None
            elif not link.tries:
                link.tries += 1
                return ToolCall(tool="search", arguments=(self.filled(link),))
        return FINISH.model_copy(update={"arguments": tuple(numbers)})


@dataclass
class Found:
    """The documents found for a question, best first, and what the help cost."""

    documents: list[str]
    calls: int = 0
    tokens: int = 0
    shown: int = 0
    kept: int = 0
    kept_gold: int = 0


@measure(
    option(
        "--searches", type=whole_number, default=4, metavar="N", help="the most further calls (4)"
    ),
    sets={
        name: (*SETS[name].files, OPENIE) if name.startswith("musique") else SETS[name].files
        for name in ("musique_train100", "musique_train100_triples", "2wiki_train100")
    },
)
def helped_retrieval(run: Run) -> None:
    """Are more of the gold passages among the first five where a model helps the search?

    A reader that knows the links of a question, but acts only on what it is shown, stands in for
    the model. 40 questions of each set, unless --limit names another number.
    """
    for name in run.options.sets:
        known, count = SETS[name], run.limit or ASKED
        rows = list(read_rows(run.file(known.questions)))[:count]
        questions = known.read_questions(run.options.data, count)
        ways: dict[str, list[Found]] = {}
        with open_set(run, name) as session:
            for way, parts in WAYS.items():
                work = _all(rows, questions, session, parts, run.options.searches)
                ways[way] = asyncio.run(work)
            chunks = session.index.chunks
        with with_propositions(run, name, chunks) as session:
            ways["propositions"] = asyncio.run(_all(rows, questions, session, "", 0))
        run.table(
            f"{name}: {len(rows)} questions",
            {way: _figures(found, questions) for way, found in ways.items()},
        )
        run.show(
            f"{way} | {question.question} | {one.documents[:TOP]} of {question.gold_documents}"
            for way, found in ways.items()
            for one, question in zip(found, questions, strict=True)
            if not set(question.gold_documents) <= set(one.documents[:TOP])
        )


def with_propositions(run: Run, name: str, chunks: Sequence[Chunk]) -> Session:
    """Open a copy of the set whose passages have propositions: the triples that a model wrote of
    them, where the set has any, or else their sentences, each after the title.
    """
    folder = run.workspace(f"{name}_propositions")
    settings, texts = settings_in(folder), [one for one in chunks if one.kind != "triples"]
    runtime = open_runtime(settings)
    if not settings.workspace.exists():
        shutil.copytree(run.workspace(name) / "workspace", settings.workspace)
        triples = run.file(OPENIE) if name.startswith("musique") else None
        asyncio.run(_propose(texts, _statements(texts, triples), runtime))
    return open_session(runtime)


def _statements(chunks: Sequence[Chunk], triples: Path | None) -> Mapping[str, list[Proposition]]:
    """The propositions of each chunk, by its id."""
    written = by_key((str(row["document"]), row) for row in triple_rows(triples)) if triples else {}
    made: dict[str, list[Proposition]] = {}
    for chunk in chunks:
        spans = [(chunk.start + start, chunk.start + end) for start, end in sentences(chunk.text)]
        said = [
            (f"{chunk.title}: {chunk.text[a - chunk.start : b - chunk.start]}", (a, b))
            for a, b in spans
        ]
        if triples:
            rows = [row for row in written.get(chunk.document, ()) if "s" in row]
            said = [(f"{row['s']} {row['p']} {row['o']}", (chunk.start, chunk.end)) for row in rows]
        made[chunk.id] = [Proposition(chunk.id, text, *span) for text, span in dict(said).items()]
    return made


async def _propose(
    chunks: Sequence[Chunk], made: Mapping[str, list[Proposition]], runtime: Runtime
) -> None:
    with runtime.workspace.write() as staging:
        staging.propositions.put(made, dict.fromkeys(made, "benchmark"))
        await embed_propositions(chunks, staging, runtime)
        staging.publish()


async def _all(
    rows: Sequence[Row],
    questions: Sequence[EvaluationQuestion],
    session: Session,
    parts: str,
    searches: int,
) -> list[Found]:
    found = []
    for row, question in zip(rows, questions, strict=True):
        options = AskOptions(mode="struct", k=FURTHER_DOWN)
        resources = await resources_for(question.question, options, session)
        found.append(await _found(resources, links_of(row), parts, searches, question))
    return found


async def _found(
    resources: Resources,
    links: Sequence[Link],
    parts: str,
    searches: int,
    question: EvaluationQuestion,
) -> Found:
    search, text = resources.search, resources.question.text
    seeds, result = NO_SEEDS, Found([])
    if "a" in parts:
        reader = Reader(resources.models, links)
        seeds, recognition = await recognized(resources, reader)
        result.calls, result.tokens = 1, reader.tokens
        result.shown, result.kept = recognition.shown, len(recognition.kept)
        result.kept_gold = len(
            {one.document for one in recognition.kept} & set(question.gold_documents)
        )
    passages = await search.passages([text], FURTHER_DOWN, seeds=seeds)
    if "b" in parts:
        first = await search.reranked(text, passages, FURTHER_DOWN)
        follower: CallTool = Follower(resources.models, links)
        tools = await followed(resources, first, follower, searches)
        result.calls += tools.seen.asked
        result.tokens += tools.seen.tokens
        passages = list(tools.result().passages)
    result.documents = list(dict.fromkeys(passage.document for passage in passages))
    return result


def _figures(rows: Sequence[Found], questions: Sequence[EvaluationQuestion]) -> Mapping[str, Cell]:
    def shares(top: int) -> list[float]:
        return [
            len(set(one.gold_documents) & set(row.documents[:top])) / len(one.gold_documents)
            for row, one in zip(rows, questions, strict=True)
        ]

    return {
        f"all gold@{TOP}": share([found == 1 for found in shares(TOP)]),
        f"recall@{TOP}": share(shares(TOP)),
        f"all gold@{FURTHER_DOWN}": share([found == 1 for found in shares(FURTHER_DOWN)]),
        "calls": share([row.calls for row in rows]),
        "tokens": share([row.tokens for row in rows]),
        "shown": share([row.shown for row in rows]),
        "kept": share([row.kept for row in rows]),
        "gold kept": share([row.kept_gold for row in rows]),
    }
