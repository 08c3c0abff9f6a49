"""A key with a filter, on every route and MCP tool: nothing tells of what the filter hides."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.index import IndexOptions, build_index
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.service.access import Role, new_key
from flows.service.page_files import PATHS
from flows.session import Session, Sessions, open_part, open_session
from storage.errors import NothingToRead, StorageError
from storage.export import export
from tests.copying import copy_of
from tests.server.client import Server
from tests.service.conftest import client_of, refused
from tests.service.filtered import FILTER, NORTH, PLANNED, ROWS, RULES, SCHEMA, signs_in
from tests.settings import load_settings
from tests.workspaces import write_rows

API = "/api/v1"
QUESTION = "What did Zqarn Holt pay Tomas Reyd in Velin, and what is Zqmill Works?"
ACCEPT = {"accept": "application/json, text/event-stream"}
SEEN = "Who designed Orla Bridge?"


def settings_on(server: Server, workspace: Path) -> dict[str, object]:
    base = {"lm_base_url": server.base_url, "embedding_base_url": server.base_url}
    models = {"lm": "openai/m", "lm_api_key": "k", "embedding": "openai/e", **base}
    return {**models, "workspace": workspace, "claims": True, "graph_schema": SCHEMA}


def runtime_on(server: Server, workspace: Path) -> Runtime:
    return open_runtime(load_settings(settings_on(server, workspace), {}))


def index(server: Server, workspace: Path, rows: list[dict[str, Any]]) -> None:
    server.reset()
    server.misbehave(*RULES)
    source = write_rows(workspace.parent / "rows.jsonl", rows)
    asyncio.run(build_index([source], IndexOptions(), runtime_on(server, workspace)))
    server.misbehave()


@pytest.fixture(scope="module")
def built(server_process: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two generations, of which the later has one more hidden document."""
    workspace = tmp_path_factory.mktemp("filtered") / "ws"
    index(server_process, workspace, ROWS[:-2] + ROWS[-1:])
    index(server_process, workspace, ROWS)
    return workspace


