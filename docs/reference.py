"""Writes docs/settings.md and docs/commands.md from the code: `python docs/reference.py`; `make docs` does it too."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from flows.cli.command import build_parser
from flows.settings import DEFAULT_CONFIG, PREFIX, FolderPath, RoleSettings, ServiceSettings, Settings
from prompts.engine.models import ROLES
from prompts.tailoring import Tailoring

HERE = Path(__file__).resolve().parent
# A setting that is named in no group stands in the last one.
GROUPS = {
    "Models": (
        "lm", "lm_base_url", "lm_api_key", "gguf_context", "gguf_slots", "gguf_threads", "effort", "profile",
        "prompts", "instructions",
    ),
    "Calls to models": (
        "concurrency", "rpm", "tpm", "prefect_limit", "max_attempts", "timeout", "max_tokens", "answer_cache",
    ),
    "Token limits of prompts": (
        "answer_tokens", "notes_tokens", "part_tokens", "filter_tokens", "structure_tokens", "structures_tokens",
        "map_tokens", "points_tokens", "rate_tokens", "report_tokens", "summary_tokens", "examples_tokens",
        "context_window",
    ),
    "Indexing": (
        "chunk_tokens", "chunk_overlap", "gleanings", "claims", "communities", "community_size", "community_drift",
        "report_drift", "failure_limit",
    ),
    "Embeddings and vectors": (
        "embedding", "embedding_base_url", "embedding_api_key", "embedding_query_prompt", "embedding_passage_prompt",
        "embedding_dimension", "model_backend", "vector_store", "chroma_url", "chroma_tenant",
        "chroma_database", "chroma_api_key",
    ),
    "Reranking": ("reranker", "reranker_base_url", "reranker_api_key", "reranker_passages"),
    "Answers": ("strict", "answer_alone", "grounding", "memory", "tau", "theta", "pages"),
    "Workspace and machines": (
        "workspace", "cache_dir", "keep_generations", "runner", "runner_address", "runner_workers",
    ),
}  # fmt: skip
TABLES = {"roles", "tailoring", "instructions"}
NOTES = {
    "Token limits of prompts": "Where no default stands it follows the effort: [who decides](decisions.md#limits) has "
    "the numbers.",
}
SETTINGS_HEAD = f"""\
# Settings

A parameter wins over the environment, the environment over `{DEFAULT_CONFIG}` in the current folder (or the file that
`{PREFIX}CONFIG` names), that over the default. The file has the same names in lower case, without the prefix. An
unknown name is an error that names those that come near; a variable that is empty counts as not set. `trellis status`
shows what is in force, keys hidden.

<!-- Made by docs/reference.py from flows/settings.py: change it there, then `make docs`. -->
"""
COMMANDS_HEAD = """\
# Commands

`trellis COMMAND --help` prints the same. Every command takes `--workspace DIR` (the folder of state, default
`./.trellis`) and `--json` (results on standard output, everything else on standard error).

What takes long tells how far it is on standard error: bars on a terminal; elsewhere a line as each step begins, and
one every ten seconds.

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

