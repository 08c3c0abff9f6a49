"""The systems that an evaluation compares: parsed, checked, and opened to answer questions."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from flows.modes.registry import check_mode
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings, load_settings
from prompts.engine.embedding_api import ApiEmbedder
from prompts.engine.key_masking import mask_keys
from prompts.engine.providers import without_user
from storage.answer_records import Answer
from storage.errors import UsageError
from storage.evaluation_records import EvaluatedSystem, EvaluationQuestion
from storage.files import content_of_file
from storage.records import content_id
from storage.workspace_db import WorkspaceDatabase
from tasks.evaluate.measures import plain_answer
from tasks.rewrite import turns

FORM = (
    "mode=MODE, effort, structure, k, workspace, generation, any setting, or answers=FILE.jsonl; "
    "and a name"
)
_FIELDS = {"name", "mode", "effort", "structure", "k", "workspace", "generation"}


def system_of(given: EvaluatedSystem | str) -> EvaluatedSystem:
    """Return a system, parsed where it is text (see `parse_system`).

    Raises UsageError for a key or a password among its settings: they would be stored with it.
    """
    system = parse_system(given) if isinstance(given, str) else given
    for name, value in system.settings.items():
        field = Settings.model_fields.get(name)
        is_secret = field is not None and "SecretStr" in str(field.annotation)
        if is_secret or without_user(value) != value:
            raise UsageError(
                f"A system's {name} would be stored with it.", "Set the key in the environment."
            )
    return system


def parse_system(text: str) -> EvaluatedSystem:
    """Parse a system: `mode=mix,effort=high,name=deep`, `answers=theirs.jsonl,name=theirs`, or a
    mode alone.

    Names that are no field of a system are settings. Raises UsageError for what cannot be read.
    """
    fields: dict[str, object] = {}
    settings: dict[str, str] = {}
    for part in text.split(","):
        name, given, value = (word.strip() for word in part.partition("="))
        name, value = (name, value) if given else ("mode", name)
        if not value:
            raise UsageError(
                f"The system {text!r} has no value for {name!r}.", f"A system is {FORM}."
            )
        if name in {"answers", "recorded"}:
            fields["recorded"] = value
        elif name in _FIELDS:
            fields[name] = value
        else:
            settings[name] = value
    bare = [str(fields[name]) for name in fields if name in {"mode", "recorded"}]
    named = [
        f"{name}={value}"
        for name, value in (*fields.items(), *settings.items())
        if name not in {"mode", "recorded"}
    ]
    try:
        return EvaluatedSystem.model_validate(
            {"name": " ".join([*bare, *named]) or "auto", **fields, "settings": settings}
        )
    except ValidationError as error:
        raise UsageError(
            f"The system {text!r}: {_first_problem(error)}.", f"A system is {FORM}."
        ) from error


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


@dataclass(frozen=True)
class OpenSystem:
    """A system that can answer, with its generation and effort filled in; `identity` changes with
    everything that its answers depend on.
    """

    system: EvaluatedSystem
    identity: str
    answer: Callable[[EvaluationQuestion], Awaitable[Answer]]


@contextmanager
def open_systems(
    systems: Sequence[EvaluatedSystem], runtime: Runtime
) -> Iterator[list[OpenSystem]]:
    """Open the systems for the block, under the limits and the budget of the runtime's models.

    Systems that differ only in how they ask share one session. Memory is off unless a system's
    settings turn it on; then it is the system's own, so that none learns from another.

    Raises UsageError for a name that two have, SettingsError, NoGeneration, UnknownGeneration.
    """
    names = [system.name for system in systems]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"Two systems are called {min(twice)!r}.", "Give each a name of its own: name=…."
        )
    with ExitStack() as held:
        sessions: dict[str, tuple[Session, str]] = {}
        opened = []
        for system in systems:
            if system.recorded is not None:
                opened.append(_recorded(system, Path(system.recorded)))
                continue
            check_mode(system.mode)
            key = json.dumps([system.workspace, system.generation, system.settings], sort_keys=True)
            if key not in sessions or sessions[key][0].memory is not None:
                session = _open_session(system, runtime, held)
                sessions[key] = session, _state_of(session)
            opened.append(_asking(system, *sessions[key]))
        yield opened


def _open_session(system: EvaluatedSystem, runtime: Runtime, held: ExitStack) -> Session:
    """Open the generation of a system, with an empty memory where its settings turn that on."""
    session = held.enter_context(open_session(_runtime(system, runtime), system.generation))
    if session.runtime.settings.memory != "off":
        file = Path(held.enter_context(TemporaryDirectory())) / "memory.sqlite"
        session.memory = held.enter_context(closing(WorkspaceDatabase(file))).memory
    return session


def _runtime(system: EvaluatedSystem, runtime: Runtime) -> Runtime:
    workspace = Path(system.workspace) if system.workspace else runtime.settings.workspace
    own = open_runtime(
        load_settings({"memory": "off", **system.settings, "workspace": workspace}), reading=True
    )
    models, embedder = own.models.beside(runtime.models), own.embedder
    if isinstance(embedder, ApiEmbedder):
        embedder = embedder.within(runtime.models.spend_budget)
    return replace(own, models=models, embedder=embedder)


def _state_of(session: Session) -> str:
    """Return an id that changes with the generation, the settings, models and compiled steps."""
    runtime = session.runtime
    settings = runtime.settings
    parts = (
        str(settings.workspace.absolute()),
        session.number,
        settings.model_dump_json(exclude={"workspace"}),
        json.dumps(settings.compiled, sort_keys=True, default=str),
        runtime.embedder.name,
    )
    return content_id("ses", *map(str, parts))


def _asking(system: EvaluatedSystem, session: Session, state: str) -> OpenSystem:
    """Open a system that asks a session."""
    effort = system.effort or session.runtime.settings.effort
    asked = system.model_dump_json(include={"mode", "effort", "structure", "k"})

    async def ask(question: EvaluationQuestion) -> Answer:
        options = AskOptions(
            mode=system.mode,
            effort=system.effort,
            structure=system.structure,
            k=system.k,
            documents=question.documents,
            history=turns(question.history),
        )
        return await answer_question(question.question, options, session)

    return OpenSystem(
        system.model_copy(update={"generation": session.number, "effort": effort}),
        content_id("sys", state, asked),
        ask,
    )


# --- recorded answers ---


def _recorded(system: EvaluatedSystem, file: Path) -> OpenSystem:
    """Open a system whose answers stand in a file of rows {id, answer, values?, citations?,
    passages?, usage?, …}.
    """
    try:
        content = content_of_file(file)
        lines = mask_keys(content.decode("utf-8-sig")).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The answers in {file} cannot be read: {error}.", "Check answers=FILE."
        ) from error
    rows: dict[str, Mapping[str, object]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows[str(row["id"])] = row
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(
                f"{file}, line {number} is no row {{id, answer, …}}: {error!r}.", "Correct it."
            ) from error

    async def look_up(question: EvaluationQuestion) -> Answer:
        row = rows.get(question.id)
        if row is None or "answer" not in row:
            problem = row.get("error") if row else "no row has this id"
            raise UsageError(
                f"{file} has no answer to {question.id!r}: {problem}.",
                "Add it, or leave it failed.",
            )
        return _answer_of(question, row, file)

    return OpenSystem(system, content_id("sys", hashlib.sha256(content).hexdigest()), look_up)


# The fields that a recorded passage or citation may lack.
_PASSAGE: Mapping[str, object] = {"title": "", "chunk": "", "score": 0.0, "text": ""}
_CITATION: Mapping[str, object] = {
    "marker": "",
    "title": "",
    "chunk": "",
    "start": 0,
    "end": 0,
    "page": None,
    "quote": "",
    "verified": False,
}


def _answer_of(question: EvaluationQuestion, row: Mapping[str, object], file: Path) -> Answer:
    """Return a recorded answer with what its row holds; a passage may be a document id alone."""
    answer = plain_answer(question.question, str(row["answer"]), ())
    known = {
        name: row[name]
        for name in Answer.model_fields
        if row.get(name) is not None and name != "question"
    }
    known["passages"] = [
        {**_PASSAGE, **(part if isinstance(part, Mapping) else {"document": part})}
        for part in _parts(row, "passages")
    ]
    known["citations"] = [
        {**_CITATION, **part} for part in _parts(row, "citations") if isinstance(part, Mapping)
    ]
    try:
        return Answer.model_validate(answer.model_dump() | known, extra="ignore")
    except ValidationError as error:
        raise UsageError(
            f"{file}, row {question.id!r}: {_first_problem(error)}.",
            "Correct it, or leave it out.",
        ) from error


def _parts(row: Mapping[str, object], name: str) -> list[object]:
    parts = row.get(name)
    return parts if isinstance(parts, list) else []
