"""How good the search's rankings are beside plain ones and other systems', and what each part of it
is worth.
"""

import argparse
import asyncio
import copy
import random
import re
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.contexts import standing
from benchmarks.runner import Rows, Run, apart, measure, option, whole_number
from benchmarks.sets import SETS, files_of, index, settings_in
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.text.words import STOPWORDS
from storage.answer_records import Mode
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record
from tasks.retrieve.passage_sets import SearchParts, fused

WITHOUT: dict[str, SearchParts] = {
    "-words": SearchParts(words=False),
    "-meaning": SearchParts(meaning=False),
    "-PageRank": SearchParts(walk=False),
    "-bridges": SearchParts(bridges=False),
    "-sets": SearchParts(sets=False),
}
# LightRAG's levels, each by itself and both, without the search by words and walk.
LEVELS: dict[str, Mode] = {"-High": "low", "-Low": "high", "hybrid": "hybrid"}

# What other systems found for each question.
Peers = Mapping[str, Sequence[Sequence[str]]]
_WORD = re.compile(r"[^\W_][\w'’.&-]*")
_OWN = re.compile(r"['’]s?$")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 4


def setting(text: str) -> tuple[str, str]:
    """A type of argparse: the name and the value of `NAME=VALUE`."""
    name, given, value = text.partition("=")
    if not given or name not in Settings.model_fields:
        raise argparse.ArgumentTypeError(f"{text!r}: use NAME=VALUE with the name of a setting")
    return name, value


class Job(Record):
    """What one measuring process has to do; `folder` is where its corpus and workspace go."""

    name: str
    data: Path
    folder: Path
    limit: int | None
    ks: tuple[int, ...]
    brief: bool
    settings: dict[str, str]


@measure(
    option(
        "--k",
        type=whole_number,
        nargs="+",
        default=[1, 2, 5, 8, 10],
        metavar="K",
        help="cut-offs (1 2 5 8 10)",
    ),
    option(
        "--setting",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting other than its default, such as embedding=FOLDER; may be repeated",
    ),
    option("--brief", action="store_true", help="the questions as they stand, and nothing else"),
    sets=files_of(*SETS),
)
def retrieval(run: Run) -> None:
    """Are the passages found that published questions need, and what is each part of the search
    worth?

    Every question as it stands, beside plain rankings and what other systems published; by kind;
    made worse on purpose; with one part of the search left out after another; and how often the
    answer stands in what a mode lays before the answering step. Each set is measured in a process
    of its own, whose peak memory is its own.
    """
    for name in run.options.sets:
        job = Job(
            name=name,
            data=run.options.data,
            folder=run.workspace(name),
            limit=run.limit,
            ks=tuple(run.options.k),
            brief=run.options.brief,
            settings=dict(run.options.setting),
        )
        for title, rows in apart(measured, job).items():
            run.table(f"{name}: {title}", rows)


