"""The settings: parameter > environment (`TRELLIS_…`) > `trellis.toml` > default, read here and nowhere else.

A key that stands in its provider's own variable (`OPENAI_API_KEY`) is looked up in `prompts/engine/providers.py`.
"""

import difflib
import hashlib
import itertools
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
)

from prompts.engine.effort import LIMIT_NAMES, USUAL_WINDOW, Effort, Policy, Profile, guessed_profile
from prompts.engine.key_masking import keep_secret, secrets_of_address, secrets_of_environment
from prompts.engine.models import BACKGROUND, OFFLINE, ROLES, CallSettings, GgufSettings, ModelChoice, Role
from prompts.engine.providers import Backend
from prompts.engine.spending import window_of
from prompts.tailoring import (
    UNTAILORED,
    EntityType,
    Example,
    ExampleEntity,
    ExampleRelation,
    Tailoring,
    Unfit,
    from_toml,
)
from storage.errors import SettingsError, SettingsFileError, UnknownSetting, did_you_mean
from storage.files import text_of_file

PREFIX = "TRELLIS_"
# Before the name of a secret block of Prefect's, in the place of a key.
BLOCK = "prefect-secret:"
DEFAULT_CONFIG = "trellis.toml"
DEFAULT_OVERLAP = 100
_HIDDEN = "(hidden)"
# In the workspace: what was found out about its documents. Every other place overrides it, value by value.
TAILORING_FILE = "tailoring.toml"
# In the workspace too: compiled steps, where no other folder of them is set.
PROGRAMS_FOLDER = "programs"
# Of a tailoring, what a variable can hold; kinds stand apart by semicolons.
_TAILORING_VARIABLES = ("persona", "language", "entity_types")
_ROLE_SUFFIXES = {
    "model": "",
    "base_url": "_BASE_URL",
    "api_key": "_API_KEY",
    "temperature": "_TEMPERATURE",
    "top_p": "_TOP_P",
    "seed": "_SEED",
    "model_options": "_MODEL_OPTIONS",
}


_OPTIONS = 'an object of JSON, such as {"min_p": 0.05}'
# What makes a call the one that it is; the program writes it.
_NO_OPTIONS = {"model", "messages", "stream", "n", "response_format"}


def _options(value: object) -> object:
    """The parameters of a server, which a variable holds as JSON."""
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise Unfit(str(value), _OPTIONS) from error
    if not isinstance(read, dict):
        raise Unfit(str(value), _OPTIONS)
    if own := sorted(_NO_OPTIONS & read.keys()):
        raise Unfit(own[0], "parameters of drawing words: this one is the program's own")
    return read


ModelOptions = Annotated[dict[str, Any], BeforeValidator(_options)]


