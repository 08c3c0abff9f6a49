"""Embedders: the published model's vectors, each text embedded once, failures with a remedy."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prompts.engine.embedders import (
    BundledMiniLM,
    Embedder,
    EmbeddingForm,
    Floats,
    NoEmbedder,
    text_hash,
)
from prompts.engine.embedding_api import USE, ApiEmbedder
from prompts.engine.errors import (
    BadKey,
    BatchTooLarge,
    EngineError,
    ModelMisconfigured,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)
from prompts.engine.json_api import JsonApi
from prompts.engine.local_models import SentenceTransformerEmbedder
from prompts.engine.minilm import MiniLM, bundled_folder
from prompts.engine.opening import open_embedder
from prompts.engine.providers import Endpoint
from prompts.engine.refusals import HABITS
from prompts.engine.spending import Meter
from tests.server.client import Server
from tests.server.words import embed

SENTENCE = "In {}, the river Aire rose over bridge no. 7; nobody knew why (yet)."
LONG = " ".join(SENTENCE.format(1900 + number) for number in range(90))
QUESTION = "Who directed the film?"
TEXTS = [
    QUESTION,
    "",
    "Ünïcödé naïveté — “quotes” … e\u0301",
    "北京是中国的首都。",
    "😀 🎉",
    "a" * 300,
    LONG,
    "broken \ud800 surrogate",
]
MANY = ["x" * n for n in range(1, 101)]
Rows = list[dict[str, Any]]


class Memory:
    """A VectorCache in a dict that counts what it is asked."""

    def __init__(self) -> None:
        self.kept: dict[str, Floats] = {}
        self.asked: list[str] = []

    def get_many(self, model: str, hashes: Sequence[str]) -> Mapping[str, Floats]:
        self.asked += hashes
        return {key: self.kept[model + key] for key in hashes if model + key in self.kept}

    def put_many(self, model: str, vectors: Mapping[str, Floats]) -> None:
        self.kept |= {model + key: vector for key, vector in vectors.items()}


@pytest.fixture(scope="module")
def bundled() -> BundledMiniLM:
    return BundledMiniLM()


# --- on this machine -----------------------------------------------------------------------------


def test_a_vector_has_the_first_numbers_that_are_asked_for(bundled: BundledMiniLM) -> None:
    short = BundledMiniLM(form=EmbeddingForm(dimension=64))
    cut = bundled.embed(TEXTS[:2])[:, :64]
    unit = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    assert (short.dimension, short.name != bundled.name) == (64, True)
    assert np.allclose(short.embed(TEXTS[:2]), unit, atol=1e-6)
    with pytest.raises(ModelMisconfigured, match="384 numbers, so none of 400"):
        BundledMiniLM(form=EmbeddingForm(dimension=400)).embed(["x"])


@pytest.mark.slow
def test_sentence_transformers_gives_the_same_and_its_prompts(
    bundled: BundledMiniLM, tmp_path: Path
) -> None:
    reference = SentenceTransformerEmbedder(str(bundled_folder()))
    assert (bundled.embed(TEXTS) * reference.embed(TEXTS)).sum(axis=1).min() >= 0.99999
    assert (reference.max_tokens, reference.dimension) == (256, 384)
    assert reference.windows(LONG) == bundled.windows(LONG)
    folder = tmp_path / "prompted"
    shutil.copytree(bundled_folder(), folder)
    path = folder / "config_sentence_transformers.json"
    prompts = {"prompts": {"query": "Question: ", "passage": "Text: "}}
    path.write_text(json.dumps(json.loads(path.read_text()) | prompts))
    own = EmbeddingForm(query_prompt="Asked: ", passage_prompt="")
    for form, query, prompt in (
        (None, True, "Question: "),
        (None, False, "Text: "),
        (own, True, "Asked: "),
        (own, False, ""),
    ):
        embedder = SentenceTransformerEmbedder(str(folder), Memory(), form)
        embedder.embed([QUESTION], query=not query)  # its vector must not stand for the other
        vector = embedder.embed([QUESTION], query=query)[0]
        assert vector @ bundled.embed([f"{prompt}{QUESTION}"])[0] > 0.9999


def test_vectors_do_not_depend_on_order_company_or_thread(bundled: BundledMiniLM) -> None:
    together = bundled.embed(TEXTS)
    reverse = bundled.embed(TEXTS[::-1])[::-1]
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda text: bundled.embed([text])[0], TEXTS))
    assert np.allclose(together, reverse, atol=1e-5)
    assert np.allclose(together, alone, atol=1e-5)
    assert np.abs(together[0] - together[2]).max() > 0.05
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("limit", [256, 40])
def test_windows_cover_a_text_and_each_fits(bundled: BundledMiniLM, limit: int) -> None:
    for text in (*TEXTS, "word" * 80 + LONG, "长文本。" * 400, "\n\n  " + LONG):
        windows = bundled.windows(text, limit)
        assert "".join(text[start:end] for start, end in windows) == text
        assert all(len(bundled._tokens(text[start:end])) + 2 <= limit for start, end in windows)


def test_windows_end_after_sentences(bundled: BundledMiniLM) -> None:
    windows = bundled.windows(LONG)
    assert len(windows) > 5
    assert all(LONG[:end].rstrip().endswith(").") for _, end in windows)
    with pytest.raises(ValueError, match="max_tokens"):
        bundled.windows("some text", 2)


def test_the_cache_is_asked_once_a_text_and_filled(bundled: BundledMiniLM) -> None:
    cache = Memory()
    first = BundledMiniLM(cache).embed(["one", "two", "one"])
    assert cache.asked == [text_hash("one"), text_hash("two")]
    again = BundledMiniLM(cache)
    assert (again.embed(["one", "two", "one"]) == first).all()
    assert "_model" not in vars(again), "the model was not loaded"
    cache.put_many(bundled.name, {text_hash("one"): np.ones(7, np.float32)})
    with pytest.raises(ModelMisconfigured, match="7"):
        again.embed(["one", "two"])


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(ModelUnavailable, match=r"(?s)5 bytes.*pip install"):
        MiniLM(tmp_path)


# --- served --------------------------------------------------------------------------------------


def served(
    url: str, cache: Memory | None = None, sleep: Callable[[float], None] = lambda _: None
) -> ApiEmbedder:
    return ApiEmbedder(Endpoint("m", "m", url, "sk-secret", listed=False), cache, sleep=sleep)


def sizes(server: Server) -> list[int]:
    """How many texts each request held."""
    return [len(request["body"]["input"]) for request in server.requests()]


def test_the_api_waits_as_told_and_keeps_the_order(model_server: Server) -> None:
    waits: list[float] = []
    late = {"kind": "rate_limit", "nth": 1, "retry_after": "7"}
    model_server.misbehave(late, {"kind": "server_error", "nth": 2})
    vectors = served(model_server.base_url, sleep=waits.append).embed(MANY)
    assert 7.0 <= waits[0] <= 7.7
    assert np.allclose(vectors, [embed(text, 384) for text in MANY], atol=1e-5)
    assert sizes(model_server) == [64, 64, 64, 36]
    keys = {request["authorization"] for request in model_server.requests()}
    assert keys == {"Bearer sk-secret"}


def test_what_a_request_brought_is_kept_before_the_next(model_server: Server) -> None:
    model_server.misbehave({"kind": "overflow_openai", "nth": 2})
    cache = Memory()
    with pytest.raises(ModelRefused):
        served(model_server.base_url, cache).embed(MANY)
    assert len(cache.kept) == 64
    assert served(model_server.base_url, cache).embed(MANY).shape == (100, 384)
    assert sizes(model_server) == [64, 36, 36]


@pytest.mark.parametrize(
    ("rule", "error", "calls"),
    [
        ({"kind": "server_error"}, ModelUnavailable, 5),
        ({"kind": "rate_limit", "retry_after": "61"}, ModelUnavailable, 1),
        ({"kind": "unauthorized"}, BadKey, 1),
        ({"kind": "no_model"}, UnknownModel, 1),
        ({"kind": "quota"}, QuotaExhausted, 1),
    ],
)
def test_only_what_can_pass_is_tried_again(
    model_server: Server, rule: dict[str, object], error: type[EngineError], calls: int
) -> None:
    model_server.misbehave({**rule, "says": "sk-secret"})
    with pytest.raises(error, match="key masked") as caught:
        served(model_server.base_url).embed(["x"])
    assert "sk-secret" not in str(caught.value)
    assert caught.value.remedy
    assert model_server.stats()["calls"] == calls


def test_a_reply_that_drips_is_not_waited_for(model_server: Server) -> None:
    """Each byte comes in time, the whole does not."""
    model_server.misbehave({"kind": "drip", "seconds": 2})
    api = JsonApi(served(model_server.base_url)._api._where, USE, lambda _: None, seconds=0.4)
    with pytest.raises(ModelUnavailable):
        api._content({"input": ["x"]})
    assert model_server.stats()["calls"] == 5


def test_prompts_and_dimension_reach_a_served_model(model_server: Server) -> None:
    form = EmbeddingForm(query_prompt="query: ", passage_prompt="passage: ", dimension=16)
    where = Endpoint("m", "m", model_server.base_url, None, listed=False)
    embedder = ApiEmbedder(where, Memory(), form)
    text = LONG[:4000]  # of enough words that some fall into the first 16 numbers
    passage, query = embedder.embed([text]), embedder.embed([text], query=True)
    assert (embedder.embed([text], query=True) == query).all(), "cached apart"
    sent = [request["body"]["input"] for request in model_server.requests()]
    assert sent == [[f"passage: {text}"], [f"query: {text}"]]
    assert (passage.shape, query.shape, embedder.dimension) == ((1, 16), (1, 16), 16)


def test_a_server_is_told_what_kind_of_text_it_gets(model_server: Server) -> None:
    form, cache = EmbeddingForm(input_types=("query", "document")), Memory()
    where = Endpoint("m", "m", model_server.base_url, None, listed=False)
    embedder = ApiEmbedder(where, cache, form)
    for query in (True, False, True, False):
        embedder.embed([QUESTION], query=query)
    sent = [request["body"]["input_type"] for request in model_server.requests()]
    assert sent == ["query", "document"], "each cached apart"
    assert embedder.name != ApiEmbedder(where).name


@pytest.mark.parametrize("name", ["bundled", "BAAI/bge-small-en-v1.5"])
def test_a_model_without_a_server_gets_no_input_types(name: str) -> None:
    with pytest.raises(ModelMisconfigured, match=r"types of input|no server"):
        open_embedder(name, form=EmbeddingForm(input_types=("query", "document")))


def test_calls_tokens_and_cost_are_entered(model_server: Server) -> None:
    meter, name = Meter(), "openai/text-embedding-3-small"
    where = Endpoint(name, "e", model_server.base_url, "k", listed=True)
    embedder = ApiEmbedder(where, Memory()).metered(meter)
    for texts in (MANY, MANY, MANY[:1], [*MANY[:70], "new", "newer"]):
        embedder.embed(texts)
    ((step, model, spent),) = meter.rows()
    counted = model_server.stats()
    assert (step, model, spent.cached_calls) == ("embed", embedder.name, 4)
    seen = counted["calls"], counted["prompt_tokens"]
    assert (spent.calls, spent.input_tokens) == seen
    assert spent.cost_usd == pytest.approx(spent.input_tokens * 0.02 / 1e6)


Refuses = Callable[[dict[str, Any]], tuple[int, str] | None]


@contextmanager
def serving(
    refuses: Refuses = lambda _: None, change: Callable[[Rows], Rows] = list
) -> Iterator[tuple[str, Rows]]:
    """A server that refuses some bodies and changes its rows; and the bodies that came."""

    bodies: Rows = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            status, words = refuses(body) or (200, "")
            texts = enumerate(body["input"])
            rows = [{"index": at, "embedding": embed(text, 384)} for at, text in texts]
            said = {"object": "error", "message": words} if words else {"data": change(rows)}
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is said."""

    HABITS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", bodies
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "words", "most", "tried"),
    [
        (400, "batch size is invalid, it should not be larger than 10.", 10, [64, 10]),
        (422, "input: List should have at most 32 items, not 64", 32, [64, 32]),
        (400, "too many inputs", 8, [64, 32, 16, 8]),
        (413, "Request Entity Too Large", 16, [64, 32, 16]),
    ],
)
def test_a_largest_batch_is_learnt_from_the_refusal(
    status: int, words: str, most: int, tried: list[int]
) -> None:
    with serving(lambda it: (status, words) if len(it["input"]) > most else None) as (url, bodies):
        vectors = served(url).embed(MANY)
        assert np.allclose(vectors, [embed(text, 384) for text in MANY], atol=1e-5)
        many = [len(body["input"]) for body in bodies]
        assert many[: len(tried)] == tried
        served(url).embed([f"{text}!" for text in MANY])
        assert len(bodies[len(many)]["input"]) == most, "another run of the process knows it"


