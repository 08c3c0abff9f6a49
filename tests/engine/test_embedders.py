"""Embedders: the published model's vectors, each text embedded once, failures that say what to do."""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from prompts.engine.embedders import (
    BundledMiniLM,
    Embedder,
    EmbeddingForm,
    Floats,
    NoEmbedder,
    open_embedder,
    text_hash,
)
from prompts.engine.embedding_api import USE, ApiEmbedder
from prompts.engine.errors import (
    BadKey,
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
from prompts.engine.providers import Endpoint, ModelChoice, embedding_endpoint
from prompts.engine.spending import Meter
from tests.server.client import Server
from tests.server.dripping import BODY, HEAD, PROVISIONAL, dripping
from tests.server.words import embed

LONG = " ".join(f"In {1900 + n}, the river Aire rose over bridge no. {n}; nobody knew why (yet)." for n in range(90))
TEXTS = [
    "Who directed the film?",
    "",
    "Ada Lovelace wrote the first program.",
    "Ünïcödé naïveté — “quotes” … e\u0301",
    "北京是中国的首都。",
    "😀 🎉",
    "def f(x): return x ** 2  # code",
    "a" * 300,
    LONG,
    "broken \ud800 surrogate",
]


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
def model() -> MiniLM:
    return MiniLM(bundled_folder())


@pytest.fixture
def bundled(model: MiniLM) -> BundledMiniLM:
    return BundledMiniLM(load=lambda: model)


def test_so_many_of_a_vectors_first_numbers_as_are_asked_for(model: MiniLM) -> None:
    whole = BundledMiniLM(load=lambda: model)
    short = BundledMiniLM(form=EmbeddingForm(dimension=64), load=lambda: model)
    cut = whole.embed(TEXTS)[:, :64]
    assert short.dimension == 64
    assert short.name != whole.name
    assert np.allclose(short.embed(TEXTS), cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-6)
    with pytest.raises(ModelMisconfigured, match=r"(?s)384 numbers, so none of 400.*TRELLIS_EMBEDDING_DIMENSION"):
        BundledMiniLM(form=EmbeddingForm(dimension=400), load=lambda: model).embed(["x"])


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The bundled model with prompts of its own, as a folder."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    shutil.copytree(bundled_folder(), folder)
    path = folder / "config_sentence_transformers.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(known | {"prompts": {"query": "Question: ", "passage": "Text: "}}), encoding="utf-8")
    return str(folder)


@pytest.mark.slow
def test_queries_and_passages_are_told_to_the_model_by_its_prompts_or_ours(
    bundled: BundledMiniLM, prompted: str
) -> None:
    text = "Who directed the film?"

    def cosine(form: EmbeddingForm | None, query: bool, as_if: str) -> float:
        cache = Memory()
        embedder = SentenceTransformerEmbedder(prompted, cache, form)
        embedder.embed([text], query=not query)  # its vector must not stand for the other
        return float((embedder.embed([text], query=query) @ bundled.embed([as_if]).T)[0, 0])

    assert cosine(None, True, f"Question: {text}") > 0.9999
    assert cosine(None, False, f"Text: {text}") > 0.9999
    own = EmbeddingForm(query_prompt="Asked: ", passage_prompt="")
    assert cosine(own, True, f"Asked: {text}") > 0.9999
    assert cosine(own, False, text) > 0.9999


@pytest.mark.slow
def test_windows_leave_room_for_the_prompt(prompted: str, model: MiniLM) -> None:
    embedder = SentenceTransformerEmbedder(prompted)
    sizes = [len(model.tokens(f"Text: {LONG[start:end]}")) + 2 for start, end in embedder.windows(LONG)]
    assert 200 < max(sizes) <= embedder.max_tokens


@pytest.mark.slow
def test_the_vectors_are_those_of_sentence_transformers(bundled: BundledMiniLM) -> None:
    pytest.importorskip("sentence_transformers", reason="the reference is not installed")
    reference = SentenceTransformerEmbedder(str(bundled_folder()))
    expected = reference.embed(TEXTS)
    assert (reference.max_tokens, reference.dimension) == (256, 384)
    assert (bundled.embed(TEXTS) * expected).sum(axis=1).min() >= 0.99999
    assert reference.windows(LONG) == bundled.windows(LONG)


def test_vectors_do_not_depend_on_order_or_company(bundled: BundledMiniLM) -> None:
    together = bundled.embed(TEXTS * 3)[: len(TEXTS)]
    reverse = bundled.embed(TEXTS[::-1])[::-1]
    alone = np.concatenate([bundled.embed([text]) for text in TEXTS])
    assert np.allclose(together, reverse, atol=1e-5)
    assert np.allclose(together, alone, atol=1e-5)
    assert np.abs(together[0] - together[2]).max() > 0.05
    assert together.shape == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_threads_load_the_model_once_and_agree(model: MiniLM) -> None:
    loads: list[int] = []
    embedder = BundledMiniLM(load=lambda: (loads.append(1), model)[1])  # type: ignore[func-returns-value]
    threads_before = model._blas.info()[0]["num_threads"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: embedder.embed([f"question {number % 4}", "same"]), range(16)))
    assert len(loads) == 1
    assert all(np.allclose(answers[n], answers[n % 4], atol=1e-6) for n in range(16))
    assert model._blas.info()[0]["num_threads"] == threads_before


