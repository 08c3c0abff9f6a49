"""`trellis demo`: index the sample corpus and ask questions, without a model and with one."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx
from pydantic import SecretStr

import flows
from flows.cli.ask import show_answer
from flows.cli.common import COMMON, Common
from flows.cli.index import show_report
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.index import IndexOptions, index_documents
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.setting_areas import RoleSettings
from flows.settings import Settings, load_settings
from prompts.engine.models import OFFLINE
from storage.answer_records import Answer
from storage.errors import UsageError

WORKSPACE = ".trellis-demo"
QUESTION_FILES = ("questions.jsonl", "questions_global.jsonl")
SHOWN_SOURCES = 4  # as many as an answer of excerpts has
# A question of each kind, by its id in the examples or in words.
FAMILIES = (
    ("one fact", "q01", AskOptions()),
    ("figures of several documents", "q02", AskOptions()),
    ("a chain over three documents", "q03", AskOptions()),
    ("steps to follow", "q04", AskOptions()),
    ("an overview of one document", "q05", AskOptions()),
    ("the whole collection", "g02", AskOptions()),
    ("how two things are connected", "q09", AskOptions()),
    ("the graph alone", "What did Ilse Marrand design?", AskOptions(mode="traverse")),
    (
        "a follow-up",
        "Where was she born?",
        AskOptions(history=("Which bridges did Ilse Marrand design?",)),
    ),
    ("in Chinese", "q12", AskOptions()),
)
# A model answers only these: on a laptop each takes up to a minute.
ASKED_OF_A_MODEL = ("q01", "q03", "q12")
# The default addresses of Ollama and of llama.cpp's server.
LOCAL_SERVERS = {"Ollama": "http://127.0.0.1:11434/v1", "llama.cpp": "http://127.0.0.1:8080/v1"}
LOOK = 0.5  # seconds for a local server to list its models
NEXT = """
Try next
  trellis ask "Which bridges did Ilse Marrand design?" --workspace {0}
  trellis graph "Ilse Marrand" --workspace {0}
  trellis show people/ilse-marrand.md --workspace {0}
  trellis reports --level 0 --workspace {0}
  trellis index YOUR-FOLDER    (then ask without --workspace)"""


@command
def demo(*, common: Common = COMMON) -> None:
    """Index the sample corpus, ask a question of each kind without a model, and say what to try
    next. If the settings or a local server have a model, it answers some questions again.
    """
    screen = common.screen
    workspace = common.workspace or WORKSPACE
    settings = load_settings({"workspace": workspace})
    offline = settings.model_copy(update={"lm": OFFLINE, "roles": {}})
    samples = sample_folder()
    screen.note(f"Indexing the sample corpus into {workspace}: no model, no network.")
    with screen.progress() as progress:
        runtime = open_runtime(offline, progress)
        report = asyncio.run(index_documents([samples / "corpus"], IndexOptions(), runtime))
    if not screen.as_json:
        show_report(report, screen)
    questions = _sample_questions(samples)
    answers = [
        _answer(questions.get(name, name), options, runtime, family, screen)
        for family, name, options in FAMILIES
    ]
    by_model = []
    if (found := model_at_hand(settings)) is not None:
        model, where = found
        number = len(ASKED_OF_A_MODEL)
        screen.note(f"{where} answers {number} of these questions from the same passages.")
        only_answers = {"lm": OFFLINE, "roles": {"answer": model}, "effort": "low"}
        asking = open_runtime(settings.model_copy(update=only_answers), reading=True)
        by_model = [
            _answer(questions[name], AskOptions(), asking, f"answered by {where}", screen)
            for name in ASKED_OF_A_MODEL
        ]
    result = {"index": report, "answers": answers, "by_model": by_model}
    screen.result(result, lambda: screen.exactly(f"{NEXT.format(workspace)}\n"))


def _answer(
    question: str, options: AskOptions, runtime: Runtime, title: str, screen: Screen
) -> Answer:
    with open_session(runtime) as session:
        answer = asyncio.run(answer_question(question, options, session))
    if not screen.as_json:
        screen.line()
        screen.line(f"? {answer.question}", style="bold cyan")
        after = f" · after: {' '.join(options.history)}" if options.history else ""
        screen.line(f"{title}{after}", style="dim")
        show_answer(answer, screen, most_lines=SHOWN_SOURCES)
    return answer


def model_at_hand(
    settings: Settings, servers: Mapping[str, str] = LOCAL_SERVERS
) -> tuple[RoleSettings, str] | None:
    """Return the model of the settings, or the first of a local server, and its name."""
    if (choice := settings.model_choices()["answer"]) is not None:
        key = SecretStr(choice.api_key) if choice.api_key else None
        model = RoleSettings(model=choice.name, base_url=choice.base_url, api_key=key)
        return model, choice.name
    for server, address in servers.items():
        try:
            listed = httpx.get(f"{address}/models", timeout=LOOK, trust_env=False)
            names = [str(model["id"]) for model in listed.json()["data"]]
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            continue  # nothing listens there, or a different program
        if name := next((name for name in names if "embed" not in name.lower()), ""):
            key = SecretStr("none")
            model = RoleSettings(model=f"openai/{name}", base_url=address, api_key=key)
            return model, f"{name} ({server})"
    return None


def sample_folder() -> Path:
    """Find the sample corpus in a checkout or in the installed package. Raises UsageError."""
    package = Path(flows.__file__).resolve().parent
    for folder in (package.parent / "examples", package / "_examples"):
        if (folder / "corpus").is_dir():
            return folder
    raise UsageError(
        "The sample corpus is missing.", "Install trellis-rag again, or run from a whole checkout."
    )


def _sample_questions(samples: Path) -> dict[str, str]:
    texts = [(samples / name).read_text(encoding="utf-8") for name in QUESTION_FILES]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    return {row["id"]: str(row["question"]) for row in rows}
