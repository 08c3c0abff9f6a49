"""The settings in force: parameter > environment (`TRELLIS_…`) > `trellis.toml` > default.

Only this file reads them; `prompts/engine/providers.py` reads the keys in providers' own variables
(`OPENAI_API_KEY`).
"""

import difflib
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from flows.own_prompts import read_programs
from flows.setting_areas import (
    AllAreas,
    PlaceSettings,
    RoleSettings,
    ServiceSettings,
    folder_of,
)
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
from prompts.engine.roles import BACKGROUND, ROLES, SEES, CallSettings, Role
from prompts.engine.spending import window_of
from prompts.schema import AttributeType, KindType, RelationType, Schema
from prompts.tailoring import (
    EntityType,
    Example,
    ExampleEntity,
    ExampleFact,
    ExampleRelation,
    Tailoring,
    Unfit,
    from_toml,
)
from storage.errors import SettingsError, SettingsFileError, UnknownSetting, did_you_mean
from storage.files import text_of_file
from storage.published_copy import open_copy
from storage.remote import is_address

PREFIX = "TRELLIS_"
CONFIG = f"{PREFIX}CONFIG"
DEFAULT_CONFIG = "trellis.toml"
# Both in the workspace.
TAILORING_FILE = "tailoring.toml"
PROGRAMS_FOLDER = "programs"
HIDDEN = "(hidden)"
# The fields of a tailoring that have variables.
TAILORING_VARIABLES = ("persona", "language", "entity_types")
# What files and the variable call the setting `graph_schema`: pydantic has a `schema` of its own.
SCHEMA = "schema"
# The tables of a settings file by their keys.
TABLES: dict[str, type[BaseModel]] = {
    "roles": RoleSettings,
    "service": ServiceSettings,
    "tailoring": Tailoring,
    "entity_types": EntityType,
    "examples": Example,
    "entities": ExampleEntity,
    "relations": ExampleRelation,
    "facts": ExampleFact,
}
SCHEMA_TABLES: dict[str, type[BaseModel]] = {
    SCHEMA: Schema,
    "kinds": KindType,
    "attributes": AttributeType,
    "relations": RelationType,
}