@pytest.mark.parametrize("limit", [256, 110, 40])
@pytest.mark.parametrize("text", [*TEXTS, "word" * 80 + " " + LONG, "长文本。" * 400, "\n\n  " + LONG + "  \n"])
def test_windows_cover_the_text_and_each_fits(bundled: BundledMiniLM, model: MiniLM, text: str, limit: int) -> None:
    windows = bundled.windows(text, limit)
    assert "".join(text[start:end] for start, end in windows) == text
    assert [end for _, end in windows[:-1]] == [start for start, _ in windows[1:]]
    tokens = [len(model.tokens(text[start:end].encode("utf-8", "replace").decode())) + 2 for start, end in windows]
    assert max(tokens) <= limit


def test_windows_end_after_sentences_and_a_short_text_is_one(bundled: BundledMiniLM) -> None:
    windows = bundled.windows(LONG)
    assert len(windows) > 5
    assert all(LONG[:end].rstrip().endswith(").") for _, end in windows)
    assert bundled.windows("short") == [(0, 5)]
    assert bundled.windows("") == [(0, 0)]
    with pytest.raises(ValueError, match="max_tokens"):
        bundled.windows("some text", 2)


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("Çok güzel bir gün; l’été à Montréal, Việt Nam", True),
        ("The capital of China is Beijing (北京), home of the Palace Museum (故宫).", True),
        ("我们使用 GraphRAG 和 LightRAG 来构建知识图谱。", False),
        ("北京是中国的首都。", False),
        ("東京タワーは、日本の東京都にある。", False),
        ("서울은 대한민국의 수도이다.", False),
        ("Москва — столица России.", False),
        ("القاهرة عاصمة مصر", False),
        ("🎉🎉😀", False),
        ("for (int i = 0; i < n; ++i) { sum += a[i]; }", True),
        ("— 2023 —", True),
        ("", False),
    ],
)
def test_reads_by_script(text: str, readable: bool) -> None:
    assert BundledMiniLM().reads(text) is readable


def test_the_cache_is_asked_once_a_text_and_filled(model: MiniLM) -> None:
    cache = Memory()
    first = BundledMiniLM(cache, load=lambda: model).embed(["one", "two", "one"])
    assert cache.asked == [text_hash("one"), text_hash("two")]
    assert len(cache.kept) == 2

    def refuse() -> MiniLM:
        raise AssertionError

    again = BundledMiniLM(cache, load=refuse)
    assert (again.embed(["one", "two", "one"]) == first).all()


def test_a_cached_vector_of_another_dimension_is_an_error(model: MiniLM) -> None:
    cache = Memory()
    cache.put_many("all-MiniLM-L6-v2", {text_hash("one"): np.ones(7, np.float32)})
    with pytest.raises(ModelMisconfigured, match="7"):
        BundledMiniLM(cache, load=lambda: model).embed(["one", "two"])


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="missing"):
        MiniLM(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"short")
    with pytest.raises(ModelUnavailable, match="5 bytes") as caught:
        MiniLM(tmp_path)
    assert "pip install" in caught.value.remedy


MANY = ["x" * n for n in range(1, 101)]


def served(server: Server, cache: Memory | None = None, sleep: Callable[[float], None] = time.sleep) -> ApiEmbedder:
    return ApiEmbedder(Endpoint("m", "m", server.base_url, "sk-secret", "text", listed=False), cache, sleep=sleep)