<!-- Made by docs/reference.py from flows/cli/command.py: change it there, then `make docs`. -->
"""


def pages() -> dict[str, str]:
    """The pages that are made from the code, by file name."""
    return {"settings.md": "\n".join(_settings()), "commands.md": "\n".join(_commands())}


def _settings() -> Iterator[str]:
    yield SETTINGS_HEAD
    named = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in Settings.model_fields if name not in {*named, "roles", "tailoring", "service"})
    for title, names in {**GROUPS, **({"More": rest} if rest else {})}.items():
        yield f"## {title}\n"
        if title in NOTES:
            yield NOTES[title] + "\n"
        yield "| variable | values | default | meaning |\n| --- | --- | --- | --- |"
        for name in names:
            yield _setting_row(name, Settings.model_fields[name])
        yield ""
    yield from _tables()


def _setting_row(name: str, field: FieldInfo) -> str:
    variable = f"`[{name}]` in the file" if name in TABLES else f"`{PREFIX}{name.upper()}`"
    return f"| {variable} | {_values(field)} | {_default(field)} | {field.description} |"


def _tables() -> Iterator[str]:
    fields = Settings.model_fields
    own = [f"`{PREFIX}LM_<ROLE>{'' if name == 'model' else '_' + name.upper()}`" for name in RoleSettings.model_fields]
    tailoring = [f"`{PREFIX}TAILORING_{name}`" for name in ("PERSONA", "LANGUAGE", "ENTITY_TYPES")]
    yield f"## Roles\n\n{fields['roles'].description} Variables: {', '.join(own)}; in the file:\n"
    yield '```toml\n[roles.answer]\nmodel = "openai/gpt-4o-mini"\n```\n'
    yield f"The roles: {', '.join(f'`{role}`' for role in ROLES)}; [what each does](models.md#roles).\n"
    yield f"## Service\n\n{fields['service'].description} In the file under `[service]`, without the prefix.\n"
    yield "| variable | values | default | meaning |\n| --- | --- | --- | --- |"
    for name, field in ServiceSettings.model_fields.items():
        yield _setting_row(f"service_{name}", field)
    yield ""
    yield f"## Fit to a domain\n\n{fields['tailoring'].description}\nIn the file under `[tailoring]`:"
    yield ", ".join(f"`{name}`" for name in Tailoring.model_fields) + ". As variables:"
    yield ", ".join(tailoring) + " (kinds apart by semicolons).\n"


def _values(field: FieldInfo) -> str:
    if get_origin(field.annotation) is tuple or FolderPath in get_args(field.annotation)[1:]:
        return "several, apart by semicolons"
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    names = {
        bool: "`true`, `false`", int: "a whole number", float: "a number", SecretStr: "a key",
        Path: "a folder", FolderPath: "a folder"
    }  # fmt: skip
    bounds = ""
    for bound in field.metadata:
        if isinstance(bound, Ge):
            bounds += f" from {bound.ge}"
        elif isinstance(bound, Gt):
            bounds += f" above {bound.gt}"
        elif isinstance(bound, Le):
            bounds += f" to {bound.le}"
    return names.get(kinds[0], "a text") + bounds


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ({}, (), ""):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _commands() -> Iterator[str]:
    yield COMMANDS_HEAD
    for name, (text, command) in subcommands().items():
        yield f"## {name}\n\n{text[0].upper() + text[1:]}.\n"
        actions = [one for one in command._actions if one.dest not in {"help", "workspace", "json"}]  # noqa: SLF001
        if actions:
            yield "| argument | meaning |\n| --- | --- |"
        for action in actions:
            yield f"| {_spelling(action)} | {_help(action)} |"
        if actions:
            yield ""
        examples = (command.epilog or "").partition("\n")[2]
        lines = [line.removeprefix("  ") for line in examples.splitlines()]
        yield "```sh\n" + "\n".join(_commented(line) for line in lines) + "\n```\n"


def subcommands() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Each command's line in the list of commands, and its parser."""
    parser, commands = build_parser()
    of = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    texts = {choice.dest: choice.help or "" for choice in of._choices_actions}  # noqa: SLF001
    return {name: (texts[name], command) for name, command in commands.items()}


def _spelling(action: argparse.Action) -> str:
    value = str(action.metavar or "\\|".join(map(str, action.choices or ())))
    if action.option_strings:
        return f"`{action.option_strings[-1]}{' ' + value if action.nargs != 0 and value else ''}`"
    return f"`{value}{'...' if action.nargs in {'+', '*'} else ''}`"


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % vars(action)).replace("|", "\\|")


def _commented(line: str) -> str:
    """An example whose remark, set apart by spaces, is a comment of the shell."""
    command, gap, remark = line.partition("   ")
    return f"{command}   # {remark.strip()}" if gap and remark.strip() else line


if __name__ == "__main__":
    for file, text in pages().items():
        (HERE / file).write_text(text, encoding="utf-8")
