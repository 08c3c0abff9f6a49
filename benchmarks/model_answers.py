"""How well a real model answers: by Trellis at each effort, by a plain retriever with the same model, over the gold."""

import asyncio
import hashlib
import json
import random
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.retrieval import floors
from benchmarks.runner import Cell, DataMissingError, Run, share
from benchmarks.sets import SETS, BenchmarkSet, index, read_rows, settings_in, write_rows
from flows.query import answer_question
from flows.question import AskOptions, retrieve_passages
from flows.runtime import open_runtime
from flows.session import Session, open_session
from storage.answer_records import Effort
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record
from tasks.evaluate.measures import holds, normalised, prediction, token_f1

ASKED = ("hotpot_train100", "2wiki_780", "musique_train100", "cmrc2018_zh")
EFFORTS: dict[str, Effort] = {"low": "low", "medium": "medium", "high": "high"}
# What a plain prompt is given: the passages that words and meaning find, those that Trellis finds, the gold ones.
PASSAGES = ("plain", "ours", "gold")
WAYS = (*PASSAGES, *EFFORTS)
TOP = 5
PLAIN = """Answer the question from the passages.
Answer in as few words as possible: a name, a number, a date, yes or no.

{passages}

Question: {question}
Answer:"""
MOST_TOKENS = 256


class Row(Record):
    """What one question got in one way."""

    set: str
    id: str
    way: str
    question: str
    gold: tuple[str, ...]
    answer: str
    said: str  # what is compared with the gold answer: bare values, else the text
    fallback: str = ""
    supported: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    seconds: float = 0.0
    error: str = ""


def measure_answers(run: Run) -> None:
    """Ask the questions of each set in each way; a table for each set."""
    if run.options.data is None:
        raise DataMissingError("The answers need the published data: --data DIR, or --parts steps.")
    for name in run.options.sets:
        known = SETS[name]
        folder = run.workspace(name)
        index(known.write(run.options.data, folder), settings_in(folder))
        questions = chosen(known, run)
        kept = folder / "answers.jsonl"
        before = {(row.id, row.way): row for row in _read(kept)} if kept.is_file() else {}
        for way in run.options.ways:
            for row in _rows(run, known, folder, way, questions, before):
                before[row.id, row.way] = row
                write_rows((one.model_dump() for one in before.values()), kept)
        asked = {question.id for question in questions}
        shown = [row for row in before.values() if row.id in asked and row.way in run.options.ways]
        run.table(
            f"{name}: {len(questions)} questions (seed {run.options.seed}), {run.options.model}",
            {way: figures([row for row in shown if row.way == way]) for way in run.options.ways},
        )
        run.show(f"{row.way:7}{row.id}: {row.question} | {row.gold} | {row.said!r:.200}" for row in shown)


def chosen(known: BenchmarkSet, run: Run) -> list[EvaluationQuestion]:
    """The questions that are asked, in the order that the seed gives."""
    questions = known.read_questions(run.options.data, None)
    return random.Random(run.options.seed).sample(questions, len(questions))[: run.limit]  # noqa: S311 -- a choice


def figures(rows: Sequence[Row]) -> dict[str, Cell]:
    """The figures of one way."""
    return {
        "n": len(rows),
        "EM": share([any(normalised(row.said) == normalised(gold) for gold in row.gold) for row in rows]),
        "F1": share([max((token_f1(row.said, gold) for gold in row.gold), default=0.0) for row in rows]),
        "contained": share([holds(f"{row.answer}\n{row.said}", row.gold) for row in rows]),
        "abstained": share([row.fallback == "abstained" for row in rows]),
        "failed": share([bool(row.error) for row in rows]),
        "supported": share([row.fallback == "none" for row in rows]),
        "calls": share([row.calls for row in rows]),
        "in": share([row.tokens_in for row in rows]),
        "out": share([row.tokens_out for row in rows]),
        "s": share([row.seconds for row in rows]),
    }


def _read(path: Path) -> Iterator[Row]:
    return (Row.model_validate(row) for row in read_rows(path))