def sizes(server: Server) -> list[int]:
    """How many texts each request held."""
    bodies = [request["body"] for request in server.requests()]
    return [len(body["input"]) for body in bodies if isinstance(body, dict)]


def test_the_api_retries_when_told_to_wait_and_keeps_the_order(model_server: Server) -> None:
    waits: list[float] = []
    model_server.misbehave({"kind": "rate_limit", "nth": 1, "retry_after": "7"}, {"kind": "server_error", "nth": 2})
    embedder = served(model_server, sleep=waits.append)
    vectors = embedder.embed(MANY)
    assert 7.0 <= waits[0] <= 7.7
    assert 0.5 <= waits[1] <= 1.0
    assert np.allclose(vectors, [embed(text, 384) for text in MANY], atol=1e-5)
    assert sizes(model_server) == [64, 64, 64, 36]
    assert {request["authorization"] for request in model_server.requests()} == {"Bearer sk-secret"}
    assert embedder.dimension == 384


def test_what_a_request_brought_is_kept_before_the_next_is_sent(model_server: Server) -> None:
    model_server.misbehave({"kind": "overflow_openai", "nth": 2})
    cache = Memory()
    with pytest.raises(ModelRefused):
        served(model_server, cache).embed(MANY)
    assert len(cache.kept) == 64
    assert served(model_server, cache).embed(MANY).shape == (100, 384)
    assert sizes(model_server) == [64, 36, 36]


@pytest.mark.parametrize(
    ("rule", "error", "calls"),
    [
        ({"kind": "server_error"}, ModelUnavailable, 5),
        ({"kind": "rate_limit", "retry_after": "61"}, ModelUnavailable, 1),
        ({"kind": "unauthorized"}, BadKey, 1),
        ({"kind": "no_model"}, UnknownModel, 1),
        ({"kind": "overflow_openai"}, ModelRefused, 1),
        ({"kind": "quota"}, QuotaExhausted, 1),
    ],
)
def test_the_api_tries_again_only_what_can_pass_and_hides_the_key(
    model_server: Server, rule: dict[str, object], error: type[EngineError], calls: int
) -> None:
    model_server.misbehave({**rule, "says": "sk-secret"})
    with pytest.raises(error, match="key masked") as caught:
        served(model_server, sleep=lambda _: None).embed(["x"])
    assert "sk-secret" not in str(caught.value)
    assert caught.value.remedy
    assert model_server.stats()["calls"] == calls


def test_a_reply_that_drips_without_an_end_is_not_waited_for(model_server: Server) -> None:
    """Each byte comes in time, the whole does not."""
    model_server.misbehave({"kind": "drip", "seconds": 5})
    where = Endpoint("m", "m", model_server.base_url, None, "text", listed=False)
    with pytest.raises(ModelUnavailable):
        JsonApi(where, USE, lambda _: None, seconds=1).post({"input": ["x"]})
    assert model_server.stats()["calls"] == 5


@pytest.mark.parametrize("beginning", [HEAD, PROVISIONAL, BODY])
def test_a_reply_whose_head_or_body_drips_is_not_waited_for(beginning: bytes) -> None:
    with dripping(beginning) as (address, requests):
        where = Endpoint("m", "m", f"{address}/v1", None, "text", listed=False)
        with pytest.raises(ModelUnavailable, match="ReadTimeout"):
            JsonApi(where, USE, lambda _: None, seconds=0.5).post({"input": ["x"]})
    assert len(requests) == 5


def test_prompts_and_dimension_reach_a_served_model(model_server: Server) -> None:
    cache = Memory()
    form = EmbeddingForm(query_prompt="query: ", passage_prompt="passage: ", dimension=16)
    embedder = ApiEmbedder(Endpoint("m", "m", model_server.base_url, None, "text", listed=False), cache, form)
    text = LONG[:400]  # of enough words that some fall into the first 16 numbers
    passage, query = embedder.embed([text]), embedder.embed([text], query=True)
    assert (embedder.embed([text], query=True) == query).all(), "cached apart"
    sent = [request["body"] for request in model_server.requests()]
    assert [body["input"] for body in sent if isinstance(body, dict)] == [[f"passage: {text}"], [f"query: {text}"]]
    assert (passage.shape, query.shape, embedder.dimension) == ((1, 16), (1, 16), 16)
    assert embedder.name != served(model_server).name, "another space"


