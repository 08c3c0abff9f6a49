"""Rerankers, served and local, and a cross-encoder that judges support."""

import math
import shutil
from pathlib import Path

import pytest

from prompts.engine.errors import (
    BadKey,
    EngineError,
    ModelMisconfigured,
    ModelRefused,
    ModelUnavailable,
    UnknownModel,
)
from prompts.engine.local_models import CrossEncoderReranker, CrossEncoderScorer, stretches
from prompts.engine.opening import open_reranker
from prompts.engine.providers import Endpoint
from prompts.engine.rerankers import ApiReranker
from prompts.engine.spending import Meter
from tests.engine.tiny_models import tiny_cross_encoder
from tests.server.client import Server

QUESTION = "Who designed the Orla Bridge?"
PASSAGES = [
    "Rye bread is baked.",
    "Tomas Reyd designed the Orla Bridge.",
    "The bridge opened in 1931.",
]


def served(url: str) -> ApiReranker:
    return ApiReranker(Endpoint("m", "m", url, "sk-secret", listed=False), sleep=lambda _: None)


def test_scores_are_in_the_order_of_the_passages(model_server: Server) -> None:
    meter = Meter()
    scores = served(model_server.base_url).metered(meter).scores(QUESTION, PASSAGES)
    assert scores[1] > scores[2] > scores[0]
    ((step, model, spent),) = meter.rows()
    assert (step, model.partition("@")[0], spent.calls) == ("rerank", "m", 1)
    assert spent.input_tokens > 20
    assert spent.cost_usd is None, "an own server has no price"
    (request,) = model_server.requests()
    assert request["authorization"] == "Bearer sk-secret"
    assert request["body"] == {"model": "m", "query": QUESTION, "documents": PASSAGES}


@pytest.mark.parametrize(
    ("kind", "error", "remedy"),
    [
        ("server_error", ModelUnavailable, "server runs"),
        ("unauthorized", BadKey, "TRELLIS_RERANKER_API_KEY"),
        ("no_model", UnknownModel, "TRELLIS_RERANKER"),
        ("overflow_openai", ModelRefused, ""),
    ],
)
def test_what_fails_names_the_setting_and_hides_the_key(
    model_server: Server, kind: str, error: type[EngineError], remedy: str
) -> None:
    model_server.misbehave({"kind": kind, "says": "sk-secret"})
    with pytest.raises(error, match="key masked") as caught:
        served(model_server.base_url).scores(QUESTION, PASSAGES)
    assert remedy in caught.value.remedy
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "url", "address"),
    [
        ("cohere/rerank-v3.5", None, "https://api.cohere.com/v2/rerank"),
        ("jina_ai/jina-reranker-v2", None, "https://api.jina.ai/v1/rerank"),
        ("m", "http://127.0.0.1:8080", "http://127.0.0.1:8080/rerank"),
        ("m", "http://me:pw@127.0.0.1:8080/v1/rerank", "http://127.0.0.1:8080/v1/rerank"),
    ],
)
def test_a_served_reranker_by_name_or_address(name: str, url: str | None, address: str) -> None:
    reranker = open_reranker(name, url)
    assert isinstance(reranker, ApiReranker)
    assert reranker._api.address == address


def test_other_names_are_models_of_this_machine_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (str(tmp_path), "cross-encoder/ms-marco-MiniLM-L6-v2"):
        assert type(open_reranker(name)) is CrossEncoderReranker
    for name, url in (("reranker", None), ("openai/reranker", None), ("m", "localhost:8000")):
        with pytest.raises(ModelMisconfigured):
            open_reranker(name, url)
    for variable in ("CO_API_KEY", "COHERE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(BadKey, match=r"(?s)cohere/rerank.*TRELLIS_RERANKER_API_KEY or CO_API_KEY"):
        open_reranker("cohere/rerank-v3.5").scores(QUESTION, PASSAGES)


@pytest.mark.slow
def test_a_cross_encoder_reads_a_long_passage_to_its_end(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = tiny_cross_encoder(tmp_path / "tiny", ["LABEL_0"])
    texts = ["The bridge is old. " * 300 + "It was green. " * 4, "the bridge is new ."]
    meter = Meter()
    scores = CrossEncoderReranker(folder).metered(meter).scores("it was green", texts)
    pairs = [("it was green", text) for text in (texts[1], *stretches(texts[0]))]
    short, *parts = CrossEncoder(folder).predict(pairs)
    assert scores == pytest.approx([max(parts), short], abs=1e-5)
    assert max(parts) != parts[0], "its end counts"
    ((step, model, spent),) = meter.rows()
    assert (step, model, spent.calls, spent.cost_usd) == ("rerank", folder, 1, 0.0)
    assert spent.input_tokens > 1000


@pytest.mark.slow
def test_a_cross_encoder_is_loaded_for_the_first_question_alone(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "once", ["LABEL_0"])
    reranker, texts = CrossEncoderReranker(folder), ["it was green.", "the bridge is new."]
    first = reranker.metered(Meter()).scores("it was green", texts)
    shutil.rmtree(folder)
    assert reranker.metered(Meter()).scores("it was green", texts) == first


def test_stretches_cover_a_text_to_its_end() -> None:
    sentences = [f"It was green {number}." for number in range(21)]
    parts = stretches(" ".join(sentences))
    assert all(any(sentence in stretch for stretch in parts) for sentence in sentences)
    assert max(stretch.count("green") for stretch in parts) <= 6
    assert stretches("") == []


EVIDENCE = ["the bridge is old.", "it was green. the bridge is new."]


@pytest.mark.slow
def test_an_inference_model_gives_the_share_of_entailment(tmp_path: Path) -> None:
    labels, biases = ["contradiction", "ENTAILMENT", "neutral"], map(math.log, (0.2, 0.7, 0.1))
    scorer = CrossEncoderScorer(tiny_cross_encoder(tmp_path / "nli", labels, list(biases)))
    assert scorer("it was green", EVIDENCE) == pytest.approx(0.7, abs=1e-6)
    assert scorer("it was green", []) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "labels", "words"),
    [
        (CrossEncoderReranker, ["contradiction", "entailment"], "'entailment'.*one output"),
        (CrossEncoderReranker, [], "no-such-model.*hf download trellis/no-such-model"),
        (CrossEncoderScorer, ["bad", "fair", "good"], "'good'.*natural language inference"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_with_a_remedy(
    kind: type[CrossEncoderReranker | CrossEncoderScorer],
    labels: list[str],
    words: str,
    tmp_path: Path,
) -> None:
    name = tiny_cross_encoder(tmp_path / "tiny", labels) if labels else "trellis/no-such-model"
    made = kind(name)
    use = made.scores if isinstance(made, CrossEncoderReranker) else made
    with pytest.raises(ModelUnavailable, match=f"(?s){words}"):
        use("it was green", EVIDENCE)