def measured(job: Job) -> dict[str, Rows]:
    """Index one set, unless its folder holds that index already, and ask its questions in every
    way: the tables.
    """
    known = SETS[job.name]
    questions = known.read_questions(job.data, job.limit)
    runtime, report = index(
        known.write(job.data, job.folder), settings_in(job.folder, **job.settings)
    )
    started = time.monotonic()
    with open_session(runtime) as session:
        # The first question loads the index and the embedder; it is paid once in a session.
        asyncio.run(ranked(questions[0].question, max(job.ks), session))
        loaded = time.monotonic() - started
        asking = Asking(questions, job.ks, session, known.read_peers(job.data, job.limit))
        tables = asyncio.run(asking.tables(job.brief or known.chinese))
        if not (job.brief or known.chinese) and any(question.answers for question in questions):
            count, shares = asyncio.run(standing(questions, session))
            tables[f"the answer of {count} questions stands in the context"] = {"share": shares}
        passages = len(session.index.chunks)
    cost = {
        "passages": passages,
        "questions": len(questions),
        "index s": report.seconds if report.published else None,
        "open s": loaded,
        "ms a query": asking.milliseconds,
        "CPU ms": asking.cpu,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return {"cost": {"all": cost}, **tables}


async def ranked(question: str, k: int, session: Session, mode: Mode = "auto") -> list[str]:
    """The documents of the k passages that are retrieved, best first."""
    found = await retrieve_passages(question, AskOptions(mode=mode, k=k), session)
    return [passage.document for passage in found.passages]


def floors(question: str, k: int, session: Session) -> dict[str, list[str]]:
    """What each plain ranking gives: words alone, meaning alone, and the two fused by reciprocal
    rank.
    """
    index = session.index
    scores = index.lexicon.scores(question)
    lexical = [int(i) for i in np.argsort(-scores, kind="stable")[:50] if scores[i] > 0]
    near = session.dense([question])[0]
    dense = [
        index.position[chunk] for chunk in sorted(near, key=lambda chunk: (-near[chunk], chunk))
    ]
    rankings = {"bm25": lexical, "dense": dense, "rrf": fused([lexical, dense])}
    return {
        name: [index.chunks[place].document for place in found[:k]]
        for name, found in rankings.items()
    }


def quality(
    questions: Sequence[EvaluationQuestion], rankings: Sequence[Sequence[str]], ks: Sequence[int]
) -> dict[str, float]:
    """By k the share of gold passages found, and of questions with all of them found; `rankings`
    holds the ranked documents of each question. With one gold passage a question the two agree
    (hit@k).
    """
    shares = {
        k: [
            len(set(question.gold_documents) & set(ranking[:k])) / len(question.gold_documents)
            for question, ranking in zip(questions, rankings, strict=True)
        ]
        for k in ks
    }
    return {
        **{f"recall@{k}": round(mean(found), 4) for k, found in shares.items()},
        **{
            f"all@{k}": round(mean(float(one == 1) for one in found), 4)
            for k, found in shares.items()
        },
    }


def by_kind(
    questions: Sequence[EvaluationQuestion], rankings: Sequence[Sequence[str]], ks: Sequence[int]
) -> Rows:
    """For each kind of question how many there are and how good their rankings are."""
    groups: dict[str, list[tuple[EvaluationQuestion, Sequence[str]]]] = defaultdict(list)
    for question, ranking in zip(questions, rankings, strict=True):
        groups[question.kind].append((question, ranking))
    return {
        kind: {
            "questions": len(pairs),
            **quality([q for q, _ in pairs], [ranking for _, ranking in pairs], ks),
        }
        for kind, pairs in sorted(groups.items())
    }


def switched(session: Session, parts: SearchParts) -> Session:
    """A copy whose search leaves some parts out; only the original is closed."""
    other = copy.copy(session)
    other.index = session.index.switched(parts)
    return other


class Asking:
    """All questions of a set, asked in many ways; the first time tells what a question costs."""

    def __init__(
        self,
        questions: Sequence[EvaluationQuestion],
        ks: Sequence[int],
        session: Session,
        peers: Peers,
    ) -> None:
        self.questions = questions
        self.peers = peers
        self.ks = ks
        self.session = session
        self.milliseconds = self.cpu = 0.0

    async def tables(self, brief: bool) -> dict[str, Rows]:
        """The tables by heading; the first alone where `brief`."""
        rankings = await self._timed()
        ours = quality(self.questions, rankings, self.ks)
        tables: dict[str, Rows] = {
            "as they stand": {"trellis": ours, **self._floors(), **self._peers()}
        }
        if brief:
            return tables
        plain, unspelt = self.session, switched(self.session, SearchParts(fuzzy=False))
        tables["by kind"] = by_kind(self.questions, rankings, self.ks)
        tables["made worse"] = {
            "lower case": await self._asked(plain, change=str.lower),
            "one slip a name": await self._asked(plain, change=misspelt),
            "the same -fuzzy": await self._asked(unspelt, change=misspelt),
        }
        tables["a part left out"] = {
            "all parts": ours,
            **{name: await self._asked(switched(plain, it)) for name, it in WITHOUT.items()},
            **{name: await self._asked(plain, mode=mode) for name, mode in LEVELS.items()},
        }
        return tables

    async def _timed(self) -> list[list[str]]:
        # Vectors are kept once they are made; what making them costs is the embedder's.
        embedder = self.session.runtime.embedder
        embedder.embed(
            [question.question for question in self.questions if embedder.reads(question.question)],
            query=True,
        )
        wall, cpu = time.monotonic(), time.process_time()
        rankings = [
            await ranked(question.question, max(self.ks), self.session)
            for question in self.questions
        ]
        each = 1000 / len(self.questions)
        self.milliseconds, self.cpu = (
            each * (time.monotonic() - wall),
            each * (time.process_time() - cpu),
        )
        return rankings

    async def _asked(
        self, session: Session, change: Callable[[str], str] = str, mode: Mode = "auto"
    ) -> dict[str, float]:
        rankings = [
            await ranked(change(question.question), max(self.ks), session, mode)
            for question in self.questions
        ]
        return quality(self.questions, rankings, self.ks)

    def _floors(self) -> Rows:
        found: dict[str, list[list[str]]] = {}
        for question in self.questions:
            for name, documents in floors(question.question, max(self.ks), self.session).items():
                found.setdefault(name, []).append(documents)
        return {
            name: quality(self.questions, documents, self.ks) for name, documents in found.items()
        }

    def _peers(self) -> Rows:
        """What other systems published for these questions, as far down as their lists go."""
        return {
            name: quality(self.questions, lists, [k for k in self.ks if k <= max(map(len, lists))])
            for name, lists in self.peers.items()
        }


# --- slips of the pen -----------------------------------------------------------------------------


def misspelt(question: str, seed: int = 1) -> str:
    """The question with one slip in the longest word of each name: two letters swapped, one lost,
    replaced or added, not at the word's ends. A name is a run of words with a capital; the same
    seed gives the same slips.
    """
    chance = random.Random(f"{seed}:{question}")  # noqa: S311 - slips of the pen, no secrets
    for start, word in reversed(list(_longest_words(question))):
        at = start + chance.randrange(1, len(word) - 1)
        here, after = question[at], question[at + 1]
        kind, letter = (
            chance.choice("slra"),
            chance.choice([other for other in _LETTERS if other != here]),
        )
        if kind == "s" and here == after:
            kind = "l"
        slip = {"s": after + here, "l": "", "r": letter, "a": letter + here}[kind]
        question = question[:at] + slip + question[at + (2 if kind == "s" else 1) :]
    return question


def _longest_words(question: str) -> Iterator[tuple[int, str]]:
    """Where the longest word of each name begins, and the word; names of short words alone are left
    out.
    """
    run: list[tuple[int, str]] = []
    for match in [*_WORD.finditer(question), None]:
        begins_name = match is not None and match.group()[0].isupper()
        if (
            match is not None
            and begins_name
            and (match.start() or match.group().lower() not in STOPWORDS)
        ):
            run.append((match.start(), _OWN.sub("", match.group())))
            continue
        start, word = max(run, key=lambda pair: len(pair[1]), default=(0, ""))
        if len(word) >= _SHORTEST:
            yield start, word
        run = []
