"""The settings in force: parameter > environment (`TRELLIS_…`) > `trellis.toml` > default.

They are read here and nowhere else. A key that stands in its provider's own variable
(`OPENAI_API_KEY`) is looked up in `prompts/engine/providers.py`.
"""

import difflib
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from flows.own_prompts import read_programs
from flows.setting_areas import AllAreas, PlaceSettings, RoleSettings, ServiceSettings
from prompts.engine.effort import (
    LIMIT_NAMES,
    USUAL_WINDOW,
    Effort,
    Policy,
    Profile,
    guessed_profile,
)
from prompts.engine.key_masking import keep_secret, secrets_of_address, secrets_of_environment
from prompts.engine.providers import OFFLINE, GgufSettings, ModelChoice
from prompts.engine.roles import BACKGROUND, ROLES, CallSettings, Role
from prompts.engine.spending import window_of
from prompts.tailoring import (
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
CONFIG = f"{PREFIX}CONFIG"
DEFAULT_CONFIG = "trellis.toml"
# In the workspace: what was found out about its documents, and compiled steps.
TAILORING_FILE = "tailoring.toml"
PROGRAMS_FOLDER = "programs"
HIDDEN = "(hidden)"
# Of a tailoring, what a variable can hold.
TAILORING_VARIABLES = ("persona", "language", "entity_types")
# The tables of a settings file, by the key under which each stands.
TABLES: dict[str, type[BaseModel]] = {
    "roles": RoleSettings,
    "service": ServiceSettings,
    "tailoring": Tailoring,
    "entity_types": EntityType,
    "examples": Example,
    "entities": ExampleEntity,
    "relations": ExampleRelation,
}


class Settings(AllAreas, BaseSettings):
    """All settings, checked. Keys in `trellis.toml` have the same names."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_ignore_empty=True,
        env_nested_delimiter="_",  # TRELLIS_SERVICE_RPM: `rpm` of `service`
        env_nested_max_split=1,
        enable_decoding=False,  # several values stand apart by semicolons, not as JSON
        use_attribute_docstrings=True,
    )

    service: ServiceSettings = Field(default_factory=ServiceSettings)
    """What `trellis serve` serves and to whom ([service](service.md))."""

    # What the folder of programs holds, so that workers on other machines have it.
    _compiled: tuple[dict[str, Any], ...] = PrivateAttr(default=())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Name the sources, the strongest first."""
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, _roles_of_environment()),
            InitSettingsSource(settings_cls, _values_of_file()),
            WorkspaceTailoring(settings_cls),
        )

    def model_post_init(self, context: Any, /) -> None:
        """Read the compiled steps: of the folder that is set, or else of the workspace's own."""
        own = self.workspace / PROGRAMS_FOLDER
        if self.programs is not None or own.is_dir():
            self._compiled = read_programs(self.programs or own)

    @model_validator(mode="after")
    def _examples_fit(self) -> Self:
        if not self.tailoring.examples:
            return self
        tokens = sum(example.tokens() for example in self.tailoring.examples)
        most = self.policy().limits.examples
        if tokens > most:
            larger = f"or a larger {PREFIX}EXAMPLES_TOKENS"
            form = f"fewer or shorter ones of {most} tokens in all, {larger}"
            raise SettingsError("tailoring.examples", f"{tokens} tokens", form)
        return self

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
        # The common address and key belong to the common provider: no other one must get them.
        shared = self.lm == OFFLINE or name.partition("/")[0] == self.lm.partition("/")[0]
        base_url = own.base_url or (self.lm_base_url if shared else None)
        common_key = self.lm_api_key if shared and base_url == self.lm_base_url else None
        key = own.api_key or common_key
        return ModelChoice(name, base_url, key.get_secret_value() if key else None)

    def policy(self, effort: Effort | None = None) -> Policy:
        """The effort of a question (None: the one that is set), and the limits of its prompts."""
        effort = effort or self.effort
        limits = {name: getattr(self, f"{name}_tokens") for name in LIMIT_NAMES}
        window = self.context_window or self._known_window(effort)
        return Policy.of(effort, window, limits, self.profile_in_force(), self.helper_steps)

    def profile_in_force(self) -> Profile:
        """The profile that is set; else small as soon as a model that a question asks is small."""
        if self.profile != "auto":
            return self.profile
        choices = [self._choice(role) for role in ROLES if role not in BACKGROUND]
        names = {choice.name for choice in choices if choice and not choice.is_encoder}
        guessed = {guessed_profile(name, self.context_window) for name in names}
        return "small" if "small" in guessed else "large"

    def _known_window(self, effort: Effort) -> int | None:
        """The smallest known window; only high effort fills more than the usual one unasked."""
        choices = [choice for choice in self.model_choices().values() if choice]
        hosted = [choice for choice in choices if choice.base_url is None]
        known = [window for choice in hosted if (window := self._window(choice))]
        return min(known if effort == "high" else [*known, USUAL_WINDOW], default=None)

    def _window(self, choice: ModelChoice) -> int | None:
        return self.gguf_context if choice.is_gguf else window_of(choice.name)

    def embedding_key(self) -> str | None:
        """The embedding server's own key; the models' key only where both are one server."""
        hosted = self.embedding.startswith("openai/") and self.lm.startswith("openai/")
        same_address = self.embedding_base_url == self.lm_base_url
        same = same_address and (hosted or self.embedding_base_url is not None)
        key = self.embedding_api_key or (self.lm_api_key if same else None)
        return key.get_secret_value() if key else None

    def keep_secrets(self) -> None:
        """From now on mask the keys and passwords that are set, and the keys of providers."""
        for holder in (self, *self.roles.values()):
            for name in type(holder).model_fields:
                value = getattr(holder, name)
                if name.endswith("api_key") and value is not None:
                    keep_secret([value.get_secret_value()])
                elif name.endswith(("_url", "_address")):
                    keep_secret(secrets_of_address(value))
        keep_secret(secrets_of_environment(os.environ))

    def call_settings(self) -> CallSettings:
        """How calls to models are made."""
        return CallSettings(
            concurrency=self.concurrency,
            max_attempts=self.max_attempts,
            timeout=self.timeout,
            max_tokens=self.max_tokens,
            gguf=GgufSettings(self.gguf_context, self.gguf_slots, self.gguf_threads),
            sampling={role: self._sampling(role) for role in ROLES},
            retry_temperature=self.retry_temperature,
        )

    def _sampling(self, role: Role) -> dict[str, object]:
        """How a role's model draws its words; the role's own settings go before."""
        own = self.roles.get(role, RoleSettings())
        values: dict[str, object] = {**self.model_options, **own.model_options}
        for name in ("temperature", "top_p", "seed"):
            for value in (getattr(self, name), getattr(own, name)):
                if value is not None:
                    values[name] = value
        return values


