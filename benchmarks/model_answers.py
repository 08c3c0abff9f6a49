"""How well a real model answers: by Trellis at each effort, by a plain retriever with the same
model, over the gold.
"""

import asyncio
import hashlib
import json
import random
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kept_rows import replace_rows
from benchmarks.retrieval import floors
from benchmarks.rows import read_passages
from benchmarks.runner import Cell, DataMissingError, Run, share
from benchmarks.sets import SETS, BenchmarkSet, index, read_rows, settings_in
from flows.query import answer_question, retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from storage.answer_records import Effort
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record
from tasks.evaluate.measures import holds, normalised, prediction, token_f1

ASKED = ("hotpot_train100", "2wiki_train100", "musique_train100", "cmrc2018_zh")
EFFORTS: dict[str, Effort] = {"low": "low", "medium": "medium", "high": "high"}
# What a plain prompt is given: the passages that words and meaning find, those that Trellis finds,
# the gold ones.
PASSAGES = ("plain", "ours", "gold")
WAYS = (*PASSAGES, *EFFORTS)
TOP = 5
# Of three such prompts the one that the 1.5 billion parameters of a Qwen2.5 answered best by
# (docs/experiments.md).
PLAIN = """Answer the question using the passages. Reply with the answer only, as short as possible.

{passages}

Question: {question}
Answer:"""
MOST_TOKENS = 256
# How models write that they do not know.
UNKNOWN = (
    "unknown",
    "not mentioned",
    "not stated",
    "not specified",
    "not provided",
    "do not say",
    "does not say",
    "no information",
    "cannot be determined",
    "未知",
    "不知道",
    "没有提到",
    "未提到",
    "未提及",
    "没有提及",
    "无法",
)


class AnswerRow(Record):
    """What one question got in one way; `model` is empty in rows of earlier versions."""

    model: str = ""
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


@dataclass(frozen=True)
class AskedSet:
    """A set that is asked: its index's folder, its passages by id, the file of its rows, and the
    plain prompt.
    """

    name: str
    folder: Path
    texts: Mapping[str, tuple[str, str]]
    kept: str = "answers.jsonl"
    prompt: str = PLAIN

    @classmethod
    def of(cls, known: BenchmarkSet, data: Path, folder: Path) -> "AskedSet":
        """A published set that is indexed in the folder."""
        rows = read_passages(data / known.corpus)[: known.first]
        texts = {str(row["id"]): (str(row.get("title", "")), str(row["text"])) for row in rows}
        return cls(known.name, folder, texts)


def measure_answers(run: Run, model: str) -> None:
    """Ask the questions of each set in each way; a table for each set."""
    run.need(*(name for known in run.options.question_sets for name in SETS[known].files))
    for name in run.options.question_sets:
        known = SETS[name]
        folder = run.workspace(name)
        index(known.write(run.options.data, folder), settings_in(folder))
        questions = chosen(known, run)
        asked = AskedSet.of(known, run.options.data, folder)
        rows = {way: rows_of(run, asked, way, questions) for way in run.options.ways}
        run.table(
            f"{name}: {len(questions)} questions (seed {run.options.seed}), {model}",
            {way: figures(own) for way, own in rows.items()},
        )
        for own in rows.values():
            run.show(
                f"{row.way:7}{row.id}: {row.question} | {row.gold} | {row.said!r:.200}"
                for row in own
            )


def chosen(known: BenchmarkSet, run: Run) -> list[EvaluationQuestion]:
    """The questions that are asked, in the order that the seed gives."""
    questions = known.read_questions(run.options.data, None)
    if not any(question.answers for question in questions):
        raise DataMissingError(f"The questions of {known.name} have no answers.")
    # A choice.
    return random.Random(run.options.seed).sample(questions, len(questions))[: run.limit]  # noqa: S311


def is_unknown(answer: str) -> bool:
    """Whether a plain answer says that the passages do not tell."""
    said = answer.casefold()
    return not said or any(words in said for words in UNKNOWN)


def figures(rows: Sequence[AnswerRow]) -> dict[str, Cell]:
    """The figures of one way."""
    return {
        "n": len(rows),
        "EM": share(
            [any(normalised(row.said) == normalised(gold) for gold in row.gold) for row in rows]
        ),
        "F1": share(
            [max((token_f1(row.said, gold) for gold in row.gold), default=0.0) for row in rows]
        ),
        "contained": share([holds(f"{row.answer}\n{row.said}", row.gold) for row in rows]),
        "abstained": share([row.fallback == "abstained" for row in rows]),
        "failed": share([bool(row.error) for row in rows]),
        "supported": share([row.fallback == "none" for row in rows]),
        "calls": share([row.calls for row in rows]),
        "in": share([row.tokens_in for row in rows]),
        "out": share([row.tokens_out for row in rows]),
        "s": share([row.seconds for row in rows]),
    }


