"""The embedder and the reranker that the settings name."""

import os

from prompts.engine.embedders import (
    BUNDLED,
    BundledMiniLM,
    Embedder,
    EmbeddingForm,
    NoEmbedder,
    VectorCache,
)
from prompts.engine.embedding_api import ApiEmbedder
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.local_models import CrossEncoderReranker, SentenceTransformerEmbedder
from prompts.engine.providers import (
    Backend,
    ModelChoice,
    embedding_endpoint,
    is_local_model,
    rerank_endpoint,
)
from prompts.engine.rerankers import ApiReranker, Reranker

EMBEDDINGS = (
    "Choose `bundled` (all-MiniLM-L6-v2, the default), `none` (lexical retrieval only), a model of "
    "sentence-transformers as `ORG/NAME` or a folder, `openai/NAME` (`mistral/…`, `ollama/…`), or "
    "any model's name together with the base URL of an OpenAI-compatible server."
)
RERANKERS = (
    "Name a cross-encoder of sentence-transformers as `ORG/NAME` or by its folder, `cohere/NAME` "
    "(`jina_ai/…`, `voyage/…`, `together_ai/…`), or any model's name together with "
    "TRELLIS_RERANKER_BASE_URL, the address before `/rerank`."
)


def open_embedder(  # noqa: PLR0913 -- what the settings hold
    name: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    cache: VectorCache | None = None,
    *,
    form: EmbeddingForm | None = None,
    backend: Backend = "torch",
    allow_download: bool = False,
) -> Embedder:
    """The embedder that the settings name, not loaded yet.

    Raises ModelMisconfigured for an unknown name. Without an `api_key`, the provider's own variable
    (`OPENAI_API_KEY`) gives the key for its own address.
    """
    if name == "none":
        return NoEmbedder()
    if name == "bundled" or (name in {None, "", BUNDLED} and not base_url):
        if form and (form.query_prompt or form.passage_prompt or form.input_types):
            raise ModelMisconfigured(
                "The bundled embedding knows no prompts and no types of input.",
                "Leave them empty, or name a model.",
            )
        return BundledMiniLM(cache, form)
    if not name:
        raise ModelMisconfigured(f"No embedding model is named for {base_url!r}.", EMBEDDINGS)
    served = embedding_endpoint(ModelChoice(name, base_url, api_key), os.environ)
    if served is not None:
        return ApiEmbedder(served, cache, form)
    if form and form.input_types:
        raise ModelMisconfigured(
            f"The embedding {name!r} has no server to be told {form.input_types!r}.",
            "Leave TRELLIS_EMBEDDING_INPUT_TYPES empty; a prompt does the same here.",
        )
    if is_local_model(name):
        return SentenceTransformerEmbedder(
            name, cache, form, backend=backend, allow_download=allow_download
        )
    raise ModelMisconfigured(f"There is no embedding {name!r}.", EMBEDDINGS)


def open_reranker(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    backend: Backend = "torch",
    allow_download: bool = False,
) -> Reranker:
    """The reranker that the settings name, not loaded yet; keys as for `open_embedder`."""
    served = rerank_endpoint(ModelChoice(name, base_url, api_key), os.environ)
    if served is not None:
        return ApiReranker(served)
    if is_local_model(name):
        return CrossEncoderReranker(name, backend=backend, allow_download=allow_download)
    raise ModelMisconfigured(f"There is no reranker {name!r}.", RERANKERS)