def load_settings(parameters: Mapping[str, object] | None = None) -> Settings:
    """The settings in force. `parameters` with a value None count as not given.

    Raises SettingsError, with the value, its place and the choices, for a name or a value that
    cannot be.
    """
    known = variables()
    for name in os.environ:
        if name.startswith(PREFIX) and os.environ[name] and name not in {*known, CONFIG}:
            near = difflib.get_close_matches(name, [*known, CONFIG], n=3)
            raise UnknownSetting(name, near or sorted(known))
    given: dict[str, Any] = {
        name: value for name, value in (parameters or {}).items() if value is not None
    }
    if isinstance(tailoring := given.get("tailoring"), Tailoring):
        given["tailoring"] = tailoring.model_dump(exclude_unset=True)
    try:
        return Settings(**given)
    except ValidationError as error:
        raise explained(error, lambda path: _place(path, given)) from error


def variables() -> dict[str, tuple[str, ...]]:
    """The names of the variables, each with the path of its setting."""
    plain = Settings.model_fields.keys() - {"roles", "service", "tailoring", "instructions"}
    paths: list[tuple[str, ...]] = [(name,) for name in plain]
    paths += [("service", name) for name in ServiceSettings.model_fields]
    paths += [("tailoring", name) for name in TAILORING_VARIABLES]
    names = {f"{PREFIX}{'_'.join(path).upper()}": path for path in paths}
    for role, field in product(ROLES, RoleSettings.model_fields):
        suffix = "" if field == "model" else f"_{field.upper()}"
        names[f"{PREFIX}LM_{role.upper()}{suffix}"] = ("roles", role, field)
    return names


