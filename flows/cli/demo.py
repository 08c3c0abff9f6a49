"""`trellis demo`: what does Trellis do, shown on a small corpus that is made up?"""

import asyncio
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import flows
from flows.cli import ask, build
from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.runtime import Runtime
from storage.errors import UsageError
from storage.records import Answer, IndexReport, Mode

WORKSPACE = ".trellis-demo"
QUESTIONS = ("questions.jsonl", "questions_global.jsonl")
SHOWN_SOURCES = 3


@dataclass(frozen=True)
class Family:
    """A kind of question: what it is, and one of it, by its id in the examples or in words."""

    name: str
    question: str
    mode: Mode = "auto"
    history: tuple[str, ...] = ()


FAMILIES = (
    Family("one fact", "q01"),
    Family("figures of several documents", "q02"),
    Family("a chain over three documents", "q03"),
    Family("steps to follow", "q04"),
    Family("an overview of one document", "q05"),
    Family("the whole collection", "g02"),
    Family("how two things are connected", "q09"),
    Family("the graph alone", "q08", mode="traverse"),
    Family("a follow-up", "Where was she born?", history=("Which bridges did Ilse Marrand design?",)),
    Family("in Chinese", "q12"),
    Family("what the documents do not say", "q11"),
)


def demo(options: Namespace, screen: Screen) -> int:
    """Index the sample corpus into a workspace of its own, ask a question of each family, and say what to try next."""
    options.workspace = options.workspace or WORKSPACE
    samples = sample_folder()
    if not screen.as_json:
        screen.line(f"Indexing the sample corpus into {options.workspace}: no model, no network.")
    with screen.progress() as progress:
        runtime = runtime_of(options, progress)
        report = asyncio.run(_index(samples / "corpus", runtime))
    if not screen.as_json:
        build.show(report, screen)
    answers = _answers(FAMILIES, _questions(samples), runtime, screen)
    if screen.as_json:
        screen.json({"index": report.model_dump(), "answers": [answer.model_dump() for answer in answers]})
    else:
        _next(answers, options.workspace, screen)
    return 0


def _answers(families: Sequence[Family], questions: dict[str, str], runtime: Runtime, screen: Screen) -> list[Answer]:
    """The answers, each shown as it comes."""
    answers = []
    for family in families:
        question = questions.get(family.question, family.question)
        if not screen.as_json:
            screen.line()
            screen.line(f"? {question}", style="bold cyan")
            asked = f"after: {' '.join(family.history)}" if family.history else ""
            mode = f"--mode {family.mode}" if family.mode != "auto" else ""
            screen.line(" · ".join(part for part in (family.name, asked, mode) if part), style="dim")
        answers.append(asyncio.run(_answer(question, family, runtime)))
        if not screen.as_json:
            ask.show(answers[-1], screen, most_sources=SHOWN_SOURCES)
    return answers


def sample_folder() -> Path:
    """Where the sample corpus is: in a checkout, or in the installed package."""
    package = Path(flows.__file__).resolve().parent
    for folder in (package.parent / "examples", package / "_examples"):
        if (folder / "corpus").is_dir():
            return folder
    raise UsageError("The sample corpus is missing.", "Install trellis-rag again, or run from a whole checkout.")


async def _index(corpus: Path, runtime: Runtime) -> IndexReport:
    from flows.indexing import IndexOptions
    from flows.operations.history import index_run

    return await index_run([corpus], IndexOptions(), runtime)


async def _answer(question: str, family: Family, runtime: Runtime) -> Answer:
    from flows.asking import AskOptions, answer_question
    from flows.session import open_session

    with open_session(runtime) as session:
        return await answer_question(question, AskOptions(mode=family.mode, history=family.history), session)


def _questions(samples: Path) -> dict[str, str]:
    lines = [line for name in QUESTIONS for line in (samples / name).read_text(encoding="utf-8").splitlines()]
    return {row["id"]: str(row["question"]) for row in map(json.loads, lines)}


def _next(answers: list[Answer], workspace: str, screen: Screen) -> None:
    cited = next((one.citations[0].document for one in answers if one.citations), "people/ilse-marrand.md")
    place = f" --workspace {workspace}"
    screen.line()
    screen.line("Try next", style="bold")
    for command in (
        f'trellis ask "Which bridges did Ilse Marrand design?"{place}',
        f'trellis graph "Ilse Marrand"{place}',
        f"trellis show {cited}{place}",
        f"trellis reports --level 0{place}",
        "trellis index YOUR-FOLDER    (then ask without --workspace)",
    ):
        screen.line(command, indent=2)
