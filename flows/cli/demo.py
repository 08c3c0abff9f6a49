"""`trellis demo`: index the sample corpus and ask questions, without a model and with one."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
from pydantic import SecretStr

import flows
from flows.answer_page import source_place, support_in_words
from flows.cli.common import COMMON, Common
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
# What is asked, and what it shows.
STORY = (
    ("When was Gullstone Brewery founded?", "A fact: the best sentence.", AskOptions()),
    ("Where was Ilse Marrand born?", "Another one.", AskOptions()),
    ("海岸水文研究所是谁创立的?", "One in Chinese.", AskOptions()),
    (
        "Who founded Marrand & Oke?",
        "A look-up of relations that were imported, so this is an answer.",
        AskOptions(mode="traverse"),
    ),
    (
        "What lasting effects of the Great Surge do the documents describe?",
        "About the whole collection: what the reports quote.",
        AskOptions(),
    ),
    ("How do volcanoes form?", "Not in the documents.", AskOptions()),
)
# A model answers only these: on a laptop each takes up to a minute.
ASKED_OF_A_MODEL = tuple(question for question, _, _ in STORY[:3])
SHOWN_LINES = 2  # of an answer
LONGEST_LINE = 240  # characters
# The default addresses of Ollama and of llama.cpp's server.
LOCAL_SERVERS = {"Ollama": "http://127.0.0.1:11434/v1", "llama.cpp": "http://127.0.0.1:8080/v1"}
LOOK = 0.5  # seconds for a local server to list its models
NEXT = """
Next
  trellis serve --no-prefect --workspace {0}     the same in a browser
  trellis ask "Which bridges did Ilse Marrand design?" --workspace {0}
  trellis index YOUR-FOLDER                               then ask without --workspace
  TRELLIS_LM=ollama/qwen3 trellis ask "…"                 with a model: docs/models.md"""


@command
def demo(*, common: Common = COMMON) -> None:
    """Index the sample documents and ask about them without a model; if the settings or a local
    server have one, it answers too.
    """
    screen = common.screen
    workspace = common.workspace or WORKSPACE
    settings = load_settings({"workspace": workspace})
    offline = settings.model_copy(update={"lm": OFFLINE, "roles": {}})
    samples = sample_folder()
    screen.note(f"Indexing the sample documents into {workspace}, without a model or a network.")
    with screen.progress() as progress:
        runtime = open_runtime(offline, progress)
        report = asyncio.run(index_documents([samples / "corpus"], IndexOptions(), runtime))
    documents = report.documents.added + report.documents.changed + report.documents.unchanged
    screen.note(
        f"{documents} documents: {report.chunks} passages, {report.entities} names, "
        f"{report.relations} relations, {report.reports} reports."
    )
    answers = [
        _answer(question, options, runtime, shows, screen) for question, shows, options in STORY
    ]
    by_model = []
    if (at_hand := model_at_hand(settings)) is not None:
        model, where = at_hand
        screen.note(f"The same with a model: {where} reads the passages that were found.")
        only_answers = {"lm": OFFLINE, "roles": {"answer": model}, "effort": "low"}
        asking = open_runtime(settings.model_copy(update=only_answers), reading=True)
        by_model = [
            _answer(question, AskOptions(), asking, f"Answered by {where}.", screen)
            for question in ASKED_OF_A_MODEL
        ]
    result = {"index": report, "answers": answers, "by_model": by_model}
    screen.result(result, lambda: screen.exactly(f"{NEXT.format(workspace)}\n"))


def _answer(
    question: str, options: AskOptions, runtime: Runtime, shows: str, screen: Screen
) -> Answer:
    with open_session(runtime) as session:
        answer = asyncio.run(answer_question(question, options, session))
    if not screen.as_json:
        screen.line()
        screen.line(f"? {answer.question}", style="bold cyan")
        screen.line(shows, style="dim")
        lines = [line.removeprefix("> ") for line in answer.answer.splitlines()]
        if answer.trace.answered_by == "excerpts" and any(answer.citations):
            lines = [citation.quote for citation in answer.citations[:1]]
        for line in [line for line in lines if line.strip()][:SHOWN_LINES]:
            screen.line(f"  {_shortened(line)}")
        for citation in answer.citations[:1]:
            screen.line(f"  {source_place(citation)}", style="dim")
        if answer.fallback != "abstained":
            style = "green" if answer.fallback == "none" else "dim"
            screen.line(f"  {support_in_words(answer)}", style=style)
    return answer


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"


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