def _roles_of_environment() -> dict[str, Any]:
    """The roles' own models, from `TRELLIS_LM_<ROLE>` and `TRELLIS_LM_<ROLE>_<FIELD>`."""
    roles: dict[str, dict[str, str]] = defaultdict(dict)
    for name, path in variables().items():
        if path[0] == "roles" and (value := os.environ.get(name)):
            roles[path[1]][path[2]] = value
    return {"roles": dict(roles)} if roles else {}


def settings_file() -> Path:
    """Where the file of settings is, if there is one."""
    return Path(os.environ.get(CONFIG) or DEFAULT_CONFIG)


def _values_of_file() -> dict[str, Any]:
    """The file of settings. Raises SettingsError where it is named and not there, or no TOML."""
    path = settings_file()
    if not os.path.exists(path):  # noqa: PTH110 -- Path's own raises for a name that is too long
        if os.environ.get(CONFIG):
            raise SettingsError(CONFIG, str(path), "the path of a file that exists")
        return {}
    try:
        return tomllib.loads(text_of_file(path))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, tables too deep
        raise SettingsFileError(path, error) from error


class WorkspaceTailoring(PydanticBaseSettingsSource):
    """The tailoring that is kept in the workspace that the other sources name."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """The whole table comes at once."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Read it. Raises SettingsError for a damaged file."""
        default = PlaceSettings.model_fields["workspace"].default
        path = Path(str(self.current_state.get("workspace", default))) / TAILORING_FILE
        if not os.path.isfile(path):  # noqa: PTH113 -- Path's own raises for what is no path
            return {}
        try:
            tailoring = from_toml(text_of_file(path))
        except ValidationError as error:
            raise explained(error, lambda _: str(path), Tailoring) from error
        except (ValueError, RecursionError) as error:
            raise SettingsFileError(path, error) from error
        return {"tailoring": tailoring.model_dump(exclude_unset=True)}


Placing = Callable[[tuple[str, ...]], str]


def explained(
    error: ValidationError, place_of: Placing, model: type[BaseModel] = Settings
) -> SettingsError:
    """Pydantic's error as ours: the setting and where it stands, its value, and what could be."""
    first = error.errors(include_url=False, include_input=True)[0]
    path = tuple(map(str, first["loc"]))
    if model is Tailoring:  # the file of a workspace holds that table alone
        path = ("tailoring", *path)
    place = place_of(path)
    name = f"{'.'.join(path)} ({place})" if place else ".".join(path)
    cause, value = first.get("ctx", {}).get("error"), first.get("input")
    if isinstance(cause, Unfit):
        return SettingsError(name, cause.value[:80], cause.expected)
    if first["type"] == "extra_forbidden":
        table = next((TABLES[part] for part in reversed(path[:-1]) if part in TABLES), model)
        near = difflib.get_close_matches(path[-1], table.model_fields, n=3)
        return UnknownSetting(name, near or sorted(table.model_fields))
    if first["type"] == "missing":
        return SettingsError(name, "", "a value: it cannot be left out")
    if path[0] == "roles" and path[-1] == "[key]":
        return SettingsError(path[1], path[1], f"one of the roles: {', '.join(ROLES)}")
    shown = value if isinstance(value, int | float) else str(value)[:80]
    expected = first["msg"].removeprefix("Input should be ").partition(", unable")[0]
    choices = re.findall(r"'([^']+)'", expected) if first["type"] == "literal_error" else ()
    is_secret = any("key" in part for part in path)
    near_choice = did_you_mean(str(value), choices)
    return SettingsError(name, HIDDEN if is_secret else shown, expected, near_choice)


def _place(path: tuple[str, ...], parameters: Mapping[str, object]) -> str:
    """Where a setting stands: the name of a variable, or a file; nothing for a parameter."""
    if path[0] in parameters:
        return ""
    named = (name for name, setting in variables().items() if path[: len(setting)] == setting)
    variable = next((name for name in named if os.environ.get(name)), "")
    return variable or str(settings_file())