class Settings(AllAreas, BaseSettings):
    """All settings, validated. Keys in `trellis.toml` have the same names."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_ignore_empty=True,
        env_nested_delimiter="_",  # TRELLIS_SERVICE_RPM: `rpm` of `service`
        env_nested_max_split=1,
        enable_decoding=False,  # a variable separates several values by semicolons, not as JSON
        use_attribute_docstrings=True,
    )

    service: ServiceSettings = Field(default_factory=ServiceSettings)
    """What `trellis serve` serves and to whom ([service](service.md))."""

    # The content of the folder of programs, for workers on other machines.
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
        """Return the sources, the strongest first."""
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, _roles_of_environment()),
            InitSettingsSource(settings_cls, _schema_of_environment()),
            InitSettingsSource(settings_cls, _values_of_file()),
            WorkspaceTailoring(settings_cls),
        )

    def model_post_init(self, context: Any, /) -> None:
        """Read the compiled steps of the folder `programs`, by default that of the workspace."""
        own = self.workspace / PROGRAMS_FOLDER
        if self.programs is not None or own.is_dir():
            self._compiled = read_programs(self.programs or own)

    @model_validator(mode="after")
    def _examples_fit(self) -> Self:
        tokens = sum(example.tokens() for example in self.tailoring.examples)
        if tokens and tokens > (most := self.policy().limits.examples):
            larger = f"or a larger {PREFIX}EXAMPLES_TOKENS"
            form = f"fewer or shorter ones of {most} tokens in all, {larger}"
            raise SettingsError("tailoring.examples", f"{tokens} tokens", form)
        return self

    @property
    def compiled(self) -> tuple[dict[str, Any], ...]:
        """The compiled steps, each as DSPy saved it."""
        return self._compiled

    def model_choices(self) -> dict[Role, ModelChoice | None]:
        """Return the model of each role, None if it is offline."""
        return {role: self._choice(role) for role in ROLES}

    def _choice(self, role: Role) -> ModelChoice | None:
        own = self.roles.get(role, RoleSettings())
        name = own.model or (OFFLINE if role == SEES else self.lm)
        if name == OFFLINE:
            return None
        # The common address and key must not be sent to another provider.
        shared = self.lm == OFFLINE or name.partition("/")[0] == self.lm.partition("/")[0]
        base_url = own.base_url or (self.lm_base_url if shared else None)
        common_key = self.lm_api_key if shared and base_url == self.lm_base_url else None
        key = own.api_key or common_key
        return ModelChoice(name, base_url, secret_value(key))

    def policy(self, effort: Effort | None = None) -> Policy:
        """Return the effort (None: that of the settings) and the limits of prompts."""
        effort = effort or self.effort
        limits = {name: getattr(self, f"{name}_tokens") for name in LIMIT_NAMES}
        window = self.context_window or self._known_window(effort)
        return Policy.of(effort, window, limits, self.profile_in_force(), self.helper_steps)

    def profile_in_force(self) -> Profile:
        """Return the profile; `auto` is small if any model that questions ask is small."""
        if self.profile != "auto":
            return self.profile
        choices = [self._choice(role) for role in ROLES if role not in BACKGROUND]
        names = {choice.name for choice in choices if choice and not choice.is_encoder}
        guessed = {guessed_profile(name, self.context_window) for name in names}
        return "small" if "small" in guessed else "large"

    def _known_window(self, effort: Effort) -> int | None:
        """Return the smallest known window; below high effort at most the usual one."""
        windows = [
            self.gguf_context if choice.is_gguf else window_of(choice.name)
            for choice in self.model_choices().values()
            if choice and choice.base_url is None
        ]
        known = [window for window in windows if window]
        return min(known if effort == "high" else [*known, USUAL_WINDOW], default=None)

    def embedding_key(self) -> str | None:
        """Return the key of the embedding server; the models' key only for the same server."""
        hosted = self.embedding.startswith("openai/") and self.lm.startswith("openai/")
        same_address = self.embedding_base_url == self.lm_base_url
        same = same_address and (hosted or self.embedding_base_url is not None)
        return secret_value(self.embedding_api_key or (self.lm_api_key if same else None))

    def keep_secrets(self) -> None:
        """Mask all keys and passwords of the settings and of providers from now on."""
        for holder in (self, *self.roles.values()):
            for name in type(holder).model_fields:
                value = getattr(holder, name)
                if name.endswith("api_key") and value is not None:
                    keep_secret([value.get_secret_value()])
                elif name.endswith(("_url", "_address")):
                    keep_secret(secrets_of_address(value))
        keep_secret(secrets_of_environment(os.environ))

    def call_settings(self) -> CallSettings:
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
        """Return the parameters by which a role's model draws its words."""
        own = self.roles.get(role, RoleSettings())
        values: dict[str, object] = {**self.model_options, **own.model_options}
        for name in ("temperature", "top_p", "seed"):
            for value in (getattr(self, name), getattr(own, name)):
                if value is not None:
                    values[name] = value
        return values


def secret_value(key: SecretStr | None) -> str | None:
    """Return the text of a key."""
    return key.get_secret_value() if key else None


def load_settings(parameters: Mapping[str, object] | None = None) -> Settings:
    """Return the settings in force; a parameter that is None counts as not given.

    Raises SettingsError for an unknown name or a wrong value, with its place and the choices.
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
        raise explained(error, given) from error


def variables() -> dict[str, tuple[str, ...]]:
    """Return the path of each variable's setting."""
    plain = Settings.model_fields.keys() - {"roles", "service", "tailoring", "instructions"}
    paths: list[tuple[str, ...]] = [(name,) for name in plain - {"graph_schema"}]
    paths += [("service", name) for name in ServiceSettings.model_fields]
    paths += [("tailoring", name) for name in TAILORING_VARIABLES]
    names = {f"{PREFIX}{'_'.join(path).upper()}": path for path in paths}
    names[f"{PREFIX}{SCHEMA.upper()}"] = ("graph_schema",)
    for role, field in product(ROLES, RoleSettings.model_fields):
        suffix = "" if field == "model" else f"_{field.upper()}"
        names[f"{PREFIX}LM_{role.upper()}{suffix}"] = ("roles", role, field)
    return names