class RoleSettings(BaseModel):
    """A role's own model; what is None is taken from the common settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    model_options: ModelOptions = Field(default_factory=dict)


# NAME:ROLE:SHA-256 of the key, in hexadecimal digits.
KEY_ROW = r"^[\w.@-]{1,64}:(ask|edit|admin):[0-9a-f]{64}$"
WORKSPACE_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
_LONGEST_NAME = 255  # bytes of one name of a path, as file systems have it


def _nameable(value: object) -> object:
    """A path whose names a file system can hold. The empty one (a script's variable that is not set) would be the
    folder that the program happens to stand in."""
    written = str(value)
    if not written.strip() or "\0" in written:
        raise Unfit(written, "the path of a folder, . for the one that you are in")
    if longest := max((part for part in Path(written).parts if len(os.fsencode(part)) > _LONGEST_NAME), default=""):
        raise Unfit(longest, f"a path whose names have {_LONGEST_NAME} bytes at most")
    return value


FolderPath = Annotated[Path, BeforeValidator(_nameable)]


_OF_NOTHING = hashlib.sha256(b"").hexdigest()


def _consistent(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The rows of keys, which give one role to each name."""
    roles = dict[str, str]()
    for row in rows:
        name, role, digest = row.rsplit(":", 2)
        if roles.setdefault(name, role) != role:
            raise Unfit(name, f"one role for each name: {name} has {roles[name]} and {role}")
        if digest == _OF_NOTHING:
            raise Unfit(name, "a key that is not empty: make one with `trellis serve --new-key NAME:ROLE`")
    return rows


class ServiceSettings(BaseModel):
    """How `trellis serve` serves; in the file under `[service]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: Annotated[tuple[Annotated[str, Field(pattern=KEY_ROW)], ...], AfterValidator(_consistent)] = Field(
        default=(), exclude=True,
        description="Who may use the service: `NAME:ROLE:SHA256` of each key, as `trellis serve --new-key` makes them. "
        "Roles: `ask`, `edit` (documents and the graph too), `admin` (sources by their paths too).",
    )  # fmt: skip
    workspaces: dict[Annotated[str, Field(pattern=WORKSPACE_NAME)], FolderPath] = Field(
        default_factory=dict, description="Further workspaces by name (`NAME=FOLDER`); `default` is the usual one."
    )
    rpm: int | None = Field(default=None, ge=1, description="Requests of one key in any 60 seconds.")
    tokens_a_day: int | None = Field(
        default=None, ge=1, description="Tokens that models may take for the questions of one key in a day (UTC)."
    )
    usd_a_day: float | None = Field(
        default=None, gt=0,
        description="US dollars that models may take for the questions of one key in a day (UTC), where all their "
        "prices are known.",
    )  # fmt: skip
    at_once: int = Field(default=16, ge=1, description="Questions that are answered at once; others wait.")
    upload_bytes: int = Field(default=100_000_000, ge=1, description="The largest file that may be uploaded.")
    origins: tuple[str, ...] = Field(
        default=(), description="Web pages that may call the service from a browser (`https://HOST`)."
    )
    log_texts: bool = Field(default=False, description="Whether questions are written into the log.")


class Settings(BaseModel):
    """All settings, checked. Keys in `trellis.toml` have the same names; a role's are under `[roles.NAME]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: FolderPath = Field(default=Path(".trellis"), description="The folder of state.")
    lm: str = Field(
        default=OFFLINE,
        description="The model of all roles, as DSPy names it: `openai/gpt-4o-mini`, `ollama/qwen3`; "
        "`gguf/PATH` is a file on this machine ([models](models.md#a-model-in-one-file)).",
    )
    gguf_context: int = Field(
        default=GgufSettings.context, ge=2000,
        description="Of a model in one file (`gguf/PATH`): the tokens that one call reads and writes together. The "
        "limits of prompts follow it.",
    )  # fmt: skip
    gguf_slots: int = Field(
        default=GgufSettings.slots, ge=1, description="Its calls at once; each takes memory for a whole context."
    )
    gguf_threads: int | None = Field(
        default=None, ge=1, description="The threads that compute it; without it one for each core."
    )
    lm_base_url: str | None = Field(
        default=None, description="The address of an own server, up to `/v1` (vLLM, Ollama, llama.cpp)."
    )
    lm_api_key: SecretStr | None = Field(
        default=None, description="Its key; without it that of the provider's own variable, as `OPENAI_API_KEY`."
    )
    roles: dict[Role, RoleSettings] = Field(
        default_factory=dict, description="For one role another model, address or key; `offline` takes the role out."
    )
    embedding: str = Field(
        default="bundled",
        description="`bundled` (all-MiniLM-L6-v2 from an installed package), `none`, a model of sentence-transformers "
        "(`ORG/NAME` on the Hub, or a folder), or an API's: `openai/NAME`, `mistral/NAME`, `ollama/NAME`, any name "
        "with an address ([models](models.md#embeddings)).",
    )
    embedding_base_url: str | None = Field(default=None, description="The address of an own embedding server.")
    embedding_api_key: SecretStr | None = Field(
        default=None, description="Its key; the models' key serves where both are one server."
    )
    embedding_query_prompt: str | None = Field(
        default=None,
        description="What is put before a question that is embedded; without it what the model itself puts there.",
    )
    embedding_passage_prompt: str | None = Field(default=None, description="The same for passages.")
    embedding_dimension: int | None = Field(
        default=None, ge=1,
        description="How many of a vector's first numbers are kept, of a model that was trained for that.",
    )  # fmt: skip
    model_backend: Backend = Field(
        default="torch",
        description="What computes the models of sentence-transformers: embedding, reranker, grounding.",
    )
    reranker: str = Field(
        default="",
        description="A cross-encoder of sentence-transformers (`ORG/NAME` on the Hub, or a folder) that ranks passages "
        "again, or a served one: `cohere/NAME`, `jina_ai/NAME`, `voyage/NAME`, any name with an address "
        "([retrieval](retrieval.md#reranking)).",
    )
    reranker_base_url: str | None = Field(
        default=None, description="The address of a server of one's own, before `/rerank`."
    )
    reranker_api_key: SecretStr | None = Field(
        default=None, description="Its key; without it that of the provider's own variable, as `CO_API_KEY`."
    )
    reranker_passages: int = Field(
        default=30, ge=1, description="How many passages the reranker reads of a question, at least those that go on."
    )
    chunk_tokens: int = Field(default=600, ge=20, description="The most tokens of a passage.")
    chunk_overlap: int = Field(
        default=DEFAULT_OVERLAP, ge=0,
        description="Tokens that neighbouring passages share: less than half of a passage (small passages: a sixth).",
    )  # fmt: skip
    effort: Effort = Field(
        default="medium",
        description="How much the models do: `low` retrieves and answers, `high` spares no call and reads larger "
        "contexts ([decisions](decisions.md)). `--effort` for one question.",
    )
    profile: Literal["auto", Profile] = Field(
        default="auto",
        description="What the models can do: a `small` one is not asked for steps that it gains nothing by "
        "([models](models.md#profile)). `auto` goes by the size in the name: below 14 billion parameters is small.",
    )
    prompts: FolderPath | None = Field(
        default=None,
        description="A folder with your own instruction `STEP.md` for any step ([models](models.md#prompts)).",
    )
    instructions: dict[str, str] = Field(
        default_factory=dict, description="The same in the settings file: the instruction of a step under its name."
    )
    programs: FolderPath | None = Field(
        default=None,
        description="A folder with compiled steps, as `step.save` writes them; `programs` in the workspace if there is "
        "one ([compiling](compile.md)).",
    )
    gleanings: int = Field(
        default=0, ge=0, le=10,
        description="How often a model is asked again what it has missed in a passage; ends early when nothing is new.",
    )  # fmt: skip
    claims: bool = Field(
        default=False,
        description="Whether a model is asked for claims too, for a third more tokens; without a model there are none.",
    )
    concurrency: int = Field(default=16, ge=1, description="Calls in flight to one server.")
    batches: bool = Field(
        default=False,
        description="Whether the calls of an index run go in batches (OpenAI, Anthropic, Gemini, xAI), at half the "
        "price: an answer may take a day ([models](models.md#batches)).",
    )
    rpm: int | None = Field(default=None, ge=1, description="Requests to one server in any 60 seconds.")
    tpm: int | None = Field(default=None, ge=1, description="Tokens to one server in any 60 seconds.")
    prefect_limit: str = Field(
        default="",
        description="A global concurrency limit of Prefect with slot decay, of which each call takes a slot first: "
        "calls a minute over all machines ([limits](deployment.md#limits-over-all-machines)).",
    )
    max_attempts: int = Field(default=6, ge=1, description="Tries of one call before it is an error.")
    timeout: float | None = Field(
        default=None, gt=0,
        description="Seconds that one try waits for a word of the server, and a provider's for the whole answer. Where "
        "it is not set 120, and of a server of your own 600 before the first word and a second for each 40 tokens of "
        "the prompt ([models](models.md#slow-machines)).",
    )  # fmt: skip
    max_tokens: int = Field(
        default=4096, ge=16,
        description="The most tokens that a model writes in one call; what is cut gets twice as many, once.",
    )  # fmt: skip
    temperature: float | None = Field(
        default=None, ge=0, le=2,
        description="How freely models draw their words. Where it is not set 0, and `retry_temperature` at a second "
        "try ([models](models.md#sampling)).",
    )  # fmt: skip
    retry_temperature: float = Field(
        default=0.5, ge=0, le=2,
        description="The temperature of a second try: after an answer that cannot be read, or says the same again and "
        "again.",
    )  # fmt: skip
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Words are drawn from the likeliest that have this probability together."
    )
    seed: int | None = Field(default=None, description="The seed of that drawing, where the server has one.")
    model_options: ModelOptions = Field(
        default_factory=dict,
        description="Further parameters of each call, as the server names them; in a variable as JSON: "
        '`{"min_p": 0.05, "chat_template_kwargs": {"enable_thinking": false}}`.',
    )
    cache_dir: FolderPath | None = Field(
        default=None,
        description="A folder for models' answers and vectors that several workspaces share, instead of the workspace.",
    )
    keep_generations: int = Field(default=5, ge=1, description="How many generations stay.")
    failure_limit: float = Field(
        default=0.1, ge=0, le=1,
        description="The share of a run's passages, entities or reports that may fail; beyond it nothing is published.",
    )  # fmt: skip
    # The title is a question that was answered from all that it needs, so one source is enough.
    tau: float = Field(
        default=0.8, ge=0, le=1,
        description="How like a remembered question must be, by words or by cosine ([memory](memory.md)).",
    )  # fmt: skip
    theta: int = Field(default=1, ge=1, description="How many documents memory must know of it.")
    memory: Literal["on", "off"] = Field(default="on", description="Whether answers are remembered.")
    answer_cache: bool = Field(
        default=True,
        description="Whether a question's steps may get an answer that a model has given to the same prompt before.",
    )
    grounding: str = Field(
        default="",
        description="The name of a cross-encoder of sentence-transformers, for natural language inference, that judges "
        "support; without it words and figures do.",
    )
    strict: bool = Field(
        default=False,
        description="Whether sentences of an answer that no source supports are withheld instead of flagged.",
    )
    answer_alone: bool = Field(
        default=False,
        description="Whether a model answers from what it knows, as `ungrounded`, where nothing was found to answer "
        "from; else such a question is `abstained`.",
    )
    answer_tokens: int | None = Field(
        default=None, ge=200, description="Evidence that an answer is written from, not what is written (`max_tokens`)."
    )
    notes_tokens: int | None = Field(
        default=None, ge=200, description="What earlier steps made of the evidence: structures, answers of parts."
    )
    part_tokens: int | None = Field(default=None, ge=200, description="Evidence of a sub-question's answer.")
    filter_tokens: int | None = Field(default=None, ge=200, description="Passages in a call that judges them.")
    structure_tokens: int | None = Field(default=None, ge=200, description="Text in a call that structures it.")
    structures_tokens: int | None = Field(default=None, ge=200, description="Text of all such calls.")
    map_tokens: int | None = Field(default=None, ge=200, description="Reports in a call of the map step.")
    points_tokens: int | None = Field(default=None, ge=200, description="Points that the last step of it reads.")
    rate_tokens: int | None = Field(default=None, ge=200, description="Openings of reports in a call that rates them.")
    report_tokens: int | None = Field(default=None, ge=200, description="The most that one report is written from.")
    summary_tokens: int | None = Field(
        default=None, ge=200, description="The most that one description is written from."
    )
    examples_tokens: int | None = Field(default=None, ge=200, description="Your own examples, sent with each passage.")
    context_window: int | None = Field(
        default=None, ge=2000,
        description="Tokens that the models can read at once: the limits grow and shrink with it. Where it is not set, "
        "the known window of a provider's model shrinks them, and lets them grow at high effort.",
    )  # fmt: skip
    communities: str = Field(
        default="leiden",
        description="What finds the coarsest communities: `leiden`, or any algorithm of cdlib that partitions a graph, "
        "with its parameters: `louvain(resolution=1.2)`, `infomap` ([communities](python.md#communities)).",
    )
    community_size: int = Field(default=12, ge=2, description="The most entities of a community of the last level.")
    community_drift: float = Field(
        default=0.1, ge=0, le=1, description="The share of the graph that may change before communities are made anew."
    )
    report_drift: float = Field(
        default=0.1, ge=0, le=1, description="The share of a community that may change before its report is made anew."
    )
    runner: Literal["local", "dask"] = Field(
        default="local", description="Where batches of an index run go ([scaling](scaling.md#runners))."
    )
    runner_address: str | None = Field(default=None, description="The Dask cluster to join.")
    runner_workers: int | None = Field(default=None, ge=1, description="How many workers to start; one for each core.")
    vector_store: str = Field(
        default="auto",
        description="What searches the vectors: `auto`, `exact`, `chroma`, `chroma-server`, or a store of one's own as "
        "`package.module:name` ([scaling](scaling.md#vector-stores)).",
    )
    chroma_url: str | None = Field(
        default=None,
        description="A Chroma server for the vectors, instead of a folder in the workspace; `USER:PASSWORD@` before "
        "the host is sent as basic authentication.",
    )
    chroma_tenant: str = Field(default="default_tenant", description="The tenant on that server.")
    chroma_database: str = Field(default="default_database", description="The tenant's database.")
    chroma_api_key: SecretStr | None = Field(
        default=None, description="A token for that server, sent as `x-chroma-token` and as `Authorization: Bearer`."
    )
    pages: FolderPath | None = Field(
        default=None,
        description="A folder whose files every question reads beside the index ([versions](versions.md)).",
    )
    tailoring: Tailoring = Field(
        default=UNTAILORED,
        description="Persona, language, kinds of entities and examples ([models](models.md#fit-to-a-domain)).",
    )
    service: ServiceSettings = Field(
        default_factory=ServiceSettings, description="What `trellis serve` serves and to whom ([service](service.md))."
    )

    # What the folder of programs holds, so that workers on other machines have it.
    _compiled: tuple[dict[str, Any], ...] = PrivateAttr(default=())

    @property
    def compiled(self) -> tuple[dict[str, Any], ...]:
        """The compiled steps: the state that DSPy saved of each."""
        return self._compiled

    def model_choices(self) -> dict[Role, ModelChoice | None]:
        """The model of each role; None is offline."""
        return {role: self._choice(role) for role in ROLES}

    def _choice(self, role: Role) -> ModelChoice | None:
        own = self.roles.get(role, RoleSettings())
        name = own.model or self.lm
        if name == OFFLINE:
            return None
        # The common address and key belong to the common provider: another one must not get them.
        shared = self.lm == OFFLINE or name.partition("/")[0] == self.lm.partition("/")[0]
        base_url = own.base_url or (self.lm_base_url if shared else None)
        key = own.api_key or (self.lm_api_key if shared and base_url == self.lm_base_url else None)
        return ModelChoice(name, base_url, key.get_secret_value() if key else None)

    def policy(self, effort: Effort | None = None) -> Policy:
        """The effort of a question (None: the one that is set) and the token limits of its prompts."""
        effort = effort or self.effort
        limits = {name: getattr(self, f"{name}_tokens") for name in LIMIT_NAMES}
        return Policy.of(effort, self.context_window or self._listed_window(effort), limits, self.profile_in_force())

    def profile_in_force(self) -> Profile:
        """The profile that is set, or else the one that the models' names tell: small as soon as one is that a
        question asks."""
        if self.profile != "auto":
            return self.profile
        choices = [self._choice(role) for role in ROLES if role not in BACKGROUND]
        names = {choice.name for choice in choices if choice is not None and not choice.is_encoder}
        guessed = {guessed_profile(name, self.context_window) for name in names}
        return "small" if "small" in guessed else "large"

    def _listed_window(self, effort: Effort) -> int | None:
        """The smallest known context window of the models; what is larger is filled unasked at high effort alone."""
        choices = [choice for choice in self.model_choices().values() if choice and choice.base_url is None]
        windows = [window for choice in choices if (window := self._window(choice))]
        return min(windows if effort == "high" else [*windows, USUAL_WINDOW], default=None)

    def _window(self, choice: ModelChoice) -> int | None:
        return self.gguf_context if choice.is_gguf else window_of(choice.name)

    def embedding_key(self) -> str | None:
        """The embedding server's own key; the common models' key only where both are one server."""
        hosted = self.embedding.startswith("openai/") and self.lm.startswith("openai/")
        same = self.embedding_base_url == self.lm_base_url and (hosted or self.embedding_base_url is not None)
        key = self.embedding_api_key or (self.lm_api_key if same else None)
        return key.get_secret_value() if key else None

    def keep_secrets(self) -> None:
        """From now on mask the keys that are set, those that providers look for in the environment, and passwords."""
        keys = [self.lm_api_key, self.embedding_api_key, self.reranker_api_key, self.chroma_api_key]
        keys += [role.api_key for role in self.roles.values()]
        addresses = [self.lm_base_url, self.embedding_base_url, self.reranker_base_url]
        addresses += [role.base_url for role in self.roles.values()]
        keep_secret(key.get_secret_value() for key in keys if key is not None)
        for address in (*addresses, self.chroma_url, self.runner_address):
            keep_secret(secrets_of_address(address))
        keep_secret(secrets_of_environment(os.environ))

    def call_settings(self) -> CallSettings:
        """How calls to models are made."""
        return CallSettings(
            concurrency=self.concurrency,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            max_tokens=self.max_tokens,
            batches=self.batches,
            gguf=GgufSettings(self.gguf_context, self.gguf_slots, self.gguf_threads),
            sampling={role: self._sampling(role) for role in ROLES},
            retry_temperature=self.retry_temperature,
        )

    def _sampling(self, role: Role) -> dict[str, object]:
        """What is set of how a role's model draws its words; the role's own goes before."""
        own = self.roles.get(role, RoleSettings())
        values: dict[str, object] = {**self.model_options, **own.model_options}
        for name in ("temperature", "top_p", "seed"):
            for value in (getattr(self, name), getattr(own, name)):
                if value is not None:
                    values[name] = value
        return values


