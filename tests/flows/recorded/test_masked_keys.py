"""No configured key leaves the process in text that comes from outside, whatever a server says and
wherever it goes.
"""

import base64
import gzip
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
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

# What the server says in place of, or besides, what it was asked for.
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


def shown(*texts: str) -> list[str]:
    """The forms of the key that are in these texts."""
    return [form for form in FORMS for text in texts if form in text]


def stored(*folders: Path) -> list[str]:
    """The files under these folders that hold the key in any form, as `name: form`."""
    found = []
    for path in sorted(
        path for folder in folders for path in (folder, *folder.rglob("*")) if path.is_file()
    ):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found += [f"{path.name}: {form}" for form in (*FORMS, *CODED) if form.encode() in content]
        if path.suffix == ".duckdb":  # its blocks may be packed
            found += [f"{path.name}, unpacked: {form}" for form in shown(*rows_of(path))]
    return found


def rows_of(path: Path) -> list[str]:
    """Every row of a DuckDB file as text; of a copy, since this process may have the file open."""
    with TemporaryDirectory() as folder, duckdb.connect(shutil.copy(path, folder)) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        return [str(row) for (name,) in tables for row in connection.table(name).fetchall()]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for caches beside the workspace."""
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


def tell(server: Server, rule: Mapping[str, object], **more: object) -> None:
    server.misbehave({**rule, "says": SAYS, **more})


@pytest.mark.parametrize("rule", [*ANSWERS, *ERRORS], ids=named)
def test_a_question_shows_and_stores_no_key(
    leaky: Server, copied: Command, cache: Path, tmp_path: Path, rule: Mapping[str, object]
) -> None:
    tell(leaky, rule)
    asked = [copied("ask", QUESTION, *options) for options in ((), ("--json",))]
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "1", "question": QUESTION}) + "\n")
    asked.append(copied("ask", "--questions", str(rows)))
    assert leaky.stats()["calls"] > 0
    said = [text for ended in asked for text in (ended.out, ended.err)]
    assert shown(*said) == []
    assert rule["kind"] == "says_too" or any(MASK in text for text in said)
    assert stored(copied.workspace, cache) == []


@pytest.mark.parametrize("rule", [*ANSWERS, *ERRORS], ids=named)
def test_an_index_run_shows_and_stores_no_key(
    leaky: Server,
    fresh: Command,
    source: Path,
    cache: Path,
    rule: Mapping[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell(leaky, rule)
    said = []
    archive = fresh.workspace.with_name("archive.tar.gz")
    index = ("index", str(source))
    for limit, *commands in (
        ("0", (*index, "--json")),  # refused, with the run remembered
        (
            "1",
            index,
            ("dead-letter", "--json"),
            ("archive", str(archive)),
            ("status", "--json"),
            ("doctor", "--json"),
        ),
    ):
        monkeypatch.setenv("TRELLIS_FAILURE_LIMIT", limit)
        for command in commands:
            ended = fresh(*command)
            said += [ended.out, ended.err]
    assert shown(*said) == []
    if rule["kind"] != "says_too":
        assert any(MASK in text for text in said)
    assert stored(fresh.workspace, cache, archive) == []


def written(says: str) -> str:
    """A right answer that a step can be compiled by, with this in its words."""
    return json.dumps({"answer": f"In Velin [1]. {says}.", "values": ["Velin"]})


@pytest.mark.usefixtures("api")
def test_no_key_is_left_by_runs_on_prefect_training_tuning_exports_and_archives(
    leaky: Server,
    fresh: Command,
    source: Path,
    cache: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = [f"Where was no {number} of the council born?" for number in range(10, 22)]
    gold = [
        {"question": question, "answers": ["Velin"], "gold_documents": ["reyd"]}
        for question in asked
    ]
    questions, place = write_rows(tmp_path / "gold.jsonl", gold), str(fresh.workspace)
    tell(leaky, {"kind": "says_too"})
    said: list[object] = [end_of(index(str(source), workspace=place, return_state=True))]
    said += [end_of(query(QUESTION, workspace=place, return_state=True))]
    page = tmp_path / "page.html"
    said += [
        end_of(
            evaluate(
                ["mode=naive"],
                str(questions),
                limit=2,
                workspace=place,
                page=str(page),
                return_state=True,
            )
        )
    ]
    leaky.misbehave(
        {"kind": "writes", "step": "answer", "says": written(SAYS)},
        {"kind": "says_too", "says": SAYS},
    )
    options = TrainOptions(
        "answer", questions=questions, by="bootstrap", measure="exact_match", use=True
    )
    said += [end_of(train(options, workspace=place, return_state=True))]
    program = fresh.workspace / "programs" / "answer.json"
    assert MASK in program.read_text("utf-8"), (
        "what the server said of the key is in the demonstrations"
    )
    tell(leaky, {"kind": "says_too"})
    said += [end_of(query(QUESTION, workspace=place, mode="naive", return_state=True))]
    assert any(MASK in str(sent) for sent in leaky.sent("answer")), "the compiled step was asked"
    for rule in (
        {"kind": "rate_limit", "retry_after": KEY},
        {"kind": "server_error", "status": 400},
    ):
        tell(leaky, rule)
        said += [end_of(query(f"{QUESTION} {rule['kind']}", workspace=place, return_state=True))]
    tell(leaky, {"kind": "says_too"})
    said += capsys.readouterr()
    kept = tmp_path / "kept"
    for command in (
        ("tune", str(source)),
        ("export", str(kept / "rows")),
        ("export", str(kept / "graph"), "--format", "graphml"),
        ("archive", str(kept / "archive.tar.gz")),
        ("reports", "--json"),
        ("status", "--json"),
        ("doctor", "--json"),
    ):
        ended = fresh(*command)
        assert ended.code == 0, (command, ended.err)
        said += [ended.out, ended.err]
    APILogHandler().flush()
    assert shown(*map(str, said)) == []
    assert MASK in "".join(map(str, said))
    assert stored(fresh.workspace, cache, kept, page, Path(os.environ["PREFECT_HOME"])) == []
