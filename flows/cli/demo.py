"""`trellis demo`: what does Trellis do, shown on a small corpus that is made up?"""

import asyncio
import json
from argparse import Namespace
from pathlib import Path

import flows
from flows.cli import ask, build
from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.runtime import Runtime
from storage.errors import UsageError
from storage.records import Answer, IndexReport

WORKSPACE = ".trellis-demo"
# One plain fact, one chain over several documents, one in Chinese.
ASKED = ("q01", "q03", "q12")


def demo(options: Namespace, screen: Screen) -> int:
    """Index the sample corpus into a workspace of its own, ask three questions, and say what to try next."""
    options.workspace = options.workspace or WORKSPACE
    samples = sample_folder()
    if not screen.as_json:
        screen.line(f"Indexing the sample corpus into {options.workspace}: no model, no network.")
    with screen.progress() as progress:
        runtime = runtime_of(options, progress)
        report = asyncio.run(_index(samples / "corpus", runtime))
    if not screen.as_json:
        build.show(report, screen)
    answers = []
    for question in _questions(samples):
        if not screen.as_json:
            screen.line()
            screen.line(f"? {question}", style="bold cyan")
        answers.append(asyncio.run(_answer(question, runtime)))
        if not screen.as_json:
            ask.show(answers[-1], screen)
    if screen.as_json:
        screen.json({"index": report.model_dump(), "answers": [answer.model_dump() for answer in answers]})
    else:
        _next(answers, options.workspace, screen)
    return 0


def sample_folder() -> Path:
    """Where the sample corpus is: in a checkout, or in the installed package."""
    package = Path(flows.__file__).resolve().parent
    for folder in (package.parent / "examples", package / "_examples"):
        if (folder / "corpus").is_dir():
            return folder
    raise UsageError("The sample corpus is missing.", "Install trellis-rag again, or run from a whole checkout.")


async def _index(corpus: Path, runtime: Runtime) -> IndexReport:
    from flows.history import index_run
    from flows.indexing import IndexOptions

    return await index_run([corpus], IndexOptions(), runtime)


async def _answer(question: str, runtime: Runtime) -> Answer:
    from flows.asking import AskOptions, answer_question
    from flows.session import open_session

    with open_session(runtime) as session:
        return await answer_question(question, AskOptions(), session)


def _questions(samples: Path) -> list[str]:
    lines = (samples / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["id"]: str(row["question"]) for row in map(json.loads, lines)}
    return [rows[name] for name in ASKED]


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
