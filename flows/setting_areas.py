"""What can be set: one model of pydantic an area, one field a setting.

The text under a setting is what docs/settings.md says of it.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from flows.orchestration.secret_blocks import secret_of
from flows.own_prompts import check_instructions, read_instructions
from prompts.engine.effort import Effort, HelperStep, Profile
from prompts.engine.providers import OFFLINE, Backend, GgufSettings
from prompts.engine.roles import Role
from prompts.tailoring import UNTAILORED, Tailoring, Unfit

# In the place of a key: the name of a secret block of Prefect's follows.
BLOCK = "prefect-secret:"
# NAME:ROLE:SHA-256 of the key, in hexadecimal digits.
KEY_ROW = r"^[\w.@-]{1,64}:(ask|edit|admin):[0-9a-f]{64}$"
WORKSPACE_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
LONGEST_NAME = 255  # bytes of one name of a path, as file systems have it
# What makes a call the one that it is; the program writes it.
OWN_PARAMETERS = {"model", "messages", "stream", "n", "response_format"}
_OF_NOTHING = hashlib.sha256(b"").hexdigest()


def _nameable(value: object) -> object:
    """Refuse a path that no file system can hold, and the empty one: a variable that is not set."""
    written = str(value)
    if not written.strip() or "\0" in written:
        raise Unfit(written, "the path of a folder, . for the one that you are in")
    for part in Path(written).parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise Unfit(part, f"a path whose names have {LONGEST_NAME} bytes at most")
    return value


def _parameters(value: object) -> object:
    """Read the parameters of a server; a variable holds them as JSON."""
    form = 'an object of JSON, such as {"min_p": 0.05}'
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise Unfit(str(value), form) from error
    if not isinstance(read, dict):
        raise Unfit(str(value), form)
    if own := sorted(OWN_PARAMETERS & read.keys()):
        raise Unfit(own[0], "parameters of drawing words: this one is the program's own")
    return read


def _from_block(value: object, info: ValidationInfo) -> object:
    """Read a key from the secret block that its place names."""
    if not isinstance(value, str) or not value.startswith(BLOCK):
        return value
    return secret_of(value.removeprefix(BLOCK), info.field_name or "api_key")


def _apart(value: object) -> object:
    """Read several values; a variable holds them with semicolons between."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(";") if part.strip()]


def _steps(value: object) -> object:
    """Read the steps; `none` is an empty list."""
    steps = _apart(value)
    return [] if steps == ["none"] else steps


def _key_rows(value: object) -> object:
    rows = _apart(value)
    if isinstance(value, str) and not rows:
        form = "rows NAME:ROLE:SHA256 with semicolons between; not set, nobody needs a key"
        raise Unfit(value, form)
    return rows


