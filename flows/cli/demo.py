"""`trellis demo`: the sample corpus, indexed and asked without a model, and beside it with one that is at hand."""

import asyncio
import json
from argparse import Namespace
from pathlib import Path

import httpx
from pydantic import SecretStr

import flows
from flows.cli.ask import show_answer
from flows.cli.index import show_report
from flows.cli.screen import Screen
from flows.index import IndexOptions, index_documents
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import RoleSettings, Settings, load_settings
from prompts.engine.models import OFFLINE
from storage.answer_records import Answer
from storage.errors import UsageError

WORKSPACE = ".trellis-demo"
QUESTIONS = ("questions.jsonl", "questions_global.jsonl")
SHOWN_SOURCES = 4  # as many as an answer of excerpts has
# Of each kind a question, by its id in the examples or in words.
FAMILIES = (
    ("one fact", "q01", AskOptions()),
    ("figures of several documents", "q02", AskOptions()),
    ("a chain over three documents", "q03", AskOptions()),
    ("steps to follow", "q04", AskOptions()),
    ("an overview of one document", "q05", AskOptions()),
    ("the whole collection", "g02", AskOptions()),
    ("how two things are connected", "q09", AskOptions()),
    ("the graph alone", "What did Ilse Marrand design?", AskOptions(mode="traverse")),
    ("a follow-up", "Where was she born?", AskOptions(history=("Which bridges did Ilse Marrand design?",))),
    ("in Chinese", "q12", AskOptions()),
    ("what no document speaks of", "q11", AskOptions()),
)
# The questions that a model at hand answers, too: on a laptop each takes it up to a minute.
ASKED_OF_A_MODEL = ("q01", "q03", "q12")
# Where Ollama and llama.cpp's server listen unless they are told otherwise.
LOCAL_SERVERS = {"Ollama": "http://127.0.0.1:11434/v1", "llama.cpp": "http://127.0.0.1:8080/v1"}
LOOK = 0.5  # seconds for a server on this machine to say which models it has
NEXT = (
    "", "Try next",
    '  trellis ask "Which bridges did Ilse Marrand design?"{}',
    '  trellis graph "Ilse Marrand"{}',
    "  trellis show people/ilse-marrand.md{}",
    "  trellis reports --level 0{}",
    "  trellis index YOUR-FOLDER    (then ask without --workspace)",
)  # fmt: skip


def demo(options: Namespace, screen: Screen) -> None:
    """Index the sample corpus into a workspace of its own, ask a question of each family, and say what to try next.

    Nothing of this asks a model. Where one is set, or a server on this machine has one, it answers some of the
    questions once more.
    """
    options.workspace = options.workspace or WORKSPACE
    settings = load_settings({"workspace": options.workspace})
    plain = settings.model_copy(update={"lm": OFFLINE, "roles": {}})
    samples = sample_folder()
    screen.note(f"Indexing the sample corpus into {options.workspace}: no model, no network.")
    with screen.progress() as progress:
        runtime = open_runtime(plain, progress)
        report = asyncio.run(index_documents([samples / "corpus"], IndexOptions(), runtime))
    if not screen.as_json:
        show_report(report, screen)
    lines = [line for name in QUESTIONS for line in (samples / name).read_text(encoding="utf-8").splitlines()]
    questions = {row["id"]: str(row["question"]) for row in map(json.loads, lines)}
    answers = []
    for family, question, wanted in FAMILIES:
        with open_session(runtime) as session:
            answers.append(asyncio.run(answer_question(questions.get(question, question), wanted, session)))
        _show(answers[-1], family, wanted, screen)
    by_model = _asked_of_a_model(settings, questions, screen)
    result = {
        "index": report.model_dump(),
        "answers": [answer.model_dump() for answer in answers],
        "by_model": [answer.model_dump() for answer in by_model],
    }
    screen.result(
        result, lambda: screen.rows([line.format(f" --workspace {options.workspace}") for line in NEXT], None)
    )


def _asked_of_a_model(settings: Settings, questions: dict[str, str], screen: Screen) -> list[Answer]:
    """The answers of the model at hand; none where there is no model."""
    found = model_at_hand(settings)
    if found is None:
        return []
    model, where = found
    asked = settings.model_copy(update={"lm": OFFLINE, "roles": {"answer": model}, "effort": "low"})
    screen.note(f"{where} answers {len(ASKED_OF_A_MODEL)} of these questions from the same passages.")
    answers = []
    for name in ASKED_OF_A_MODEL:
        with open_session(open_runtime(asked, reading=True)) as session:
            answers.append(asyncio.run(answer_question(questions[name], AskOptions(), session)))
        _show(answers[-1], f"answered by {where}", AskOptions(), screen)
    return answers


def model_at_hand(settings: Settings) -> tuple[RoleSettings, str] | None:
    """The model that is set for answers, or the first one of a server on this machine, with its name for people."""
    if (choice := settings.model_choices()["answer"]) is not None:
        own = RoleSettings(
            model=choice.name, base_url=choice.base_url, api_key=SecretStr(choice.api_key) if choice.api_key else None
        )
        return own, choice.name
    for server, address in LOCAL_SERVERS.items():
        try:
            listed = httpx.get(f"{address}/models", timeout=LOOK, trust_env=False)
            names = [str(model["id"]) for model in listed.json()["data"]]
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            continue  # nothing listens there, or another program
        if name := next((name for name in names if "embed" not in name.lower()), ""):
            return RoleSettings(
                model=f"openai/{name}", base_url=address, api_key=SecretStr("none")
            ), f"{name} ({server})"
    return None


def _show(answer: Answer, family: str, wanted: AskOptions, screen: Screen) -> None:
    if screen.as_json:
        return
    screen.line()
    screen.line(f"? {answer.question}", style="bold cyan")
    after = f" · after: {' '.join(wanted.history)}" if wanted.history else ""
    screen.line(f"{family}{after}", style="dim")
    show_answer(answer, screen, most_sources=SHOWN_SOURCES)


def sample_folder() -> Path:
    """Where the sample corpus is: in a checkout, or in the installed package."""
    package = Path(flows.__file__).resolve().parent
    for folder in (package.parent / "examples", package / "_examples"):
        if (folder / "corpus").is_dir():
            return folder
    raise UsageError("The sample corpus is missing.", "Install trellis-rag again, or run from a whole checkout.")