def test_a_server_that_takes_not_even_one_text_ends_the_run() -> None:
    with serving(lambda _: (400, "batch too large")) as (url, bodies):
        with pytest.raises(BatchTooLarge, match="batch too large"):
            served(url).embed(MANY)
        assert len(bodies) == 7


def test_an_encoding_that_is_refused_is_left_out() -> None:
    words = "Unknown field: encoding_format"
    with serving(lambda body: (400, words) if len(body) == 3 else None) as (url, bodies):
        assert served(url).embed(MANY).shape == (100, 384)
        assert len(bodies) == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: [{"embedding": row["embedding"]} for row in rows], ""),
        (lambda rows: rows[::-1], ""),
        (lambda rows: rows[1:], "answered 64 texts for the model 'm' with 63 vectors"),
        (lambda rows: [rows[0], *rows[:-1]], "answered 64 texts"),
        (lambda rows: [{**rows[0], "embedding": [0.0] * 384}, *rows[1:]], "1 of them with a"),
    ],
)
def test_rows_are_one_vector_a_text(change: Callable[[Rows], Rows], problem: str) -> None:
    with serving(change=change) as (url, _):
        if problem:
            with pytest.raises(ModelRefused, match=problem):
                served(url).embed(MANY)
        else:
            right = [embed(text, 384) for text in MANY]
            assert np.allclose(served(url).embed(MANY), right, atol=1e-5)


