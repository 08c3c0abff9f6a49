"""Whether questions are linked to the entities that they name, also in lower case and misspelt."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.retrieval import misspelt
from benchmarks.runner import DATA, DataMissingError, Run, measure, option, share
from benchmarks.sets import SETS, files_of, index, open_set, read_rows, settings_in
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.session import Session, open_session

SET = "2wiki_6119"


@measure(
    option(
        "--texts",
        type=Path,
        metavar="DIR",
        help="ask the Chinese questions of the documents there instead",
    ),
    sets=files_of(*SETS),
    default=[SET],
    optional=True,
)
def linking(run: Run) -> None:
    """Do questions find the entities that they name, also in lower case and misspelt?

    `kept` is the share of the links of the questions as written, `more` counts links that only this
    way gave, `unlinked` the names told as unknown. With --texts the passages of
    `chinese_questions.jsonl` are looked for.
    """
    if run.options.texts:
        runtime, _ = index([run.options.texts], settings_in(run.workspace("texts")))
        with open_session(runtime) as session:
            asyncio.run(_chinese(run, session))
        return
    if not run.options.data:
        raise DataMissingError(
            "Name the folder of the published data (--data DIR) or of the texts (--texts DIR)."
        )
    for name in run.options.sets:
        questions = [
            question.question for question in SETS[name].read_questions(run.options.data, run.limit)
        ]
        with open_set(run, name) as session:
            _links(run, name, questions, session)


def _links(run: Run, name: str, questions: list[str], session: Session) -> None:
    variants: dict[str, Callable[[str], str]] = {
        "as written": str,
        "lower case": str.lower,
        "one slip a name": misspelt,
        "both": lambda question: misspelt(question).lower(),
    }
    index = session.index
    index.link(misspelt(questions[0]))  # what is made at the first use
    rows, first = {}, list[set[int]]()
    for variant, written in variants.items():
        asked = [written(question) for question in questions]
        started = time.process_time()
        links = [index.link(question) for question in asked]
        ms = 1000 * (time.process_time() - started) / len(asked)
        linked = [{link.entity for link in found} for found in links]
        first = first or linked
        pairs = list(zip(linked, first, strict=True))
        rows[variant] = {
            "links": sum(map(len, linked)),
            "kept": sum(len(found & before) for found, before in pairs) / sum(map(len, first)),
            "more": sum(len(found - before) for found, before in pairs),
            "unlinked": sum(
                len(index.names.unlinked(text, one)) for text, one in zip(asked, links, strict=True)
            ),
            "CPU ms": ms,
        }
    run.table(f"{name}: {len(questions)} questions, {len(index.entities)} entities", rows)


async def _chinese(run: Run, session: Session) -> None:
    rows = list(read_rows(DATA / "chinese_questions.jsonl"))[: run.limit]
    ranks = []
    for row in rows:
        found = (await retrieve_passages(row["question"], AskOptions(k=5), session)).passages
        right = [
            row["evidence"] in passage.text and passage.document == row["document"]
            for passage in found
        ]
        ranks.append(right.index(True) + 1 if any(right) else 0)
    hits = {f"hit@{k}": share([0 < rank <= k for rank in ranks]) for k in (1, 3, 5)}
    run.table(
        f"Chinese questions, {len(session.index.chunks)} passages",
        {"all": {"questions": len(rows), **hits}},
    )