def _consistent(rows: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse two roles of one name, and an empty key."""
    roles = dict[str, str]()
    for row in rows:
        name, role, digest = row.rsplit(":", 2)
        if roles.setdefault(name, role) != role:
            raise Unfit(name, f"one role for each name: {name} has {roles[name]} and {role}")
        if digest == _OF_NOTHING:
            raise Unfit(name, "a key that is not empty: `trellis serve --new-key NAME:ROLE`")
    return rows


def _named(value: object) -> object:
    """Read NAME=FOLDER of each workspace."""
    parts = _apart(value)
    return dict(part.partition("=")[::2] for part in parts) if isinstance(parts, list) else value


FolderPath = Annotated[Path, BeforeValidator(_nameable)]
Key = Annotated[SecretStr, BeforeValidator(_from_block)]
ModelOptions = Annotated[dict[str, Any], BeforeValidator(_parameters)]
Names = Annotated[tuple[str, ...], BeforeValidator(_apart)]
HelperSteps = Annotated[frozenset[HelperStep] | None, BeforeValidator(_steps)]
Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Probability = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=200)]
Window = Annotated[int, Field(ge=2000)]
KeyRows = Annotated[
    tuple[Annotated[str, Field(pattern=KEY_ROW)], ...],
    BeforeValidator(_key_rows),
    AfterValidator(_consistent),
]
Folders = Annotated[
    dict[Annotated[str, Field(pattern=WORKSPACE_NAME)], FolderPath], BeforeValidator(_named)
]


class Area(BaseModel):
    """The settings of one area."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RoleSettings(Area):
    """A role's own model; what is None is taken from the common settings."""

    model: str | None = None
    base_url: str | None = None
    api_key: Key | None = None
    temperature: Temperature | None = None
    top_p: Probability | None = None
    seed: int | None = None
    model_options: ModelOptions = Field(default_factory=dict)


class ServiceSettings(Area):
    """How `trellis serve` serves; in the file under `[service]`."""

    keys: KeyRows = Field(default=(), exclude=True)
    """Who may use the service: `NAME:ROLE:SHA256` of each key, as `trellis serve --new-key` makes
    them. Roles: `ask`, `edit` (documents and the graph too), `admin` (sources by their paths
    too)."""
    workspaces: Folders = Field(default_factory=dict)
    """Further workspaces by name (`NAME=FOLDER`); `default` is the usual one."""
    rpm: PositiveInt | None = None
    """Requests of one key in any 60 seconds."""
    tokens_a_day: PositiveInt | None = None
    """Tokens that models may take for the questions of one key in a day (UTC)."""
    usd_a_day: PositiveFloat | None = None
    """US dollars that models may take for the questions of one key in a day (UTC), where all their
    prices are known."""
    at_once: PositiveInt = 16
    """Questions that are answered at once; others wait."""
    upload_bytes: PositiveInt = 100_000_000
    """The largest file that may be uploaded."""
    origins: Names = ()
    """Web pages that may call the service from a browser (`https://HOST`)."""
    log_texts: bool = False
    """Whether questions are written into the log."""


class ModelSettings(Area):
    """Which models there are, and what they are told."""

    lm: str = OFFLINE
    """The model of all roles, as DSPy names it: `openai/gpt-4o-mini`, `ollama/qwen3`; `gguf/PATH`
    is a file on this machine ([models](models.md#a-model-in-one-file))."""
    lm_base_url: str | None = None
    """The address of an own server, up to `/v1` (vLLM, Ollama, llama.cpp)."""
    lm_api_key: Key | None = None
    """Its key; without it that of the provider's own variable, as `OPENAI_API_KEY`."""
    roles: dict[Role, RoleSettings] = Field(default_factory=dict)
    """For one role another model, address or key; `offline` takes the role out."""
    gguf_context: Window = GgufSettings.context
    """Of a model in one file (`gguf/PATH`): the tokens that one call reads and writes together. The
    limits of prompts follow it."""
    gguf_slots: PositiveInt = GgufSettings.slots
    """Its calls at once; each takes memory for a whole context."""
    gguf_threads: PositiveInt | None = None
    """The threads that compute it; without it one for each core."""
    model_backend: Backend = "torch"
    """What computes the models of sentence-transformers: embedding, reranker, grounding."""
    effort: Effort = "medium"
    """How much the models do: `low` retrieves and answers, `high` spares no call and reads larger
    contexts ([decisions](decisions.md)). `--effort` for one question."""
    profile: Literal["auto", Profile] = "auto"
    """What the models can do: a `small` one is not asked for steps that it gains nothing by
    ([models](models.md#profile)). `auto` goes by the size in the name: below 14 billion parameters
    is small."""
    helper_steps: HelperSteps = None
    """Which of the steps that help ask a model, whatever the profile: some of `rewrite`, `choose`,
    `route`, `structurize`, `filter`, `decompose`, `rate`, `resolve` with semicolons between, or
    `none`. Not set, a `large` profile asks all, a `small` one none."""
    prompts: FolderPath | None = None
    """A folder with your own instruction `STEP.md` for any step ([models](models.md#prompts))."""
    instructions: dict[str, str] = Field(default_factory=dict)
    """The same in the settings file: the instruction of a step under its name."""
    programs: FolderPath | None = None
    """A folder with compiled steps, as `step.save` writes them; `programs` in the workspace if
    there is one ([compiling](compile.md))."""

    @field_validator("instructions")
    @classmethod
    def _with_folder(cls, given: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Add the instructions of the folder; those in the file hold."""
        folder = info.data.get("prompts")
        instructions = (read_instructions(folder) if folder else {}) | given
        if instructions:
            check_instructions(instructions)
        return instructions


class CallLimits(Area):
    """How models are called."""

    concurrency: PositiveInt = 16
    """Calls in flight to one server."""
    rpm: PositiveInt | None = None
    """Requests to one server in any 60 seconds."""
    tpm: PositiveInt | None = None
    """Tokens to one server in any 60 seconds."""
    prefect_limit: str = ""
    """A global concurrency limit of Prefect with slot decay, of which each call takes a slot first:
    calls a minute over all machines ([limits](deployment.md#limits-over-all-machines))."""
    max_attempts: PositiveInt = 6
    """Tries of one call before it is an error."""
    timeout: PositiveFloat | None = None
    """Seconds that one try waits for a word of the server, and a provider's for the whole answer.
    Where it is not set 120, and of a server of your own 600 before the first word and a second for
    each 40 tokens of the prompt ([models](models.md#slow-machines))."""
    max_tokens: int = Field(default=4096, ge=16)
    """The most tokens that a model writes in one call; what is cut gets twice as many, once."""
    answer_cache: bool = True
    """Whether a question's steps may get an answer that a model has given to the same prompt
    before."""
    temperature: Temperature | None = None
    """How freely models draw their words. Where it is not set 0, and `retry_temperature` at a
    second try ([models](models.md#sampling))."""
    retry_temperature: Temperature = 0.5
    """The temperature of a second try: after an answer that cannot be read, or says the same again
    and again."""
    top_p: Probability | None = None
    """Words are drawn from the likeliest that have this probability together."""
    seed: int | None = None
    """The seed of that drawing, where the server has one."""
    model_options: ModelOptions = Field(default_factory=dict)
    """Further parameters of each call, as the server names them; in a variable as JSON: `{"min_p":
    0.05, "chat_template_kwargs": {"enable_thinking": false}}`."""


class PromptLimits(Area):
    """How many tokens a prompt may have of what."""

    answer_tokens: Tokens | None = None
    """Evidence that an answer is written from, not what is written (`max_tokens`)."""
    notes_tokens: Tokens | None = None
    """What earlier steps made of the evidence: structures, answers of parts."""
    part_tokens: Tokens | None = None
    """Evidence of a sub-question's answer."""
    filter_tokens: Tokens | None = None
    """Passages in a call that judges them."""
    structure_tokens: Tokens | None = None
    """Text in a call that structures it."""
    structures_tokens: Tokens | None = None
    """Text of all such calls."""
    map_tokens: Tokens | None = None
    """Reports in a call of the map step."""
    points_tokens: Tokens | None = None
    """Points that the last step of it reads."""
    rate_tokens: Tokens | None = None
    """Openings of reports in a call that rates them."""
    report_tokens: Tokens | None = None
    """The most that one report is written from."""
    summary_tokens: Tokens | None = None
    """The most that one description is written from."""
    examples_tokens: Tokens | None = None
    """Your own examples, sent with each passage."""
    context_window: Window | None = None
    """Tokens that the models can read at once: the limits grow and shrink with it. Where it is not
    set, the known window of a provider's model shrinks them, and lets them grow at high effort."""


class IndexSettings(Area):
    """What an index run makes of the documents."""

    chunk_tokens: int = Field(default=600, ge=20)
    """The most tokens of a passage."""
    # Whoever asks for small passages has not asked for an overlap of most of them.
    chunk_overlap: NonNegativeInt = Field(
        default_factory=lambda data: min(100, data["chunk_tokens"] // 6)
    )
    """Tokens that neighbouring passages share: less than half of a passage (small passages: a
    sixth)."""
    gleanings: int = Field(default=0, ge=0, le=10)
    """How often a model is asked again what it has missed in a passage; ends early when nothing is
    new."""
    claims: bool = False
    """Whether a model is asked for claims too, for a third more tokens; without a model there are
    none."""
    communities: str = "leiden"
    """What finds the coarsest communities: `leiden`, or any algorithm of cdlib that partitions a
    graph, with its parameters: `louvain(resolution=1.2)`, `infomap`
    ([communities](python.md#communities))."""
    community_size: int = Field(default=12, ge=2)
    """The most entities of a community of the last level."""
    community_drift: Share = 0.1
    """The share of the graph that may change before communities are made anew."""
    report_drift: Share = 0.1
    """The share of a community that may change before its report is made anew."""
    failure_limit: Share = 0.1
    """The share of a run's passages, entities or reports that may fail; beyond it nothing is
    published."""
    tailoring: Tailoring = UNTAILORED
    """Persona, language, kinds of entities and examples ([models](models.md#fit-to-a-domain))."""

    @field_validator("chunk_overlap")
    @classmethod
    def _below_half(cls, overlap: int, info: ValidationInfo) -> int:
        if overlap * 2 >= info.data.get("chunk_tokens", overlap * 3 + 1):
            raise Unfit(str(overlap), "less than half of chunk_tokens")
        return overlap


class VectorSettings(Area):
    """How texts become vectors, and what searches them."""

    embedding: str = "bundled"
    """`bundled` (all-MiniLM-L6-v2 from an installed package), `none`, a model of
    sentence-transformers (`ORG/NAME` on the Hub, or a folder), or an API's: `openai/NAME`,
    `mistral/NAME`, `ollama/NAME`, any name with an address ([models](models.md#embeddings))."""
    embedding_base_url: str | None = None
    """The address of an own embedding server."""
    embedding_api_key: Key | None = None
    """Its key; the models' key serves where both are one server."""
    embedding_query_prompt: str | None = None
    """What is put before a question that is embedded; without it what the model itself puts
    there."""
    embedding_passage_prompt: str | None = None
    """The same for passages."""
    embedding_dimension: PositiveInt | None = None
    """How many of a vector's first numbers are kept, of a model that was trained for that."""
    vector_store: str = "auto"
    """What searches the vectors: `auto`, `exact`, `chroma`, `chroma-server`, or the name
    of an entry point ([scaling](scaling.md#vector-stores))."""
    chroma_url: str | None = None
    """A Chroma server for the vectors, instead of a folder in the workspace; `USER:PASSWORD@`
    before the host is sent as basic authentication."""
    chroma_tenant: str = "default_tenant"
    """The tenant on that server."""
    chroma_database: str = "default_database"
    """The tenant's database."""
    chroma_api_key: Key | None = None
    """A token for that server, sent as `x-chroma-token` and as `Authorization: Bearer`."""


class RerankSettings(Area):
    """What ranks the passages of a question again."""

    reranker: str = ""
    """A cross-encoder of sentence-transformers (`ORG/NAME` on the Hub, or a folder) that ranks
    passages again, or a served one: `cohere/NAME`, `jina_ai/NAME`, `voyage/NAME`, any name with an
    address ([retrieval](retrieval.md#reranking))."""
    reranker_base_url: str | None = None
    """The address of a server of one's own, before `/rerank`."""
    reranker_api_key: Key | None = None
    """Its key; without it that of the provider's own variable, as `CO_API_KEY`."""
    reranker_passages: PositiveInt = 30
    """How many passages the reranker reads of a question, at least those that go on."""


class AnswerSettings(Area):
    """How questions are answered."""

    strict: bool = False
    """Whether sentences of an answer that no source supports are withheld instead of flagged."""
    answer_alone: bool = False
    """Whether a model answers from what it knows, as `ungrounded`, where nothing was found to
    answer from; else such a question is `abstained`."""
    grounding: str = ""
    """The name of a cross-encoder of sentence-transformers, for natural language inference, that
    judges support; without it words and figures do."""
    memory: Literal["on", "off"] = "on"
    """Whether answers are remembered."""
    tau: Share = 0.9
    """How like a remembered question must be: the cosine of both ([memory](memory.md))."""
    theta: PositiveInt = 1
    """How many documents memory must know of it."""
    pages: FolderPath | None = None
    """A folder whose files every question reads beside the index ([versions](versions.md))."""


class PlaceSettings(Area):
    """Where the state is, and which machines work."""

    workspace: FolderPath = Path(".trellis")
    """The folder of state."""
    cache_dir: FolderPath | None = None
    """A folder for models' answers and vectors that several workspaces share, instead of the
    workspace."""
    keep_generations: PositiveInt = 5
    """How many generations stay."""
    runner: Literal["local", "dask"] = "local"
    """Where batches of an index run go ([scaling](scaling.md#runners))."""
    runner_address: str | None = None
    """The Dask cluster to join."""
    runner_workers: PositiveInt | None = None
    """How many workers to start; one for each core."""


class AllAreas(
    ModelSettings,
    CallLimits,
    PromptLimits,
    IndexSettings,
    VectorSettings,
    RerankSettings,
    AnswerSettings,
    PlaceSettings,
):
    """The settings of all areas."""


# By the headings of docs/settings.md.
AREAS: Mapping[str, type[Area]] = {
    "Models": ModelSettings,
    "Calls to models": CallLimits,
    "Token limits of prompts": PromptLimits,
    "Indexing": IndexSettings,
    "Embeddings and vectors": VectorSettings,
    "Reranking": RerankSettings,
    "Answers": AnswerSettings,
    "Workspace and machines": PlaceSettings,
}