def _roles_of_environment() -> dict[str, Any]:
    """Read `TRELLIS_LM_<ROLE>` and `TRELLIS_LM_<ROLE>_<FIELD>`."""
    roles: dict[str, dict[str, str]] = defaultdict(dict)
    for name, path in variables().items():
        if path[0] == "roles" and (value := os.environ.get(name)):
            roles[path[1]][path[2]] = value
    return {"roles": dict(roles)} if roles else {}


def _schema_of_environment() -> dict[str, Any]:
    """Read `TRELLIS_SCHEMA`."""
    value = os.environ.get(f"{PREFIX}{SCHEMA.upper()}")
    return {"graph_schema": value} if value else {}


def settings_file() -> Path:
    """Return the path of the settings file, which need not exist."""
    return Path(os.environ.get(CONFIG) or DEFAULT_CONFIG)


def _values_of_file() -> dict[str, Any]:
    """Read the settings file. Raises SettingsError if a named file is missing or no TOML."""
    path = settings_file()
    if not os.path.exists(path):  # noqa: PTH110 -- Path's own raises for a name that is too long
        if os.environ.get(CONFIG):
            raise SettingsError(CONFIG, str(path), "the path of a file that exists")
        return {}
    try:
        values = tomllib.loads(text_of_file(path))
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, tables too deep
        raise SettingsFileError(path, error) from error
    return {"graph_schema" if name == SCHEMA else name: each for name, each in values.items()}


class WorkspaceTailoring(PydanticBaseSettingsSource):
    """The tailoring in the workspace that the stronger sources name."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Return nothing: `__call__` returns the whole table."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Read the file. Raises SettingsError if it is damaged.

        A workspace named by an address is fetched first, for its tailoring and compiled steps hold
        too.
        """
        fields, stated = PlaceSettings.model_fields, self.current_state
        place, published_dir = (
            stated.get(name, fields[name].default) for name in ("workspace", "published_dir")
        )
        try:
            folder = Path(str(folder_of(place, published_dir)))
        except Unfit:
            return {}  # The validation of the setting says why
        open_copy(folder, str(place).rstrip("/") if is_address(place) else None)
        path = folder / TAILORING_FILE
        if not os.path.isfile(path):  # noqa: PTH113 -- Path's own raises for what is no path
            return {}
        try:
            tailoring = from_toml(text_of_file(path))
        except ValidationError as error:
            raise explained(error, tailoring_file=path) from error
        except (ValueError, RecursionError) as error:
            raise SettingsFileError(path, error) from error
        return {"tailoring": tailoring.model_dump(exclude_unset=True)}


def explained(
    error: ValidationError,
    parameters: Mapping[str, object] | None = None,
    tailoring_file: Path | None = None,
) -> SettingsError:
    """Turn Pydantic's error into ours: the setting and its place, its value, what it can be.

    `parameters` have no place; a `tailoring_file` holds the table `tailoring` alone.
    """
    first = error.errors(include_url=False, include_input=True)[0]
    path = tuple(map(str, first["loc"]))
    if path[:1] == ("graph_schema",):
        path = (SCHEMA, *path[1:])
    if tailoring_file is None:
        place = _place(path, parameters or {})
    else:
        path, place = ("tailoring", *path), str(tailoring_file)
    name = f"{'.'.join(path)} ({place})" if place else ".".join(path)
    cause, value = first.get("ctx", {}).get("error"), first.get("input")
    if isinstance(cause, Unfit):
        return SettingsError(name, cause.value[:80], cause.expected)
    if first["type"] == "extra_forbidden":
        tables = SCHEMA_TABLES if path[0] == SCHEMA else TABLES
        table = next((tables[part] for part in reversed(path[:-1]) if part in tables), Settings)
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
    """Return the variable or file that sets a value; nothing for a parameter."""
    if path[0] in parameters:
        return ""
    path = ("graph_schema", *path[1:]) if path[0] == SCHEMA else path
    named = (name for name, setting in variables().items() if path[: len(setting)] == setting)
    variable = next((name for name in named if os.environ.get(name)), "")
    return variable or str(settings_file())