# --- by name -------------------------------------------------------------------------------------


def test_an_embedder_is_opened_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    kinds: dict[type[Embedder], list[Embedder]] = {
        BundledMiniLM: [open_embedder("bundled"), open_embedder()],
        NoEmbedder: [open_embedder("none")],
        SentenceTransformerEmbedder: [
            open_embedder(str(tmp_path)),
            open_embedder("BAAI/bge-small-en-v1.5"),
            open_embedder("sentence-transformers/cohere/x"),
        ],
        ApiEmbedder: [open_embedder("all-MiniLM-L6-v2", base_url="http://127.0.0.1:1/v1")],
    }
    assert all(type(it) is kind for kind, made in kinds.items() for it in made)
    openai = open_embedder("openai/text-embedding-3-small")
    assert openai.name == "text-embedding-3-small@api.openai.com"
    with pytest.raises(BadKey, match="OPENAI_API_KEY"):
        openai.embed(["x"])


@pytest.mark.parametrize(
    ("name", "url"),
    [("minilm", None), ("cohere/embed", None), (None, "http://x/v1"), ("m", "localhost:8000")],
)
def test_a_name_that_cannot_work_is_refused(name: str | None, url: str | None) -> None:
    with pytest.raises(ModelMisconfigured, match=url or name) as caught:
        open_embedder(name, url)
    assert caught.value.remedy
