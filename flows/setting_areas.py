"""All settings: one Pydantic model for each area, one field for each setting.

docs/settings.md is generated from the text below each setting.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

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

from flows.graph_schema import read_schema
from flows.orchestration.secret_blocks import secret_of
from flows.own_prompts import check_instructions, read_instructions
from prompts.engine.effort import Effort, HelperStep, Profile
from prompts.engine.providers import OFFLINE, Backend, GgufSettings
from prompts.engine.roles import Role
from prompts.schema import NO_SCHEMA, Schema
from prompts.tailoring import UNTAILORED, Tailoring, Unfit
from storage.errors import FilterError
from storage.filters import check_filter
from storage.remote import is_address

# A key may be "prefect-secret:NAME", which names a secret block of Prefect's.
BLOCK = "prefect-secret:"
# NAME:ROLE:SHA-256, and a filter of documents after " where "
KEY_ROW = r"^[\w.@-]{1,64}:(ask|edit|admin):[0-9a-f]{64}( where \S.*)?$"
# ROLE, and a filter, in which $value stands for the value of the claim
GRANT = r"^(ask|edit|admin)( where \S.*)?$"
WHERE, VALUE = " where ", "$value"
PUBLISHED_DIR = Path(".trellis/published")
WORKSPACE_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
LONGEST_NAME = 255  # bytes of one name in a path, the limit of file systems
# The parameters of a call that the program sets itself.
OWN_PARAMETERS = {"model", "messages", "stream", "n", "response_format"}
_EMPTY_KEY = hashlib.sha256(b"").hexdigest()


def _check_path(value: object) -> object:
    """Refuse a path that no file system can hold, and an empty one."""
    written = str(value)
    if not written.strip() or "\0" in written:
        raise Unfit(written, "the path of a folder, . for the one that you are in")
    for part in Path(written).parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise Unfit(part, f"a path whose names have {LONGEST_NAME} bytes at most")
    return value


def _check_place(value: object) -> object:
    """Refuse a path that no file system can hold; leave an address as it is."""
    return value if is_address(value) else Path(str(_check_path(value)))


def folder_of(workspace: object, published_dir: object) -> object:
    """Return the folder that the setting `workspace` means: an address has one of its own.

    Raises Unfit for an address that holds a password.
    """
    if not is_address(workspace):
        return workspace
    address = str(workspace).rstrip("/")
    if urlsplit(address).password:
        raise Unfit("(hidden)", "an address without a password: its driver reads credentials")
    readable, digest = re.sub(r"[^\w.-]+", "-", address), hashlib.sha256(address.encode())
    return Path(str(published_dir)) / f"{readable[-60:]}-{digest.hexdigest()[:8]}"


def _read_parameters(value: object) -> object:
    """Read the parameters of a server; a variable holds them as JSON."""
    form = 'an object of JSON, such as {"min_p": 0.05}'
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise Unfit(str(value), form) from error
    if not isinstance(read, dict):
        raise Unfit(str(value), form)
    if own := sorted(OWN_PARAMETERS & read.keys()):
        raise Unfit(own[0], "sampling parameters: the program sets this one itself")
    return read


def _read_key(value: object, info: ValidationInfo) -> object:
    """Read a key from a secret block, if the value names one."""
    if not isinstance(value, str) or not value.startswith(BLOCK):
        return value
    return secret_of(value.removeprefix(BLOCK), info.field_name or "api_key")


def _split(value: object) -> object:
    """Split a variable with several values at its semicolons."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(";") if part.strip()]


def _read_steps(value: object) -> object:
    steps = _split(value)
    return [] if steps == ["none"] else steps


def _read_key_rows(value: object) -> object:
    """Split the rows; a variable without a row is refused, for no row means free access."""
    rows = _split(value)
    if isinstance(value, str) and not rows:
        form = "rows NAME:ROLE:SHA256 with semicolons between; not set, nobody needs a key"
        raise Unfit(value, form)
    return rows