def load_settings(
    parameters: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """The settings in force. `parameters` with a value None count as not given.

    Raises SettingsError, with the value and the choices, for an unknown name or a value that is not of the type.
    """
    environ = os.environ if environment is None else environment
    overrides = {name: _plain(value) for name, value in (parameters or {}).items() if value is not None}
    values = _merge(_merge(_from_file(environ), _from_environment(environ)), overrides)
    values = _with_secrets(_merge(_from_workspace(values), values))
    if "chunk_overlap" not in values and str(values.get("chunk_tokens", "")).isdecimal():
        # Whoever asks for small chunks has not asked for an overlap of most of them.
        values["chunk_overlap"] = min(DEFAULT_OVERLAP, int(str(values["chunk_tokens"])) // 6)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise _explain(error) from error
    if settings.prompts is not None:
        read = read_instructions(settings.prompts) | settings.instructions
        settings = settings.model_copy(update={"instructions": read})
    if settings.instructions:
        _check_steps(settings.instructions)
    own = settings.workspace / PROGRAMS_FOLDER
    if settings.programs is not None or own.is_dir():
        settings._compiled = read_programs(settings.programs or own)  # noqa: SLF001 -- its own, filled here alone
    if settings.chunk_overlap * 2 >= settings.chunk_tokens:
        raise SettingsError("chunk_overlap", settings.chunk_overlap, "less than half of chunk_tokens")
    tokens, most = sum(example.tokens() for example in settings.tailoring.examples), settings.policy().limits.examples
    if tokens > most:
        expected = f"fewer or shorter ones of {most} tokens in all, or a larger {PREFIX}EXAMPLES_TOKENS"
        raise SettingsError("tailoring.examples", f"{tokens} tokens", expected)
    return settings


def read_instructions(folder: Path) -> dict[str, str]:
    """The instructions of a folder, by step; SettingsError where there is no such folder, or a file has no text."""
    if not folder.is_dir():
        raise SettingsError("prompts", str(folder), "a folder with a file STEP.md for each prompt to replace")
    instructions: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        try:
            instructions[path.stem] = text_of_file(path).strip()
        except UnicodeDecodeError as error:
            raise SettingsError("prompts", str(path), "a text in UTF-8") from error
        if not instructions[path.stem]:
            raise SettingsError("prompts", str(path), "a file with the instruction in it, or remove it")
    return instructions


def read_programs(folder: Path) -> tuple[dict[str, Any], ...]:
    """The compiled steps of a folder, in the order of the files' names; of a program of several steps each.

    SettingsError where there is no such folder, or a file is no such program or does not fit this version's steps.
    """
    if not folder.is_dir():
        raise SettingsError("programs", str(folder), "a folder with compiled steps, each as `step.save` writes it")
    compiled: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            saved = json.loads(text_of_file(path))
        except ValueError as error:
            raise SettingsError("programs", str(path), "JSON as `step.save` writes it") from error
        states = [saved, *saved.values()] if isinstance(saved, dict) else []
        states = [state for state in states if isinstance(state, dict) and {"step", "shape", "demos"} <= state.keys()]
        if not states:
            raise SettingsError("programs", str(path), "a step of Trellis that was compiled and saved by DSPy")
        from prompts.registry import misfit  # loads all prompts: only whoever has compiled one waits for that

        for state in states:
            if problem := misfit(state):
                raise SettingsError("programs", str(path), problem)
        compiled += states
    return tuple(compiled)


def _check_steps(instructions: Mapping[str, str]) -> None:
    from prompts.registry import instruction_names  # loads all prompts: only whoever replaces one waits for that

    known = instruction_names()
    for name in instructions:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"{near[0]!r}, or another of " if near else ""
            raise SettingsError("prompts", name, f"the name of a step: {meant}{', '.join(known)}")


def _merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """High over low; tables value by value."""
    both = {name for name in high if isinstance(high[name], Mapping) and isinstance(low.get(name), Mapping)}
    return {**low, **high, **{name: _merge(low[name], high[name]) for name in both}}


def _with_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with each key that names a secret block of Prefect's read from its server."""
    read = dict(values)
    for name, value in values.items():
        if isinstance(value, Mapping):
            read[name] = _with_secrets(value)
        elif name.endswith("api_key") and str(value).startswith(BLOCK):
            from flows.orchestration.secret_blocks import secret_of  # Prefect takes a second to load

            read[name] = secret_of(str(value).removeprefix(BLOCK), name)
    return read


def _plain(value: object) -> object:
    """A tailoring as the values that are set in it."""
    return value.model_dump(exclude_unset=True) if isinstance(value, Tailoring) else value


def _from_workspace(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tailoring that is kept with the workspace of these values."""
    path = Path(str(values.get("workspace", Settings.model_fields["workspace"].default))) / TAILORING_FILE
    if not os.path.isfile(path):  # noqa: PTH113 -- Path's raises for what cannot be a path: the settings tell that
        return {}
    try:
        return {"tailoring": _plain(from_toml(text_of_file(path)))}
    except ValidationError as error:
        raise _explain(error, f"{path}: ", Tailoring) from error
    except (ValueError, RecursionError) as error:
        raise SettingsFileError(path, error) from error


def settings_file(environ: Mapping[str, str] | None = None) -> Path:
    """Where the file of settings is, if there is one."""
    return Path((os.environ if environ is None else environ).get(f"{PREFIX}CONFIG") or DEFAULT_CONFIG)


def _from_file(environ: Mapping[str, str]) -> dict[str, Any]:
    named, path = environ.get(f"{PREFIX}CONFIG"), settings_file(environ)
    if not os.path.exists(path):  # noqa: PTH110 -- Path's raises for a name that is too long
        if named:
            raise SettingsError(f"{PREFIX}CONFIG", named, "the path of a file that exists")
        return {}
    try:
        return tomllib.loads(text_of_file(path))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a figure too long, tables too deep
        raise SettingsFileError(path, error) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known: dict[str, tuple[str, ...]] = {
        f"{PREFIX}{name.upper()}": (name,) for name in Settings.model_fields if name not in {*_TABLES, "instructions"}
    }
    for role, (field, suffix) in itertools.product(ROLES, _ROLE_SUFFIXES.items()):
        known[f"{PREFIX}LM_{role.upper()}{suffix}"] = ("roles", role, field)
    known |= {f"{PREFIX}TAILORING_{name.upper()}": ("tailoring", name) for name in _TAILORING_VARIABLES}
    known |= {f"{PREFIX}SERVICE_{name.upper()}": ("service", name) for name in ServiceSettings.model_fields}
    values: dict[str, Any] = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable == f"{PREFIX}CONFIG" or value == "":
            continue
        if variable not in known:
            near = difflib.get_close_matches(variable, [*known, f"{PREFIX}CONFIG"], n=3)
            raise UnknownSetting(variable, near or sorted(known))
        *tables, name = known[variable]
        table = values
        for outer in tables:
            table = table.setdefault(outer, {})
        table[name] = _several(value, name)
    return values


def _several(value: str, name: str) -> object:
    """What a variable holds, of a setting of several values apart by semicolons each."""
    parts = [part.strip() for part in value.split(";") if part.strip()]
    if name == "keys" and not parts:
        expected = "rows NAME:ROLE:SHA256 with semicolons between; where it is not set, nobody needs a key"
        raise SettingsError("service.keys", value[:80], expected)
    if name == "workspaces":
        return dict(part.partition("=")[::2] for part in parts)
    return parts if name in {"entity_types", "keys", "origins"} else value


# The tables of a settings file, by the key under which each stands.
_TABLES: dict[str, type[BaseModel]] = {
    "roles": RoleSettings,
    "service": ServiceSettings,
    "tailoring": Tailoring,
    "entity_types": EntityType,
    "examples": Example,
    "entities": ExampleEntity,
    "relations": ExampleRelation,
}


def _explain(error: ValidationError, place: str = "", model: type[BaseModel] = Settings) -> SettingsError:
    first = error.errors(include_url=False, include_input=True)[0]
    name = ".".join(str(part) for part in first["loc"])
    cause, value = first.get("ctx", {}).get("error"), first.get("input")
    if isinstance(cause, Unfit):
        return SettingsError(place + name, cause.value[:80], cause.expected)
    shown = _HIDDEN if "key" in name else value if isinstance(value, int | float) else str(value)[:80]
    if first["type"] == "extra_forbidden":
        *outer, last = map(str, first["loc"])
        fields = next((_TABLES[part] for part in reversed(outer) if part in _TABLES), model).model_fields
        near = difflib.get_close_matches(last, fields, n=3) or sorted(fields)
        return UnknownSetting(place + name, near)
    if first["type"] == "missing":
        return SettingsError(place + name, "", "a value: it cannot be left out")
    if "roles" in name:
        return SettingsError(name, shown, f"one of the roles: {', '.join(ROLES)}")
    expected = first["msg"].removeprefix("Input should be ").partition(", unable")[0]
    choices = re.findall(r"'([^']+)'", expected) if first["type"] == "literal_error" else ()
    return SettingsError(place + name, shown, expected, did_you_mean(str(value), choices))