@pytest.fixture(scope="module")
def alone(server_process: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with nothing but the documents that the filter lets through."""
    workspace = tmp_path_factory.mktemp("alone") / "ws"
    index(server_process, workspace, [row for row in ROWS if row["id"] in NORTH])
    return workspace


@dataclass(frozen=True)
class Served:
    """A service on a workspace; `ask` and `edit` have the filter, `whole` reads everything."""

    ask: httpx.Client
    edit: httpx.Client
    whole: httpx.Client


@pytest.fixture(scope="module")
def served(built: Path, server_process: Server) -> Iterator[Served]:
    yield from serve(built, server_process)


@pytest.fixture
def fresh(built: Path, server_process: Server, tmp_path: Path) -> Iterator[Served]:
    """A service on a copy of the workspace, to be changed."""
    yield from serve(copy_of(built, tmp_path / "ws"), server_process)


def serve(workspace: Path, server: Server) -> Iterator[Served]:
    roles: list[tuple[Role, str | None]] = [("ask", FILTER), ("edit", FILTER), ("admin", None)]
    keys = [new_key(f"{role}-{number}", role, w) for number, (role, w) in enumerate(roles)]
    server.misbehave(PLANNED)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings_on(server, workspace).items():
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            if name not in {"workspace", "graph_schema"}:
                patch.setenv(f"TRELLIS_{name.upper()}", text)
        with client_of(workspace, keys[2][0], keys=[row for _, row in keys]) as whole:
            ask, edit = (
                httpx.Client(
                    base_url=whole.base_url,
                    headers={"authorization": f"Bearer {key}"},
                    timeout=whole.timeout,
                    trust_env=False,
                )
                for key, _ in keys[:2]
            )
            yield Served(ask, edit, whole)


# --- every route ---


@dataclass(frozen=True)
class Guess:
    """Names of one hidden thing of each kind, or of things that do not exist."""

    document: str = "south/nowhere"
    entity: str = "Nowhere Holt"
    community: str = "com_0000000000000000"
    run: str = "run_000000000000"
    conversation: str = "nowhere-talk"


@dataclass(frozen=True)
class Asked:
    """A request and, for POST and PUT, what it sends."""

    method: str
    path: str
    params: Mapping[str, object] = field(default_factory=dict)
    body: object = None

    def sent_by(self, client: httpx.Client) -> httpx.Response:
        params: Any = dict(self.params)
        return client.request(self.method, self.path, params=params, json=self.body, headers=ACCEPT)


def get(path: str, **params: object) -> Asked:
    return Asked("GET", path, params)


def post(path: str, body: object, **params: object) -> Asked:
    return Asked("POST", path, params, body)


def call(tool: str, **arguments: object) -> Asked:
    return rpc("tools/call", name=tool, arguments=arguments)


def rpc(method: str, **params: object) -> Asked:
    return post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def chat(stream: bool, model: str = "trellis") -> dict[str, object]:
    messages = [{"role": "user", "content": QUESTION}]
    return {"model": model, "messages": messages, "stream": stream}


MODES = ("auto", "naive", "struct", "local", "global", "drift", "mix", "agent", "lazy", "facts")


def cases(guess: Guess) -> dict[str, list[Asked]]:
    """Requests to each route of the API, which ask for what is hidden."""
    ask = {"question": QUESTION}
    feedback = {"question": SEEN, "answer": "It was.", "helpful": True, "generation": 2}
    merge = {"action": "merge", "name": "Tomas Reyd", "other": guess.entity}
    kept = f"{API}/conversations"
    found = Asked("PUT", f"{API}/documents/{guess.document}", {"index": "false"}, "text")
    return {
        "POST /api/v1/ask": [
            *(post(f"{API}/ask", {**ask, "mode": mode}) for mode in MODES),
            post(f"{API}/ask", {**ask, "stream": True}),
            post(f"{API}/ask", {**ask, "as_of": 1}),
            post(f"{API}/ask", {**ask, "mode": "global", "level": 0}),
            post(f"{API}/ask", {**ask, "documents": [guess.document]}),
            post(f"{API}/ask", {**ask, "where": "team = 'south'"}),
            post(f"{API}/ask", {**ask, "where": "zqcolour = 'red'"}),
            post(f"{API}/ask", {**ask, "where": "title like '%'"}),
        ],
        "POST /api/v1/ask/forecast": [post(f"{API}/ask/forecast", {**ask, "mode": "lazy"})],
        "POST /api/v1/retrieve": [
            post(f"{API}/retrieve", {**ask, "k": 50}),
            post(f"{API}/retrieve", {"question": "90417 crowns", "k": 50, "as_of": 1}),
        ],
        "GET /api/v1/documents": [
            get(f"{API}/documents"),
            get(f"{API}/documents", as_of=1),
            get(f"{API}/documents", q="zq"),
        ],
        "GET /api/v1/documents/{document}": [get(f"{API}/documents/{guess.document}")],
        "PUT /api/v1/documents/{document}": [found],
        "DELETE /api/v1/documents/{document}": [
            Asked("DELETE", f"{API}/documents/{guess.document}")
        ],
        "POST /api/v1/index-runs": [post(f"{API}/index-runs", {"sources": ["/nowhere"]})],
        "GET /api/v1/index-runs": [get(f"{API}/index-runs")],
        "GET /api/v1/index-runs/{run}": [get(f"{API}/index-runs/{guess.run}")],
        "DELETE /api/v1/index-runs/{run}": [Asked("DELETE", f"{API}/index-runs/{guess.run}")],
        "GET /api/v1/entities": [get(f"{API}/entities"), get(f"{API}/entities", q="Holt")],
        "GET /api/v1/entity": [
            get(f"{API}/entity", name=name)
            for name in (guess.entity, "Tomas Reyd", "Marlow Finch", "Velin", "Orla Bridge", "Holt")
        ],
        "GET /api/v1/paths": [
            get(f"{API}/paths", first="Tomas Reyd", second=guess.entity, k=20),
            get(f"{API}/paths", first="Ana Korb", second="Tomas Reyd", k=20),
        ],
        "GET /api/v1/communities": [get(f"{API}/communities"), get(f"{API}/communities", level=0)],
        "GET /api/v1/reports": [get(f"{API}/reports")],
        "GET /api/v1/reports/{community}": [get(f"{API}/reports/{guess.community}")],
        "GET /api/v1/schema": [get(f"{API}/schema")],
        "GET /api/v1/workspaces": [get(f"{API}/workspaces")],
        "GET /api/v1/generations": [get(f"{API}/generations")],
        "GET /api/v1/diff": [get(f"{API}/diff", before=1), get(f"{API}/diff", before=2, after=1)],
        "GET /api/v1/dead-letters": [get(f"{API}/dead-letters")],
        "POST /api/v1/dead-letters/retry": [post(f"{API}/dead-letters/retry", None)],
        "GET /api/v1/usage": [get(f"{API}/usage")],
        "GET /api/v1/status": [get(f"{API}/status")],
        "GET /api/v1/settings": [get(f"{API}/settings")],
        "GET /api/v1/about": [get(f"{API}/about")],
        "GET /api/v1/examples": [get(f"{API}/examples")],
        "GET /api/v1/runs": [get(f"{API}/runs")],
        "GET /api/v1/questions": [get(f"{API}/questions")],
        "GET /api/v1/doctor": [get(f"{API}/doctor")],
        "GET /api/v1/picture": [
            get(f"{API}/picture"),
            get(f"{API}/picture", name="Velin", most=500),
            get(f"{API}/picture", name=guess.entity),
        ],
        "GET /api/v1/edits": [get(f"{API}/edits")],
        "POST /api/v1/edits": [post(f"{API}/edits", merge)],
        "DELETE /api/v1/edits/{number}": [Asked("DELETE", f"{API}/edits/1")],
        "GET /api/v1/feedback": [get(f"{API}/feedback")],
        "POST /api/v1/feedback": [post(f"{API}/feedback", feedback)],
        "GET /api/v1/conversations": [get(kept)],
        "DELETE /api/v1/conversations": [Asked("DELETE", kept)],
        "GET /api/v1/conversations/{conversation}": [get(f"{kept}/{guess.conversation}")],
        "PATCH /api/v1/conversations/{conversation}": [
            Asked("PATCH", f"{kept}/{guess.conversation}", body={"title": "mine"})
        ],
        "DELETE /api/v1/conversations/{conversation}": [
            Asked("DELETE", f"{kept}/{guess.conversation}")
        ],
        "GET /v1/models": [get("/v1/models")],
        "GET /v1/models/{name}": [get("/v1/models/trellis")],
        "POST /v1/chat/completions": [
            post("/v1/chat/completions", chat(stream=False)),
            post("/v1/chat/completions", chat(stream=True)),
        ],
        "POST /v1/embeddings": [post("/v1/embeddings", {"input": "Velin"})],
        "GET /api/version": [get("/api/version")],
        "GET /api/tags": [get("/api/tags")],
        "POST /api/chat": [post("/api/chat", chat(stream=False)), post("/api/chat", chat(True))],
        "GET /health": [get("/health")],
        "GET /ready": [get("/ready")],
        "GET /metrics": [get("/metrics")],
    }


def tool_cases(guess: Guess) -> dict[str, list[Asked]]:
    """Calls of each MCP tool, which ask for what is hidden."""
    return {
        "ask": [
            call("ask", question=QUESTION),
            call("ask", question=QUESTION, mode="agent"),
            call("ask", question=QUESTION, documents=[guess.document]),
        ],
        "retrieve": [call("retrieve", question=QUESTION, k=50)],
        "search_words": [call("search_words", words="Zqarn Holt 90417 crowns Velin", k=50)],
        "entity": [
            call("entity", name=name)
            for name in (guess.entity, "Tomas Reyd", "Marlow Finch", "Holt")
        ],
        "paths": [
            call("paths", start="Tomas Reyd", end=guess.entity),
            call("paths", start="Ana Korb", end="Tomas Reyd"),
        ],
        "reports": [call("reports"), call("reports", report=guess.community)],
        "schema": [call("schema")],
        "source": [call("source", document=guess.document)],
    }


def resource_cases(guess: Guess) -> list[Asked]:
    return [
        rpc("resources/list"),
        rpc("resources/templates/list"),
        rpc("resources/read", uri=f"trellis://documents/{guess.document}"),
        rpc("resources/read", uri=f"trellis://reports/{guess.community}"),
    ]


@pytest.fixture(scope="module")
def hidden(served: Served) -> Guess:
    """A hidden thing of each kind, as the key that reads everything finds them."""
    reports = served.whole.get(f"{API}/reports").json()
    report = next(row for row in reports if signs_in(row["title"]))
    run = served.whole.post(f"{API}/index-runs", json={"sources": ["/nowhere/zq"]}).json()
    question = "Who wrote in the Zqelm Ledger?"
    served.whole.post(f"{API}/ask", json={"question": question, "conversation": "zqtalk"})
    rating = {"question": question, "answer": "Nobody.", "helpful": False, "generation": 2}
    served.whole.post(f"{API}/feedback", json=rating)
    return Guess("south/zqholt", "Zqarn Holt", report["community"], run["id"], "zqtalk")


def every_request(guess: Guess) -> list[Asked]:
    groups = [*cases(guess).values(), *tool_cases(guess).values(), resource_cases(guess)]
    return [*(asked for group in groups for asked in group), *map(get, sorted(PATHS))]


def told(answer: httpx.Response, *echoed: str) -> str:
    """What an answer tells beyond the words that were sent."""
    text = answer.text + json.dumps(dict(answer.headers))
    for word in sorted(echoed, key=len, reverse=True):
        text = text.replace(word, "")
    return text


def words_of(guess: Guess) -> tuple[str, ...]:
    """The words of the requests, which an answer may repeat."""
    sent = (QUESTION, "zqcolour", *QUESTION.split(), "90417 crowns")
    words = [word.strip(",?") for word in (*vars(guess).values(), *sent)]
    return tuple(word for word in words if signs_in(word))


def test_every_route_and_tool_has_a_case(served: Served) -> None:
    described = served.whole.get("/openapi.json").json()["paths"]
    routes = {
        f"{method.upper()} {path}" for path, methods in described.items() for method in methods
    }
    assert routes == cases(Guess()).keys()
    listed = rpc("tools/list").sent_by(served.whole).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == tool_cases(Guess()).keys()


def test_nothing_tells_of_a_hidden_document(served: Served, hidden: Guess) -> None:
    echoed = words_of(hidden)
    for asked in every_request(hidden):
        answer = asked.sent_by(served.ask)
        assert answer.status_code < 500, (asked, answer.text)
        # What the question asks for is repeated; the rest of it must not be answered.
        assert not signs_in(told(answer, *echoed)), (asked, answer.text)


def test_a_hidden_name_reads_like_an_invented_one(served: Served, hidden: Guess) -> None:
    invented = Guess()
    pairs = zip(every_request(hidden), every_request(invented), strict=True)
    compared = 0
    for real, other in pairs:
        if real == other or "index-runs" in real.path:  # a run is no document
            continue
        answers = [asked.sent_by(served.ask) for asked in (real, other)]
        texts = [
            without_names(answer.text, *vars(guess).values())
            for answer, guess in zip(answers, (hidden, invented), strict=True)
        ]
        assert answers[0].status_code == answers[1].status_code, real
        assert texts[0] == texts[1], real
        compared += 1
    assert compared >= 14


def without_names(text: str, *names: str) -> str:
    """A text without the names that were sent, and without those that are spelt like them."""
    for name in names:
        text = text.replace(name, "NAME")
    return re.sub(r"(Nearest: |See `trellis )[^\"]*", "", text)


SHOWN = """
    POST /api/v1/ask; POST /api/v1/retrieve; GET /api/v1/documents; GET /api/v1/entities
    GET /api/v1/documents/{document}; GET /api/v1/entity; GET /api/v1/paths; GET /api/v1/reports
    GET /api/v1/reports/{community}; GET /api/v1/diff; GET /api/v1/picture; GET /api/v1/status
    GET /api/v1/questions; GET /api/v1/feedback; GET /api/v1/index-runs; GET /api/v1/dead-letters
    POST /v1/chat/completions; POST /api/chat
"""


def test_without_the_filter_the_same_requests_show_it(served: Served, hidden: Guess) -> None:
    echoed = words_of(hidden)
    showing = {
        route
        for route, group in cases(hidden).items()
        for asked in group
        if asked.method == "GET" or asked.path.endswith(("ask", "retrieve", "chat", "completions"))
        if signs_in(told(asked.sent_by(served.whole), *echoed))
    }
    wanted = {route.strip() for line in SHOWN.split("\n") for route in line.split(";")} - {""}
    assert wanted <= showing


# --- the part as an index of its own ---


@pytest.fixture
def part(built: Path, server_process: Server) -> Iterator[Session]:
    with open_session(runtime_on(server_process, built)) as whole, open_part(whole, FILTER) as part:
        yield part


MADE_OF_SEVERAL = ("communities", "reports")


def test_a_part_is_the_index_of_its_documents_alone(
    part: Session, alone: Path, server_process: Server
) -> None:
    with open_session(runtime_on(server_process, alone)) as other:
        parts, own = export(part.generation), export(other.generation)
        counts, expected = (it.generation.meta.counts() for it in (part, other))
    for rows in (*parts["documents"], *own["documents"]):
        rows["parts"] = []  # these name their file
    for kind in own.keys() - {*MADE_OF_SEVERAL}:
        assert parts[kind] == own[kind], kind
    assert all(parts[kind] for kind in ("claims", "facts", "relations", "reports"))
    assert {k: n for k, n in counts.items() if k not in MADE_OF_SEVERAL} == {
        k: n for k, n in expected.items() if k not in MADE_OF_SEVERAL
    }


async def test_scores_do_not_tell_of_hidden_documents(
    part: Session, alone: Path, server_process: Server
) -> None:
    with open_session(runtime_on(server_process, alone)) as other:
        for question in (QUESTION, SEEN, "Who built Kestrel Tower in Hask?"):
            found = [
                (await retrieve_passages(question, AskOptions(), session)).passages
                for session in (part, other)
            ]
            assert found[0] == found[1] != ()


def test_a_report_stays_where_all_its_evidence_is_seen(part: Session, built: Path) -> None:
    (report,) = part.generation.communities.reports()
    (community,) = part.generation.communities.communities()
    assert (community.id, community.level, report.level) == (report.community, 0, 0)
    names = {entity.name for entity in part.generation.graph.entities(community.members)}
    assert names == {"Kestrel Tower", "Ida Brom", "Pela Sund"}


def test_names_are_not_joined_by_what_is_hidden(part: Session, served: Served) -> None:
    names = {entity.name for entity in part.generation.graph.entities()}
    assert {"Marlow Finch", "Ivo Rask"} <= names
    shown = served.whole.get(f"{API}/entity", params={"name": "Ivo Rask"}).json()
    assert [row["name"] for row in shown["entities"]] == ["Marlow Finch"]


def test_a_filter_that_nothing_passes_reads_nothing(built: Path, server_process: Server) -> None:
    with open_session(runtime_on(server_process, built)) as whole:
        for where in ("team = 'west'", "no_such_field = 1", "not no_such_field = 1"):
            with pytest.raises(NothingToRead):
                open_part(whole, where)


def test_the_filters_of_key_and_question_both_hold(served: Served) -> None:
    def documents(where: str) -> set[str]:
        body = {"question": "Velin", "where": where, "k": 50}
        passages = served.ask.post(f"{API}/retrieve", json=body).json()["passages"]
        return {row["document"] for row in passages}

    assert documents("title like '%Reyd%'") == {"north/reyd"}
    assert documents("year = 1931") <= NORTH.keys()
    asked = {"question": "Velin", "where": "nothing = 1"}
    error = refused(served.ask.post(f"{API}/retrieve", json=asked), 400, "FilterError")
    assert "year" in error["remedy"]
    assert not signs_in(json.dumps(error))


# --- changes ---


def test_a_role_with_a_filter_changes_only_what_it_sees(fresh: Served) -> None:
    edit, documents = fresh.edit, f"{API}/documents"
    for path in ("south/zqholt", "south/zqelm"):
        refused(edit.put(f"{documents}/{path}", content=b"x"), 409, "Taken")
        refused(edit.delete(f"{documents}/{path}"), 404, "UnknownDocument")
    for asked in (
        Asked("POST", f"{API}/edits", {}, {"action": "merge", "name": "Velin", "other": "Hask"}),
        get(f"{API}/doctor"),
        get(f"{API}/index-runs"),
        post(f"{API}/index-runs", {"sources": ["/nowhere"]}),
    ):
        refused(asked.sent_by(edit), 403, "NotAllowed")
    new = edit.put(f"{documents}/north/new.txt", params={"index": "false"}, content=b"A text.")
    assert new.status_code == 202
    gone = edit.delete(f"{documents}/north/tower")
    assert gone.json()["documents"] == ["north/tower"]
    assert not signs_in(gone.text)
    assert {row["id"] for row in edit.get(documents).json()["documents"]} == {
        "north/bridge",
        "north/reyd",
    }
    assert fresh.whole.get(documents).json()["total"] == 9
    assert fresh.whole.get(f"{API}/generations").json()[-1]["number"] == 3


def test_parts_make_room_and_close_with_their_generation(
    built: Path, server_process: Server
) -> None:
    sessions = Sessions()
    filters = [f"document = '{name}'" for name in NORTH]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRELLIS_EMBEDDING", "none")
        patch.setenv("TRELLIS_SERVICE_FILTERS_KEPT", "2")
        opened = []
        for where in (*filters, filters[2], filters[0]):
            with sessions.hold(built, where=where) as session:
                opened.append(session)
                assert session.generation.documents.ids() == [where.split("'")[1]]
        assert opened[3] is opened[2], "it was used last"
        assert opened[4] is not opened[0], "two newer ones took its place"
        with sessions.hold(built, where=filters[2]) as held:
            sessions.close()
            assert len(held.generation.documents.ids()) == 1, "its reader goes on"
        for session in opened:
            with pytest.raises(StorageError, match="closed"):
                session.generation.documents.ids()