def _rows(
    run: Run,
    known: BenchmarkSet,
    folder: Path,
    way: str,
    questions: Sequence[EvaluationQuestion],
    before: dict[tuple[str, str], Row],
) -> Iterator[Row]:
    options = run.options
    model = {} if way in PASSAGES else {
        "lm": f"openai/{options.model}", "lm_base_url": options.base_url, "lm_api_key": "none",
        "timeout": options.timeout, "concurrency": 1,
    }  # fmt: skip
    texts = {str(row["id"]): row for row in known.read(options.data).corpus or ()}
    plain = PlainModel(options.base_url, options.model, options.timeout, folder / "plain.jsonl")
    with open_session(open_runtime(settings_in(folder, **model))) as session:
        for question in questions:
            if way in PASSAGES:
                documents = asyncio.run(_documents(way, question, session))
                passages = [(str(texts[name].get("title", "")), str(texts[name]["text"])) for name in documents]
                row = plain.answered(known.name, way, question, passages)
            else:
                row = asyncio.run(_asked(known.name, EFFORTS[way], question, session))
            old = before.get((row.id, row.way))
            if old is not None and not row.tokens_in and (old.answer, old.error) == (row.answer, row.error):
                row = old  # every call came from the cache
            yield row


async def _documents(way: str, question: EvaluationQuestion, session: Session) -> Sequence[str]:
    if way == "gold":
        return question.gold_documents
    if way == "plain":
        return floors(question.question, TOP, session)["rrf"]
    found = await retrieve_passages(question.question, AskOptions(k=TOP), session)
    return list(dict.fromkeys(passage.document for passage in found.passages))[:TOP]


async def _asked(name: str, effort: Effort, question: EvaluationQuestion, session: Session) -> Row:
    started = time.monotonic()
    about = {"set": name, "id": question.id, "way": effort, "question": question.question, "gold": question.answers}
    try:
        answer = await answer_question(question.question, AskOptions(effort=effort), session)
    except Exception as error:  # noqa: BLE001 -- a question that fails is counted, the others go on
        return Row.model_validate(about | {"answer": "", "said": "", "error": str(error)[:500]})
    used = answer.usage
    return Row.model_validate(
        about | {
            "answer": answer.answer, "said": prediction(answer), "fallback": answer.fallback,
            "tokens_in": used.input_tokens, "tokens_out": used.output_tokens, "calls": used.calls,
            "seconds": time.monotonic() - started,
        }
    )  # fmt: skip


@dataclass
class PlainModel:
    """A model asked with one prompt, whose replies are kept in a file by what was asked."""

    base_url: str
    model: str
    timeout: float
    kept: Path

    def answered(self, name: str, way: str, question: EvaluationQuestion, passages: Sequence[tuple[str, str]]) -> Row:
        """The model's reply to the plain prompt over these passages, (title, text) each."""
        shown = "\n\n".join(f"{title}: {text}" if title else text for title, text in passages)
        reply = self.reply(PLAIN.format(passages=shown, question=question.question))
        text = str(reply["text"]).strip()
        return Row(
            set=name,
            id=question.id,
            way=way,
            question=question.question,
            gold=question.answers,
            answer=text,
            said=text,
            calls=1,
            tokens_in=int(str(reply["tokens_in"])),
            tokens_out=int(str(reply["tokens_out"])),
            seconds=float(str(reply["seconds"])),
        )

    def reply(self, prompt: str) -> dict[str, object]:
        """The reply to a prompt, from the file where it has been asked before."""
        key = hashlib.sha256(json.dumps([self.model, prompt]).encode()).hexdigest()
        rows = list(read_rows(self.kept)) if self.kept.is_file() else []
        if known := next((row for row in rows if row["key"] == key), None):
            return dict(known)
        body = {
            "model": self.model, "temperature": 0, "max_tokens": MOST_TOKENS,
            "messages": [{"role": "user", "content": prompt}],
        }  # fmt: skip
        request = urllib.request.Request(  # noqa: S310 -- the address is the user's
            f"{self.base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        started = time.monotonic()
        with urllib.request.urlopen(request, timeout=self.timeout) as response:  # noqa: S310
            data = json.load(response)
        used = data.get("usage") or {}
        row: dict[str, object] = {
            "key": key, "text": data["choices"][0]["message"]["content"] or "",
            "tokens_in": used.get("prompt_tokens", 0), "tokens_out": used.get("completion_tokens", 0),
            "seconds": time.monotonic() - started,
        }  # fmt: skip
        write_rows([*rows, row], self.kept)
        return row