class KeyRow(NamedTuple):
    """Whose key has a hash, what its owner may do, and the filter of the documents that he sees."""

    name: str
    role: str
    digest: str
    where: str | None


def read_key_row(row: str) -> KeyRow:
    """Take a row of the form `KEY_ROW` apart."""
    key, _, where = row.partition(WHERE)
    name, role, digest = key.split(":")
    return KeyRow(name, role, digest, where or None)


def _check_key_rows(rows: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse two roles or filters of one name, an empty key, and a filter that cannot be read."""
    grants = dict[str, tuple[str, str | None]]()
    for name, role, digest, where in map(read_key_row, rows):
        if grants.setdefault(name, (role, where)) != (role, where):
            raise Unfit(name, f"one role and filter for each name: {name} has two")
        if digest == _EMPTY_KEY:
            raise Unfit(name, "a key that is not empty: `trellis serve --new-key NAME:ROLE`")
        _check_where(where or "")
    return rows


def _check_where(where: str) -> None:
    """Refuse a filter that cannot be read; an empty text is none."""
    try:
        if where:
            check_filter(where)
    except FilterError as error:
        raise Unfit(where, f"a filter that can be read ({error})") from None


def _read_grants(value: object) -> object:
    """Read VALUE=ROLE of each grant."""
    parts = _split(value)
    return dict(part.split("=", 1) for part in parts) if isinstance(parts, list) else value


def _check_grants(grants: dict[str, str]) -> dict[str, str]:
    for grant in grants.values():
        _check_where(grant.partition(WHERE)[2].replace(VALUE, "'value'"))
    return grants


def _check_issuer(address: str) -> str:
    """Refuse an address whose answers somebody on the way could change."""
    parts = urlsplit(address)
    safe = parts.scheme == "https" or parts.hostname in {"127.0.0.1", "localhost", "::1"}
    if parts.scheme not in {"http", "https"} or not parts.hostname or not safe:
        raise Unfit(address, "the address of the issuer, which begins with https://")
    return address


def _read_folders(value: object) -> object:
    """Read NAME=FOLDER of each workspace."""
    parts = _split(value)
    return dict(part.partition("=")[::2] for part in parts) if isinstance(parts, list) else value


FolderPath = Annotated[Path, BeforeValidator(_check_path)]
Key = Annotated[SecretStr, BeforeValidator(_read_key)]
ModelOptions = Annotated[dict[str, Any], BeforeValidator(_read_parameters)]
Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
HelperSteps = Annotated[frozenset[HelperStep] | None, BeforeValidator(_read_steps)]
Share = Annotated[float, Field(ge=0, le=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Probability = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=200)]
Window = Annotated[int, Field(ge=2000)]
Issuer = Annotated[str, AfterValidator(_check_issuer)]
Grants = Annotated[
    dict[str, Annotated[str, Field(pattern=GRANT)]],
    BeforeValidator(_read_grants),
    AfterValidator(_check_grants),
]
KeyRows = Annotated[
    tuple[Annotated[str, Field(pattern=KEY_ROW)], ...],
    BeforeValidator(_read_key_rows),
    AfterValidator(_check_key_rows),
]
Folders = Annotated[
    dict[
        Annotated[str, Field(pattern=WORKSPACE_NAME)],
        Annotated[Path | str, BeforeValidator(_check_place)],
    ],
    BeforeValidator(_read_folders),
]


class Area(BaseModel):
    """The settings of one area."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RoleSettings(Area):
    """A role's own model; None takes the common setting."""

    model: str | None = None
    base_url: str | None = None
    api_key: Key | None = None
    temperature: Temperature | None = None
    top_p: Probability | None = None
    seed: int | None = None
    model_options: ModelOptions = Field(default_factory=dict)


class ServiceSettings(Area):
    """The settings of `trellis serve`; in the file under `[service]`."""

    keys: KeyRows = Field(default=(), exclude=True)
    """Who may use the service: `NAME:ROLE:SHA256` of each key, as `trellis serve --new-key` prints
    it. Roles: `ask`, `edit` (also documents and the graph), `admin` (also sources by path). After
    ` where ` a filter limits what the key reads to documents that pass it
    ([filters](service.md#who-sees-what))."""
    filters_kept: PositiveInt = 8
    """How many filters of keys have what they let through open in memory, beside the whole; the one
    used longest ago makes room."""
    oidc_issuer: Issuer | None = None
    """The issuer (OpenID Connect) of the tokens that the service takes beside keys
    ([tokens](service.md#tokens-of-your-identity-provider)). Its keys are fetched from its
    address."""
    oidc_audience: str = "trellis"
    """The audience (`aud`) that a token must be meant for."""
    oidc_claim: str = "groups"
    """The claim of a token that decides on role and filter: a text or a list of texts. A dot leads
    into an object: `realm_access.roles`."""
    oidc_grants: Grants = Field(default_factory=dict)
    """What a value of the claim grants: `VALUE=ROLE`, or `VALUE=ROLE where FILTER`; `*` is any
    value, and `$value` in a filter is the value as text. Several grants of a token add up, and the
    higher role counts where it is granted for all that the token reads."""
    workspaces: Folders = Field(default_factory=dict)
    """Further workspaces by name (`NAME=FOLDER`, or the address of a published one); `default` is
    that of the setting `workspace`."""
    rpm: PositiveInt | None = None
    """Requests of one key in any 60 seconds."""
    tokens_a_day: PositiveInt | None = None
    """Tokens that the questions of one key may use in a day (UTC)."""
    usd_a_day: PositiveFloat | None = None
    """US dollars that the questions of one key may cost in a day (UTC); the price of each model
    must be known."""
    at_once: PositiveInt = 16
    """Questions answered at once; others wait."""
    upload_bytes: PositiveInt = 100_000_000
    """The largest file that may be uploaded."""
    origins: Names = ()
    """Web pages that may call the service from a browser (`https://HOST`)."""
    log_texts: bool = False
    """Whether questions are written into the log."""
    kept_turns: NonNegativeInt = 500
    """Questions with their answers that each user's conversations on the page hold, in the
    workspace; the oldest go first, and 0 keeps none."""

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches the service may do everything: nobody needs a key."""
        return not self.keys and self.oidc_issuer is None


class ModelSettings(Area):
    """The models and their instructions."""

    lm: str = OFFLINE
    """The model of all roles, as DSPy names it: `openai/gpt-4o-mini`, `ollama/qwen3`; `gguf/PATH`
    is a file on this machine ([models](models.md#a-model-in-one-file))."""
    lm_base_url: str | None = None
    """The address of your own server (vLLM, Ollama, llama.cpp): up to `/v1`, or the host alone."""
    lm_api_key: Key | None = None
    """Its key; by default the value of the provider's variable, such as `OPENAI_API_KEY`."""
    roles: dict[Role, RoleSettings] = Field(default_factory=dict)
    """Another model, address or key for one role; `offline` takes its model away."""
    gguf_context: Window = GgufSettings.context
    """The tokens that one call to a model in one file (`gguf/PATH`) reads and writes together. The
    limits of prompts follow it."""
    gguf_slots: PositiveInt = GgufSettings.slots
    """Calls to such a model at once; each needs memory for a whole context."""
    gguf_threads: PositiveInt | None = None
    """Threads for such a model; by default one for each core."""
    model_backend: Backend = "torch"
    """What runs the models of sentence-transformers: embedding, reranker, grounding."""
    effort: Effort = "medium"
    """How much the models do: `low` retrieves and answers, `high` makes every call and reads larger
    contexts ([decisions](decisions.md)). `--effort` sets it for one question."""
    profile: Literal["auto", Profile] = "auto"
    """What the models can do: a `small` one is not asked for steps that do not improve its answers
    ([models](models.md#profile)). `auto` reads the size in the name: small is below 14 billion
    parameters."""
    helper_steps: HelperSteps = None
    """The helping steps that ask a model, whatever the profile: some of `rewrite`, `choose`,
    `recognize`, `agent`, `route`, `structurize`, `filter`, `decompose`, `rate`, `resolve` with
    semicolons between, or `none`. By default all with a `large` profile, none with a `small`
    one."""
    prompts: FolderPath | None = None
    """A folder with your own instruction `STEP.md` for any step
    ([prompts](howto.md#read-and-change-a-prompt))."""
    instructions: dict[str, str] = Field(default_factory=dict)
    """The same in the settings file: each instruction under the name of its step."""
    programs: FolderPath | None = None
    """A folder with compiled steps, as `step.save` writes them; by default `programs` in the
    workspace, if it exists ([compiling](compile.md))."""

    @field_validator("instructions")
    @classmethod
    def _with_folder(cls, given: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        """Add the instructions of the folder; those in the file win."""
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
    """A global concurrency limit of Prefect with slot decay, of which each call takes a slot: it
    limits calls a minute over all machines
    ([limits](operations.md#limits))."""
    max_attempts: PositiveInt = 6
    """Tries of one call before it fails."""
    timeout: PositiveFloat | None = None
    """Seconds that one try waits for the next word of your own server, or for the whole answer of a
    provider. By default 120; before the first word of your own server 600 and one more for each 40
    tokens of the prompt ([models](models.md#slow-machines))."""
    max_tokens: int = Field(default=4096, ge=16)
    """The most tokens that a model writes in one call; a cut answer is asked again with twice as
    many, once."""
    answer_cache: bool = True
    """Whether questions reuse the answers that a model has given to the same prompts."""
    temperature: Temperature | None = None
    """How freely models draw their words. By default 0, and `retry_temperature` at a second try
    ([models](models.md#sampling))."""
    retry_temperature: Temperature = 0.5
    """The temperature of a second try, after an answer that cannot be read or repeats itself."""
    top_p: Probability | None = None
    """Words are drawn from the likeliest ones that together have this probability."""
    seed: int | None = None
    """The seed of the drawing, if the server takes one."""
    model_options: ModelOptions = Field(default_factory=dict)
    """Further parameters of each call by the server's names; in a variable as JSON: `{"min_p":
    0.05, "chat_template_kwargs": {"enable_thinking": false}}`."""


class PromptLimits(Area):
    """The most tokens of each part of a prompt."""

    answer_tokens: Tokens | None = None
    """Evidence for an answer; `max_tokens` limits the answer itself."""
    notes_tokens: Tokens | None = None
    """Notes of earlier steps for an answer: structures, answers to sub-questions."""
    part_tokens: Tokens | None = None
    """Evidence for the answer to a sub-question."""
    filter_tokens: Tokens | None = None
    """Passages in a call that judges them."""
    structure_tokens: Tokens | None = None
    """Text in a call that structures it."""
    structures_tokens: Tokens | None = None
    """Text of all such calls."""
    map_tokens: Tokens | None = None
    """Reports in a call of the map step."""
    points_tokens: Tokens | None = None
    """Points in the call that joins them to an answer."""
    rate_tokens: Tokens | None = None
    """Openings of reports in a call that rates them."""
    report_tokens: Tokens | None = None
    """Evidence for one report."""
    summary_tokens: Tokens | None = None
    """Evidence for one description."""
    examples_tokens: Tokens | None = None
    """Your own examples, sent with each passage."""
    context_window: Window | None = None
    """Tokens that the models can read at once: the limits grow and shrink with it. By default the
    known window of a provider's model shrinks them, and lets them grow at high effort."""


class IndexSettings(Area):
    """How documents are indexed."""

    chunk_tokens: int = Field(default=600, ge=20)
    """The most tokens of a passage."""
    # Small passages get a small overlap.
    chunk_overlap: NonNegativeInt = Field(
        default_factory=lambda data: min(100, data["chunk_tokens"] // 6)
    )
    """Tokens that neighbouring passages share: less than half of a passage, by default at most a
    sixth."""
    gleanings: int = Field(default=0, ge=0, le=10)
    """How often a model is asked what it missed in a passage; ends early when nothing is new."""
    claims: bool = False
    """Whether a model also extracts claims, for a third more tokens; without a model there are
    none."""
    propositions: bool = False
    """Whether a model also takes each passage apart into short statements that stand alone, by
    which questions find it; one more call for each passage
    ([help](howto.md#let-a-model-help-the-search))."""
    communities: str = "leiden"
    """The algorithm for the coarsest communities: `leiden`, or any of cdlib's that partition a
    graph, with its parameters: `louvain(resolution=1.2)`, `infomap`
    ([communities](python.md#communities))."""
    community_size: int = Field(default=12, ge=2)
    """The most entities in a community of the last level."""
    community_drift: Share = 0.1
    """The share of the graph that may change before communities are detected again."""
    report_drift: Share = 0.1
    """The share of a community that may change before its report is written again."""
    failure_limit: Share = 0.1
    """The share of a run's passages, entities or reports that may fail; if more fail, nothing is
    published."""
    graph_schema: Annotated[Schema, BeforeValidator(read_schema)] = NO_SCHEMA
    """Kinds with attributes, and relations with the kinds at their ends: the table `[schema]` of
    the settings file, or `module` or `module:Name` of classes of pydantic
    ([typed facts](howto.md#ask-typed-facts))."""
    tailoring: Tailoring = UNTAILORED
    """Persona, language, kinds of entities and examples
    ([tailoring](howto.md#fit-the-prompts-to-your-field))."""

    @field_validator("chunk_overlap")
    @classmethod
    def _below_half(cls, overlap: int, info: ValidationInfo) -> int:
        if overlap * 2 >= info.data.get("chunk_tokens", overlap * 3 + 1):
            raise Unfit(str(overlap), "less than half of chunk_tokens")
        return overlap


class VectorSettings(Area):
    """Embeddings and the search among them."""

    embedding: str = "bundled"
    """`bundled` (all-MiniLM-L6-v2 from an installed package), `none`, a model of
    sentence-transformers (`ORG/NAME` on the Hub, or a folder), or an API's: `openai/NAME`,
    `mistral/NAME`, `ollama/NAME`, any name with an address ([models](models.md#embeddings))."""
    embedding_base_url: str | None = None
    """The address of your own embedding server."""
    embedding_api_key: Key | None = None
    """Its key; by default the models' key if both have the same server."""
    embedding_query_prompt: str | None = None
    """The text before each embedded question; by default the model's own."""
    embedding_passage_prompt: str | None = None
    """The same for passages."""
    embedding_input_types: Names = ()
    """What `input_type` tells a server of questions and of passages, a semicolon between: of Voyage
    `query;document`, of NVIDIA `query;passage`. By default it is not sent."""
    embedding_dimension: PositiveInt | None = None
    """How many numbers of each vector are kept; the model must be trained for that."""
    vector_store: str = "auto"
    """What searches the vectors: `auto`, `exact`, `chroma`, `chroma-server`; `usearch`, `qdrant`
    or `pgvector` with the extra of that name; or the name of an entry point of another package
    ([vectors](operations.md#vectors))."""
    vector_url: str | None = None
    """The server of such a store: `http://localhost:6333`, `postgresql://USER@HOST/DATABASE`."""
    vector_api_key: Key | None = None
    """Qdrant's key, or the password of PostgreSQL's user."""
    chroma_url: str | None = None
    """A Chroma server for the vectors instead of a folder in the workspace; `USER:PASSWORD@` before
    the host is sent as basic authentication."""
    chroma_tenant: str = "default_tenant"
    """The tenant on that server."""
    chroma_database: str = "default_database"
    """The tenant's database."""
    chroma_api_key: Key | None = None
    """A token for that server, sent as `x-chroma-token` and as `Authorization: Bearer`."""

    @field_validator("embedding_input_types")
    @classmethod
    def _two_types(cls, types: Names) -> Names:
        if len(types) not in {0, 2}:
            raise Unfit("; ".join(types), "two with a semicolon between, such as query;document")
        return types


class RerankSettings(Area):
    """Reranking of the passages of a question."""

    reranker: str = ""
    """A cross-encoder of sentence-transformers (`ORG/NAME` on the Hub, or a folder) that reranks
    passages, or a served one: `cohere/NAME`, `jina_ai/NAME`, `voyage/NAME`, any name with an
    address ([reranking](howto.md#use-a-reranker))."""
    reranker_base_url: str | None = None
    """The address of your own server, before `/rerank`."""
    reranker_api_key: Key | None = None
    """Its key; by default the value of the provider's variable, such as `CO_API_KEY`."""
    reranker_passages: PositiveInt = 30
    """How many passages of a question the reranker reads; at least those that are used."""


class AnswerSettings(Area):
    """How questions are answered."""

    strict: bool = False
    """Whether sentences of an answer that no source supports are withheld instead of flagged."""
    answer_alone: bool = False
    """Whether a model answers from what it knows (`ungrounded`) where nothing was found; otherwise
    such an answer is `abstained`."""
    grounding: str = ""
    """A cross-encoder of sentence-transformers for natural language inference that judges support;
    by default words and figures are compared."""
    memory: Literal["on", "off"] = "on"
    """Whether answers are remembered."""
    tau: Share = 0.9
    """The least cosine with a remembered question ([memory](concepts.md#a-question))."""
    theta: PositiveInt = 1
    """The least number of documents that memory must hold for the question."""
    recognition: Literal["auto", "on", "off"] = "auto"
    """Whether a model reads the statements of the graph near to a question, and the search starts
    from those that it keeps ([help](howto.md#let-a-model-help-the-search)). `auto`: at effort
    `high` with a `large` profile."""
    further_searches: NonNegativeInt | None = None
    """How often a model may search again for what the first passages leave open; by default 4 at
    effort `high` with a `large` profile in mode `struct`, else 0."""
    agent_calls: PositiveInt | None = None
    """The most calls of the model that chooses the tools of mode `agent`; by default 4, 8 or 16 by
    effort ([agent](concepts.md#agent))."""
    agent_budget_tokens: PositiveInt | None = None
    """The most tokens that these calls read and write together; by default 12,000, 48,000 or
    200,000 by effort."""
    lazy_budget: PositiveInt | None = None
    """How many passages mode `lazy` tests for relevance; by default 100 at effort `low`, 500 at
    `medium`, 1,500 at `high`. `--budget` sets it for one question."""
    pages: FolderPath | None = None
    """A folder whose files every question reads in addition to the index
    ([versions](howto.md#go-back-to-an-earlier-version))."""


class PlaceSettings(Area):
    """The folder of state and the machines that work."""

    published_dir: FolderPath = PUBLISHED_DIR
    """Where a workspace that is named by an address has its folder: what is fetched, and what is
    kept of questions and answers here."""
    workspace: FolderPath = Path(".trellis")
    """The folder of state; or the address of a published index (`s3://BUCKET/PREFIX`), which is
    only read ([many servers](operations.md#many-servers-one-index))."""
    follow_seconds: PositiveFloat = 30.0
    """How often a server of a published index looks whether a newer one is there."""
    cache_dir: FolderPath | None = None
    """A folder for models' answers and vectors that several workspaces can share; by default the
    workspace."""
    keep_generations: PositiveInt = 5
    """How many generations are kept."""
    runner: Literal["local", "dask"] = "local"
    """Where the batches of an index run are processed ([Dask](operations.md#dask))."""
    runner_address: str | None = None
    """The Dask cluster to join."""

    @field_validator("workspace", mode="before")
    @classmethod
    def _local(cls, value: object, info: ValidationInfo) -> object:
        return folder_of(value, info.data.get("published_dir", PUBLISHED_DIR))

    runner_workers: PositiveInt | None = None
    """How many workers to start; by default one for each core."""
    trace_texts: bool = False
    """Whether [traces](operations.md#traces) hold the texts of questions, passages, prompts and
    answers."""


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
    """The settings of all areas together."""


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
