"""No configured key leaves the process, whatever a server says of it."""

import base64
import gzip
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import duckdb
import pytest
from prefect.logging.handlers import APILogHandler

from flows.evaluate import evaluate
from flows.index import index
from flows.query import query
from flows.train import TrainOptions, train
from prompts.engine.key_masking import MASK
from tests.flows.conftest import Command
from tests.flows.recorder import end_of
from tests.server.client import Server
from tests.workspaces import write_rows

KEY = "sk-Never/To+Be-Shown-0815"
PASSWORD = "Quite-Long-4711"
ADDRESS = f"http://me:{PASSWORD}@127.0.0.1:9/v1"
ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
FORMS = (KEY, KEY.replace("/", "\\/"), quote(KEY, safe=""), ESCAPED, PASSWORD, BASIC.rstrip("="))
CODED = tuple(
    base64.b64encode(text.encode()).decode().rstrip("=")
    for text in (KEY, f"Bearer {KEY}", f":{KEY}")
)
SAYS = f"your key is Bearer {' and '.join(FORMS)}."
QUESTION = "Where was Tomas Reyd born?"

# What the server says instead of the answer, or in addition to it.
ANSWERS: tuple[Mapping[str, object], ...] = ({"kind": "says_only"}, {"kind": "says_too"})
ERRORS: tuple[Mapping[str, object], ...] = (
    {"kind": "unauthorized"},
    {"kind": "no_model"},
    {"kind": "quota"},
    {"kind": "rate_limit", "retry_after": "0"},
    {"kind": "server_error", "status": 400},
    {"kind": "server_error", "status": 503},
    {"kind": "error_in_success"},
    {"kind": "overflow_openai"},
)


def named(rule: Mapping[str, object]) -> str:
    return f"{rule['kind']} {rule.get('status', '')}".strip()


def tell(server: Server, rule: Mapping[str, object]) -> None:
    server.misbehave({**rule, "says": SAYS})


def shown(*texts: str) -> list[str]:
    """The forms of the key that are in these texts."""
    return [form for form in FORMS for text in texts if form in text]


def stored(*folders: Path) -> list[str]:
    """The files under these folders that hold the key in any form, as `name: form`."""
    found = []
    every = {path for folder in folders for path in (folder, *folder.rglob("*"))}
    for path in sorted(path for path in every if path.is_file()):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # SQLite removes its log with the last connection
            continue
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        found += [f"{path.name}: {form}" for form in (*FORMS, *CODED) if form.encode() in content]
        if path.suffix == ".duckdb":  # its blocks may be packed
            found += [f"{path.name}, unpacked: {form}" for form in shown(*rows_of(path))]
    return found


def rows_of(path: Path) -> list[str]:
    """Every row of a DuckDB file as text, from a copy: this process may have the file open."""
    with TemporaryDirectory() as folder, duckdb.connect(shutil.copy(path, folder)) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return [str(row) for (name,) in tables for row in connection.table(name).fetchall()]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRELLIS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def leaky(model_server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The model of every role, called with the key; a password is in an address."""
    monkeypatch.setenv("TRELLIS_LM_API_KEY", KEY)
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    monkeypatch.setenv("TRELLIS_EMBEDDING_BASE_URL", ADDRESS)
    monkeypatch.setenv("TRELLIS_MAX_ATTEMPTS", "1")
    return model_server


@pytest.mark.parametrize("rule", [*ANSWERS, *ERRORS], ids=named)
def test_a_question_shows_and_stores_no_key(
    leaky: Server, copied: Command, cache: Path, tmp_path: Path, rule: Mapping[str, object]
) -> None:
    tell(leaky, rule)
    rows = write_rows(tmp_path / "rows.jsonl", [{"id": "1", "question": QUESTION}])
    commands = ([QUESTION], [QUESTION, "--json"], ["--questions", str(rows)])
    asked = [copied("ask", *words) for words in commands]
    assert leaky.stats()["calls"] > 0
    said = [text for ended in asked for text in (ended.out, ended.err)]
    assert shown(*said) == []
    assert rule["kind"] == "says_too" or any(MASK in text for text in said)
    assert stored(copied.workspace, cache) == []


@pytest.mark.parametrize("rule", [*ANSWERS, *ERRORS[-3:]], ids=named)
def test_an_index_run_shows_and_stores_no_key(
    leaky: Server,
    fresh: Command,
    source: Path,
    cache: Path,
    rule: Mapping[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell(leaky, rule)
    archive = fresh.workspace.with_name("archive.tar.gz")
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "0")  # the run is refused, and remembered
    ended = [fresh("index", str(source), "--json")]
    monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", "1")
    ended.append(fresh("index", str(source)))
    ended += [fresh(command, "--json") for command in ("dead-letter", "status", "doctor")]
    ended.append(fresh("archive", str(archive)))
    said = [text for one in ended for text in (one.out, one.err)]
    assert shown(*said) == []
    assert rule["kind"] == "says_too" or any(MASK in text for text in said)
    assert stored(fresh.workspace, cache, archive) == []


def written(says: str) -> str:
    """A right answer that a step can be compiled by, with this in its words."""
    return json.dumps({"answer": f"In Velin [1]. {says}.", "values": ["Velin"]})


@pytest.mark.usefixtures("api")
def test_recorded_runs_and_exports_hold_no_key(
    leaky: Server,
    fresh: Command,
    source: Path,
    cache: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, page, kept = str(fresh.workspace), tmp_path / "page.html", tmp_path / "kept"
    gold = [
        {"question": f"Where was no {number} of the council born?", "answers": ["Velin"]}
        for number in range(10, 22)
    ]
    questions = write_rows(tmp_path / "gold.jsonl", gold)

    def asked(text: str = QUESTION, **options: Any) -> object:
        return end_of(query(text, workspace=place, return_state=True, **options))

    tell(leaky, {"kind": "says_too"})
    said: list[object] = [end_of(index(str(source), workspace=place, return_state=True)), asked()]
    compared: dict[str, Any] = {"limit": 2, "workspace": place, "page": str(page)}
    said.append(end_of(evaluate(["mode=naive"], str(questions), return_state=True, **compared)))
    leaky.misbehave(
        {"kind": "writes", "step": "answer", "says": written(SAYS)},
        {"kind": "says_too", "says": SAYS},
    )
    options = TrainOptions(
        "answer", questions=questions, by="bootstrap", measure="exact_match", use=True
    )
    said.append(end_of(train(options, workspace=place, return_state=True)))
    program = fresh.workspace / "programs" / "answer.json"
    assert MASK in program.read_text("utf-8"), "the demonstrations hold what the server said"
    tell(leaky, {"kind": "says_too"})
    said.append(asked(mode="naive"))
    assert any(MASK in str(sent) for sent in leaky.sent("answer")), "the compiled step was asked"
    leaky.misbehave({"kind": "rate_limit", "retry_after": KEY, "says": SAYS})
    said.append(asked(f"{QUESTION} Since when?"))
    tell(leaky, {"kind": "says_too"})
    said += capsys.readouterr()
    for command in (
        ("tune", str(source)),
        ("export", str(kept / "rows")),
        ("export", str(kept / "graph"), "--format", "graphml"),
        ("archive", str(kept / "archive.tar.gz")),
        ("reports", "--json"),
    ):
        ended = fresh(*command)
        assert ended.code == 0, (command, ended.err)
        said += [ended.out, ended.err]
    APILogHandler().flush()
    assert shown(*map(str, said)) == []
    assert MASK in "".join(map(str, said))
    assert stored(fresh.workspace, cache, kept, page, Path(os.environ["PREFECT_HOME"])) == []
