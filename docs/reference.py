"""Writes docs/settings.md and docs/commands.md from the code: `python docs/reference.py`; `make
docs` does it too.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from cyclopts import App
from cyclopts.argument import Argument
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from flows.cli.command import COMMANDS, trellis_app
from flows.setting_areas import AREAS, IndexSettings, RoleSettings, ServiceSettings
from flows.settings import DEFAULT_CONFIG, PREFIX, SCHEMA, TAILORING_VARIABLES, Settings
from prompts.engine.models import ROLES
from prompts.schema import NO_SCHEMA
from prompts.tailoring import Tailoring

HERE = Path(__file__).resolve().parent
# Of all dictionaries this one is written with semicolons in a variable.
FOLDERS_BY_NAME = ServiceSettings.model_fields["workspaces"].annotation
# These have sections of their own.
TABLES = {"roles", "tailoring"}
NOTES = {
    "Token limits of prompts": (
        "Where no default stands it follows the effort: "
        "[decisions](decisions.md#lengths) has the numbers."
    ),
}
HEAD_OF_A_TABLE = "| variable | values | default | meaning |\n| --- | --- | --- | --- |"
SETTINGS_HEAD = f"""\
# Settings

A parameter wins over the environment, the environment over `{DEFAULT_CONFIG}` in the current folder
(or the file that `{PREFIX}CONFIG` names), that over the default. The file has the same names in
lower case, without the prefix. An unknown name is an error that names those that come near; a
variable that is empty counts as not set. `trellis status` shows what is in force, keys hidden.

<!-- Made by docs/reference.py from flows/setting_areas.py: change it there, then `make docs`. -->
"""
COMMANDS_HEAD = """\
# Commands

`trellis COMMAND --help` prints the same. Every command takes `--workspace DIR` (the folder of
state, default `./.trellis`) and `--json` (results on standard output, everything else on standard
error).

What takes long tells how far it is on standard error: bars on a terminal; elsewhere a line as each
step begins, and one every ten seconds.

| exit code | meaning |
| --- | --- |
| 0 | done; an answer that no source supports is also done |
| 1 | some rows of a batch, or a model, failed; `dead-letter --retry`: something failed again |
| 2 | usage, or a source that does not exist |
| 3 | the budget is reached: nothing published, the next run goes on from there |
| 4 | the workspace is locked by another run |
| 5 | more than `TRELLIS_FAILURE_LIMIT` failed: nothing published |
| 6 | `evaluate --gate`: a measure fell by more than its margin |
| 130 | interrupted |

<!-- Made by docs/reference.py from flows/cli: change it there, then `make docs`. -->
"""


def pages() -> dict[str, str]:
    """The pages that are made from the code, by file name."""
    return {"settings.md": "\n".join(_settings()), "commands.md": "\n".join(_commands())}


def _settings() -> Iterator[str]:
    yield SETTINGS_HEAD
    for title, area in AREAS.items():
        yield f"## {title}\n"
        if title in NOTES:
            yield NOTES[title] + "\n"
        yield HEAD_OF_A_TABLE
        for name, field in area.model_fields.items():
            if name not in TABLES:
                yield _setting_row(name, field)
        yield ""
    yield from _tables()


def _setting_row(name: str, field: FieldInfo) -> str:
    own = SCHEMA if name == "graph_schema" else name
    variable = f"`{PREFIX}{own.upper()}`" if name != "instructions" else f"`[{name}]` in the file"
    return f"| {variable} | {_values(field)} | {_default(field)} | {_meaning(field)} |"


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _tables() -> Iterator[str]:
    fields = Settings.model_fields
    own = ["" if name == "model" else f"_{name.upper()}" for name in RoleSettings.model_fields]
    names = ", ".join(f"`{PREFIX}LM_<ROLE>{suffix}`" for suffix in own)
    yield f"## Roles\n\n{_meaning(fields['roles'])} Variables: {names}; in the file:\n"
    yield '```toml\n[roles.answer]\nmodel = "openai/gpt-4o-mini"\n```\n'
    roles = ", ".join(f"`{role}`" for role in ROLES)
    yield f"The roles: {roles}; [what each does](models.md#roles).\n"
    place = "In the file under `[service]`, without the prefix."
    yield f"## Service\n\n{_meaning(fields['service'])} {place}\n"
    yield HEAD_OF_A_TABLE
    for name, field in ServiceSettings.model_fields.items():
        yield _setting_row(f"service_{name}", field)
    yield ""
    yield f"## Fit to a domain\n\n{_meaning(fields['tailoring'])}\nIn the file under `[tailoring]`:"
    yield ", ".join(f"`{name}`" for name in Tailoring.model_fields) + ". As variables:"
    variables = [f"`{PREFIX}TAILORING_{name.upper()}`" for name in TAILORING_VARIABLES]
    yield ", ".join(variables) + " (kinds apart by semicolons).\n"


def _values(field: FieldInfo) -> str:
    kind, bounds = _kind(field.annotation, field.metadata)
    if get_origin(kind) is tuple or kind == FOLDERS_BY_NAME:
        return "several, apart by semicolons"
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    names = {
        bool: "`true`, `false`",
        int: "a whole number",
        float: "a number",
        SecretStr: "a key",
        Path: "a folder",
    }
    return names.get(kind, "a text") + "".join(_bound(kind, bound) for bound in bounds)


def _kind(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """The type of a setting without what makes it optional, and its bounds."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _kind(inner, [*metadata, *more])
    parts = [part for part in get_args(annotation) if part is not NoneType]
    if NoneType in get_args(annotation):
        return _kind(parts[0], metadata)
    bounds = [bound for part in metadata for bound in getattr(part, "metadata", [part])]
    return annotation, bounds