def test_the_api_notices_another_dimension(model_server: Server) -> None:
    embedder = served(model_server).metered(Meter())
    assert embedder.embed(["x"]).shape == (1, 384)
    assert embedder.metered(Meter()).dimension == 384, "views share what was learnt"
    model_server.settle(dimension=4)
    with pytest.raises(ModelRefused, match="4"):
        embedder.embed(["y"])
    assert model_server.stats()["calls"] == 2


def test_calls_tokens_and_cost_are_entered_and_a_cached_text_costs_nothing(model_server: Server) -> None:
    meter = Meter()
    name = "openai/text-embedding-3-small"
    where = Endpoint(name, "text-embedding-3-small", model_server.base_url, "k", "text", listed=True)
    view = ApiEmbedder(where, Memory()).metered(meter)
    for texts in (MANY, MANY, MANY[:1], [*MANY[:70], "new", "newer"]):
        view.embed(texts)
    ((step, model, spent),) = meter.rows()
    counted = model_server.stats()
    assert (step, model) == ("embed", view.name)
    assert (spent.calls, spent.cached_calls, spent.input_tokens) == (counted["calls"], 4, counted["prompt_tokens"])
    assert spent.cost_usd == pytest.approx(spent.input_tokens * 0.02 / 1e6)
    served(model_server).metered(meter).embed(["y"])
    assert [row[2].cost_usd for row in meter.rows() if row[1].startswith("m@")] == [None], "an own server has no price"


@pytest.mark.parametrize(
    ("name", "url", "key"),
    [
        ("openai/e", None, "of-openai"),
        ("mistral/mistral-embed", None, "of-mistral"),
        ("openai/e", "https://api.openai.com/v1", "of-openai"),
        ("openai/e", "http://127.0.0.1:1/v1", None),
        ("mistral/e", "https://api.openai.com/v1", None),
        ("ollama/e", None, None),
        ("e", "http://127.0.0.1:1/v1", None),
    ],
)
def test_a_key_of_the_environment_goes_to_its_provider_alone(
    name: str, url: str | None, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("MISTRAL_API_KEY", "of-mistral")
    found = embedding_endpoint(ModelChoice(name, url), os.environ)
    assert found is not None
    assert found.key == key
    given = embedding_endpoint(ModelChoice(name, url, "given"), os.environ)
    assert given is not None
    assert given.key == "given"


def test_a_missing_key_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    embedder = open_embedder("openai/text-embedding-3-small")
    with pytest.raises(BadKey, match="OPENAI_API_KEY"):
        embedder.embed(["x"])


def test_open_by_name(tmp_path: Path) -> None:
    kinds: dict[type[object], Embedder] = {
        BundledMiniLM: open_embedder("bundled"),
        NoEmbedder: open_embedder("none"),
        SentenceTransformerEmbedder: open_embedder(str(tmp_path)),
        ApiEmbedder: open_embedder("all-MiniLM-L6-v2", base_url="http://127.0.0.1:1/v1"),
    }
    assert all(type(made) is kind for kind, made in kinds.items())
    assert type(open_embedder()) is type(open_embedder("all-MiniLM-L6-v2")) is BundledMiniLM
    assert type(open_embedder("sentence-transformers/x")) is SentenceTransformerEmbedder
    assert type(open_embedder("BAAI/bge-small-en-v1.5")) is SentenceTransformerEmbedder
    assert type(open_embedder("sentence-transformers/cohere/x")) is SentenceTransformerEmbedder
    assert open_embedder("openai/text-embedding-3-small").name == "text-embedding-3-small@api.openai.com"


@pytest.mark.parametrize(
    ("name", "url"), [("minilm", None), ("cohere/embed", None), (None, "http://x/v1"), ("m", "localhost:8000")]
)
def test_open_refuses_what_cannot_work(name: str | None, url: str | None) -> None:
    with pytest.raises(ModelMisconfigured, match=url or name) as caught:
        open_embedder(name, url)
    assert caught.value.remedy


@pytest.mark.slow
def test_a_model_that_is_not_here_is_not_downloaded(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="it is what would download")
    with pytest.raises(ModelUnavailable, match="trellis-no-such-model") as caught:
        SentenceTransformerEmbedder("sentence-transformers/trellis-no-such-model").embed(["x"])
    assert "download" in caught.value.remedy
    with pytest.raises(ModelUnavailable):
        SentenceTransformerEmbedder(str(tmp_path)).embed(["x"])
