"""The entities and relations that a model's extraction finds, beside those that GPT-4o and GPT-3.5
listed.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import dspy

from benchmarks.kept_rows import AskedRow, KeptRows
from benchmarks.model_steps import ReplyRecorder
from benchmarks.runner import Cell, Run, cell_text, share
from benchmarks.sets import read_rows
from prompts.engine.models import Models
from prompts.extract import Extract, extractor
from prompts.extracted import Extracted
from prompts.offline.extract import extract_offline
from prompts.tailoring import UNTAILORED
from tasks.evaluate.measures import holds, normalised

CAROL = "llm_outputs/christmas_carol_gpt4o_extraction.jsonl.gz"
OPENIE, OPENIE_CORPUS = (
    "llm_outputs/musique_train100_openie_gpt35.jsonl.gz",
    "multihop/musique_train100_corpus.jsonl.gz",
)
FILES = (CAROL, OPENIE, OPENIE_CORPUS)
PASSAGES = 40  # half of each list
Ends = frozenset[str]
T = TypeVar("T")


@dataclass(frozen=True)
class ListedPassage:
    """A passage, and the names and pairs of names that another model listed for it."""

    source: str
    title: str
    text: str
    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


class GraphRow(AskedRow):
    """What the model found in one passage; `problem` says why it is lost."""

    title: str
    names: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    seconds: float = 0.0


def measure_graph(run: Run, models: Models, model: str) -> None:
    """Extract from the passages, and compare with the lists; the rules without a model stand beside
    it.
    """
    run.need(*FILES)
    half = max((run.limit or PASSAGES) // 2, 1)
    kept = KeptRows(run.workspace("graph") / "rows.jsonl", GraphRow)
    step = extractor(models, 0, UNTAILORED, claims=False)
    table: dict[str, dict[str, Cell]] = {}
    for source, passages in (
        ("GPT-4o, a novel", novel(run, half)),
        ("GPT-3.5, Wikipedia", wikipedia(run, half)),
    ):
        rows = []
        for passage in passages:
            row = asyncio.run(extracted(step, passage, model, kept))
            rows.append(row)
            found = f"{len(row.names)} names, {len(row.pairs)} relations in {row.seconds:.1f} s"
            print(f"{source}: {passage.title}: {row.problem or found}", flush=True)
        by_rules = [ruled(passage) for passage in passages]
        table[f"{source}: {model}"] = {**compared(passages, rows), **taken(rows)}
        table[f"{source}: rules"] = compared(passages, by_rules)
        run.show(
            f"{passage.title}: {', '.join(row.names)} | listed: {', '.join(passage.names)}"
            for passage, row in zip(passages, rows, strict=True)
        )
    told = f"prompt {step.module.prompt_hash}"
    run.table(f"graph: {cell_text(half)} passages of each list, {told}", table)


# --- the lists ------------------------------------------------------------------------------------


def novel(run: Run, many: int) -> list[ListedPassage]:
    """Parts of A Christmas Carol with what GPT-4o listed."""
    rows = list(read_rows(run.file(CAROL)))
    return [
        ListedPassage(
            source="novel",
            title=f"A Christmas Carol, part {row['chunk_index']}",
            text=str(row["text"]),
            names=tuple(str(entity["name"]) for entity in row["entities"]),
            pairs=tuple((str(one["source"]), str(one["target"])) for one in row["relations"]),
        )
        for row in spread(rows, many)
    ]


def wikipedia(run: Run, many: int) -> list[ListedPassage]:
    """Passages of MuSiQue with what GPT-3.5 listed; a list that is no triple is left out."""
    texts = {str(row["id"]): str(row["text"]) for row in read_rows(run.file(OPENIE_CORPUS))}
    rows = [row for row in read_rows(run.file(OPENIE)) if row["entities"] and row["triples"]]
    return [
        ListedPassage(
            source="wikipedia",
            title=str(row["title"]),
            text=texts[str(row["corpus_id"])],
            names=tuple(map(str, row["entities"])),
            pairs=tuple((str(one[0]), str(one[2])) for one in row["triples"] if len(one) == 3),
        )
        for row in spread(rows, many)
    ]


def spread(rows: Sequence[T], many: int) -> Sequence[T]:
    """So many rows, at equal distances."""
    return rows[:: max(len(rows) // many, 1)][:many]


# --- what is found --------------------------------------------------------------------------------


async def extracted(
    step: Extract, passage: ListedPassage, model: str, kept: KeptRows[GraphRow]
) -> GraphRow:
    """What the step finds, from the file where this was asked before; a failure is a row."""
    module = step.module
    parts = [
        model,
        module.prompt_hash,
        module.shape,
        step.models.calls.max_tokens,
        passage.title,
        passage.text,
    ]
    asked = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    known = kept.rows.get(asked)
    if known is not None and not (
        known.problem and not known.calls
    ):  # one that got no reply is asked again
        return known
    recorder, started, problem, found = ReplyRecorder(), time.monotonic(), "", Extracted()
    try:
        with dspy.context(callbacks=[recorder], disable_history=True):
            found = await step.run(passage.title, passage.text)
    # A passage that is lost is counted, the others go on.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"[:500]
    row = GraphRow(
        asked=asked,
        title=passage.title,
        names=names_of(found),
        pairs=pairs_of(found),
        problem=problem,
        tokens_in=sum(reply.tokens_in for reply in recorder.replies),
        tokens_out=sum(reply.tokens_out for reply in recorder.replies),
        calls=len(recorder.replies),
        seconds=time.monotonic() - started,
    )
    kept.add(row)
    return row


def ruled(passage: ListedPassage) -> GraphRow:
    """What the rules without a model find."""
    found = extract_offline(passage.title, passage.text)
    return GraphRow(asked="", title=passage.title, names=names_of(found), pairs=pairs_of(found))


def names_of(found: Extracted) -> tuple[str, ...]:
    """The names of the entities found."""
    return tuple(entity.name for entity in found.entities)


def pairs_of(found: Extracted) -> tuple[tuple[str, str], ...]:
    """The ends of the relations found."""
    return tuple((relation.source, relation.target) for relation in found.relations)


# --- figures --------------------------------------------------------------------------------------


def compared(passages: Sequence[ListedPassage], rows: Sequence[GraphRow]) -> dict[str, Cell]:
    """Names and pairs of names beside those that were listed, over all passages together.

    Names are equal by HotpotQA's rules; in a pair the order does not count. "About": one of two
    names holds the other.
    """
    listed = [set(map(normalised, passage.names)) for passage in passages]
    found = [set(map(normalised, row.names)) for row in rows]
    listed_pairs = [set(ends_of(passage.pairs)) for passage in passages]
    found_pairs = [set(ends_of(row.pairs)) for row in rows]
    both = list(zip(listed, found, strict=True))
    both_pairs = list(zip(listed_pairs, found_pairs, strict=True))
    return {
        "passages": len(rows),
        "lost": share([bool(row.problem) for row in rows]),
        "names listed": sum(map(len, listed)),
        "found": sum(map(len, found)),
        "recall": share([name in own for names, own in both for name in names]),
        "about": share(
            [any(alike(name, one) for one in own) for names, own in both for name in names]
        ),
        "precision": share([name in names for names, own in both for name in own]),
        "in passage": share(
            [
                holds(f"{passage.title}\n{passage.text}", [name])
                for passage, row in zip(passages, rows, strict=True)
                for name in row.names
            ]
        ),
        "relations listed": sum(map(len, listed_pairs)),
        "relations": sum(map(len, found_pairs)),
        "their recall": share([pair in own for pairs, own in both_pairs for pair in pairs]),
        "their precision": share([pair in pairs for pairs, own in both_pairs for pair in own]),
    }


def taken(rows: Sequence[GraphRow]) -> dict[str, Cell]:
    """What a passage took."""
    return {
        "calls": share([row.calls for row in rows]),
        "in": share([row.tokens_in for row in rows]),
        "out": share([row.tokens_out for row in rows]),
        "s": share([row.seconds for row in rows]),
    }


def ends_of(pairs: Iterable[tuple[str, str]]) -> Iterator[Ends]:
    """The two ends of each pair; those of a thing with itself are left out."""
    ends = (frozenset(map(normalised, pair)) for pair in pairs)
    return (pair for pair in ends if len(pair) == 2)


def alike(name: str, other: str) -> bool:
    """Whether one of two names holds the other."""
    return holds(name, [other]) or holds(other, [name])