def rows_of(
    run: Run, asked: AskedSet, way: str, questions: Sequence[EvaluationQuestion]
) -> list[AnswerRow]:
    """What the questions get in one way; each row is kept as soon as it is there."""
    options, path = run.options, asked.folder / asked.kept
    helpers = None if way in PASSAGES else run.options.helpers
    shown = f"{way} + {', '.join(helpers)}" if helpers else way
    known = _read(path, options.model) if path.is_file() else {}
    model = (
        {}
        if way in PASSAGES
        else {
            "lm": f"openai/{options.model}",
            "lm_base_url": options.base_url,
            "lm_api_key": "none",
            "timeout": options.timeout,
            "concurrency": 1,
            "profile": options.profile,
            "helper_steps": helpers,
        }
    )
    plain = PlainModel(
        options.base_url, options.model, options.timeout, asked.folder / "plain.jsonl", asked.prompt
    )
    rows = []
    with open_session(open_runtime(settings_in(asked.folder, **model))) as session:
        for question in questions:
            if way in PASSAGES:
                documents = asyncio.run(_documents(way, question, session))
                row = plain.answered(
                    asked.name, way, question, [asked.texts[name] for name in documents]
                )
            else:
                row = asyncio.run(_asked(asked.name, EFFORTS[way], question, session))
            row = row.model_copy(update={"model": options.model, "way": shown})
            old = known.get((options.model, row.id, row.way))
            if (
                old is not None
                and not row.tokens_in
                and (old.answer, old.error) == (row.answer, row.error)
            ):
                row = old  # every call came from the cache
            known[options.model, row.id, row.way] = row
            replace_rows((one.model_dump() for one in known.values()), path)
            rows.append(row)
    return rows


def _read(path: Path, model: str) -> dict[tuple[str, str, str], AnswerRow]:
    """The rows of a file by model, question and way; those that name no model are taken for this
    one's.
    """
    rows = [
        AnswerRow.model_validate({**row, "model": row.get("model") or model})
        for row in read_rows(path)
    ]
    return {(row.model, row.id, row.way): row for row in rows}


async def _documents(way: str, question: EvaluationQuestion, session: Session) -> Sequence[str]:
    if way == "gold":
        return question.gold_documents
    if way == "plain":
        return floors(question.question, TOP, session)["rrf"]
    found = await retrieve_passages(question.question, AskOptions(k=TOP), session)
    return list(dict.fromkeys(passage.document for passage in found.passages))[:TOP]


async def _asked(
    name: str, effort: Effort, question: EvaluationQuestion, session: Session
) -> AnswerRow:
    started = time.monotonic()
    about = {
        "set": name,
        "id": question.id,
        "way": effort,
        "question": question.question,
        "gold": question.answers,
    }
    try:
        answer = await answer_question(question.question, AskOptions(effort=effort), session)
    except Exception as error:  # noqa: BLE001 -- a question that fails is counted, the others go on
        return AnswerRow.model_validate(
            about | {"answer": "", "said": "", "error": str(error)[:500]}
        )
    used = answer.usage
    return AnswerRow.model_validate(
        about
        | {
            "answer": answer.answer,
            "said": prediction(answer),
            "fallback": answer.fallback,
            "tokens_in": used.input_tokens,
            "tokens_out": used.output_tokens,
            "calls": used.calls,
            "seconds": time.monotonic() - started,
        }
    )


@dataclass
class PlainModel:
    """A model asked with one prompt, whose replies are kept in a file by what was asked."""

    base_url: str
    model: str
    timeout: float
    kept: Path
    prompt: str = PLAIN

    def answered(
        self, name: str, way: str, question: EvaluationQuestion, passages: Sequence[tuple[str, str]]
    ) -> AnswerRow:
        """The model's reply to the plain prompt over these passages, (title, text) each."""
        shown = "\n\n".join(f"{title}: {text}" if title else text for title, text in passages)
        about = {
            "set": name,
            "id": question.id,
            "way": way,
            "question": question.question,
            "gold": question.answers,
        }
        try:
            reply = self.reply(self.prompt.format(passages=shown, question=question.question))
        except (OSError, ValueError, LookupError) as error:  # no server, or no answer of a model
            return AnswerRow.model_validate(
                about | {"answer": "", "said": "", "error": str(error)[:500]}
            )
        text = str(reply["text"]).strip()
        return AnswerRow.model_validate(
            about
            | {
                "answer": text,
                "said": text,
                "fallback": "abstained" if is_unknown(text) else "",
                "calls": 1,
                "tokens_in": reply["tokens_in"],
                "tokens_out": reply["tokens_out"],
                "seconds": reply["seconds"],
            }
        )

    def reply(self, prompt: str) -> dict[str, object]:
        """The reply to a prompt, from the file where it has been asked before."""
        key = hashlib.sha256(json.dumps([self.model, prompt]).encode()).hexdigest()
        rows = list(read_rows(self.kept)) if self.kept.is_file() else []
        if known := next((row for row in rows if row["key"] == key), None):
            return dict(known)
        body = {
            "model": self.model,
            "temperature": 0,
            "max_tokens": MOST_TOKENS,
            "messages": [{"role": "user", "content": prompt}],
        }
        request = urllib.request.Request(  # noqa: S310 -- the address is the user's
            f"{self.base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        started = time.monotonic()
        with urllib.request.urlopen(request, timeout=self.timeout) as response:  # noqa: S310
            data = json.load(response)
        used = data.get("usage") or {}
        row: dict[str, object] = {
            "key": key,
            "text": data["choices"][0]["message"]["content"] or "",
            "tokens_in": used.get("prompt_tokens", 0),
            "tokens_out": used.get("completion_tokens", 0),
            "seconds": time.monotonic() - started,
        }
        replace_rows([*rows, row], self.kept)
        return row