def _bound(kind: Any, bound: object) -> str:
    if isinstance(bound, Ge):
        return f" from {bound.ge}"
    if isinstance(bound, Gt):
        return f" from {bound.gt + 1}" if kind is int else f" above {bound.gt}"  # type: ignore[operator]
    return f" to {bound.le}" if isinstance(bound, Le) else ""


def _default(field: FieldInfo) -> str:
    others = {"chunk_tokens": IndexSettings.model_fields["chunk_tokens"].default}
    value = field.get_default(call_default_factory=True, validated_data=others)
    if value is None or value in ({}, (), "", NO_SCHEMA):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _commands() -> Iterator[str]:
    yield COMMANDS_HEAD
    app = trellis_app()
    for name in COMMANDS:
        yield from _command((name,), app[name])


def _command(words: tuple[str, ...], app: App) -> Iterator[str]:
    """The section of a command, then those of its own commands."""
    yield f"{'#' * (len(words) + 1)} {' '.join(words)}\n\n{app.help.partition(chr(10))[0]}\n"
    arguments = [
        argument
        for argument in app.assemble_argument_collection(parse_docstring=True)
        if argument.show and argument.name not in {"--workspace", "--json"}
    ]
    if arguments:
        yield "| argument | meaning |\n| --- | --- |"
    for argument in arguments:
        meaning = " ".join((argument.parameter.help or "").split()).replace("|", "\\|")
        yield f"| `{_spelling(argument)}` | {meaning} |"
    if arguments:
        yield ""
    if app.help_epilogue and len(words) == 1:
        lines = [line.removeprefix("  ") for line in app.help_epilogue.splitlines()[1:]]
        yield "```sh\n" + "\n".join(_commented(line) for line in lines) + "\n```\n"
    for name in app:
        if not name.startswith("-"):
            yield from _command((*words, name), app[name])


def _spelling(argument: Argument) -> str:
    """An argument as it is typed, with a word for its value."""
    kind, _ = _kind(argument.hint, [])
    several = get_origin(kind) is tuple
    inner = get_args(kind)[0] if several else kind
    choices = "\\|".join(map(str, get_args(inner)))
    words = {Path: "PATH", int: "N", float: "X"}
    if not argument.name.startswith("-"):
        word = argument.parameter.metavar or argument.name
        return f"{word}{'...' if several else ''}"
    value = argument.parameter.metavar or choices or words.get(inner, "TEXT")
    return argument.name if inner is bool else f"{argument.name} {value}"


def _commented(line: str) -> str:
    """An example whose remark, set apart by spaces, is a comment of the shell."""
    return re.sub(r"  +", "   # ", line, count=1)


if __name__ == "__main__":
    for file, text in pages().items():
        (HERE / file).write_text(text, encoding="utf-8")
