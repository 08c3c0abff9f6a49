"""The command `trellis`: the table of its commands, and the call of one of them.

A command is a function in this folder. Cyclopts reads its options from its signature, and imports
only the file of the command that runs.
"""

import atexit
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from inspect import BoundArguments
from typing import NamedTuple

from cyclopts import App, CycloptsError, UnknownCommandError, UnusedCliTokensError

from flows.cli.options import OPTIONS
from storage.errors import UsageError, did_you_mean

EPILOGUE = """\
A first session:
  trellis demo                             index the samples and ask them
  trellis index docs/ notes.jsonl          index a folder and a file
  trellis ask "Who designed the bridge?"   an answer with its sources
  trellis show docs/bridge.md              the text that offsets refer to

No model and no key are needed: without settings everything runs offline.

Exit codes: 0 done, 1 some rows or a model failed, 2 usage, 3 budget reached,
4 locked, 5 failure gate, 6 evaluation gate, 130 interrupted"""


class Command(NamedTuple):
    """The import path of a command's function (or Cyclopts app), and its help."""

    path: str
    help: str
    examples: str = ""


COMMANDS = {
    "index": Command(
        "flows.cli.index:index",
        "Bring the workspace up to date with its sources.",
        'trellis index docs/\ntrellis index "notes/**/*.md" facts.csv --workspace kb',
    ),
    "ask": Command(
        "flows.cli.ask:ask",
        "Answer a question, or a file of questions, with sources.",
        'trellis ask "Who designed the Ambel Crossing?"\ntrellis ask --questions questions.jsonl > '
        "answers.jsonl",
    ),
    "retrieve": Command(
        "flows.cli.ask:retrieve",
        "List the best passages for a question, without an answer.",
        'trellis retrieve "salt in the wells" --k 3',
    ),
    "reports": Command(
        "flows.cli.browse:reports",
        "List the reports on groups of entities, or show one in full.",
        "trellis reports --level 0             all of the broadest\n"
        "trellis reports com_0123456789abcdef  one, and those above and below it",
    ),
    "graph": Command(
        "flows.cli.graph:graph",
        "Show what the graph knows of an entity, or correct it by hand.",
    ),
    "schema": Command(
        "flows.cli.schema:schema",
        "Show the types of facts, and how many there are of each.",
        "trellis schema --workspace kb",
    ),
    "show": Command(
        "flows.cli.browse:show",
        "Print a document's stored text, exactly as offsets count it.",
        "trellis show people/ilse-marrand.md",
    ),
    "status": Command(
        "flows.cli.workspace:status",
        "Show what is indexed, from where, with which settings.",
        "trellis status --workspace kb",
    ),
    "generations": Command(
        "flows.cli.workspace:generations", "List the generations that are kept."
    ),
    "rollback": Command(
        "flows.cli.workspace:rollback",
        "Make an earlier generation the current one.",
        "trellis rollback 3",
    ),
    "diff": Command(
        "flows.cli.changes:diff",
        "Show what changed from one generation to another.",
        "trellis diff 3  from generation 3 to the current one",
    ),
    "dead-letter": Command(
        "flows.cli.changes:dead_letter",
        "List what failed, or try exactly that again.",
        "trellis dead-letter --retry",
    ),
    "forget": Command(
        "flows.cli.changes:forget",
        "Remove a document from everything, and keep it out.",
        "trellis forget people/ilse-marrand.md\ntrellis forget people/ilse-marrand.md --undo",
    ),
    "export": Command(
        "flows.cli.workspace:export",
        "Write what is indexed as files for other programs.",
        "trellis export backup/\ntrellis export graph/ --format graphml  for Gephi, igraph, "
        "NetworkX\ntrellis export vault/ --format obsidian",
    ),
    "archive": Command(
        "flows.cli.workspace:archive",
        "Write the whole workspace into one file.",
        "trellis archive backup-2026-01-31.tar.gz  also while an index runs",
    ),
    "restore": Command(
        "flows.cli.workspace:restore",
        "Make a workspace of an archive.",
        "trellis restore backup-2026-01-31.tar.gz --workspace kb",
    ),
    "publish": Command(
        "flows.cli.workspace:publish",
        "Publish the index at an address, for servers on any machine.",
        "trellis publish s3://bucket/kb --keep 3\n"
        "TRELLIS_WORKSPACE=s3://bucket/kb trellis serve  there, read-only",
    ),
    "clean": Command(
        "flows.cli.workspace:clean",
        "Free the room of what is no longer needed.",
        "trellis clean            old generations, and what killed runs left\n"
        "trellis clean --vectors  where a warning says that their index is damaged",
    ),
    "tune": Command(
        "flows.cli.index:tune",
        "Fit the prompts to a domain, from a sample of its documents.",
        "trellis tune docs/\ntrellis index docs/  uses what was found",
    ),
    "prompt": Command(
        "flows.cli.doctor:prompt",
        "Print the whole prompt of a step, as the model reads it.",
        "trellis prompt extract\ntrellis prompt report --own > prompts/report.md  the instruction, "
        "to change it",
    ),
    "doctor": Command(
        "flows.cli.doctor:doctor",
        "Try every model, the embedding and Prefect; read the workspace.",
        "TRELLIS_LM=ollama/qwen3 trellis doctor",
    ),
    "questions": Command(
        "flows.cli.questions:questions",
        "Make a question set for your documents, with evidence.",
        "trellis questions docs/ -o questions.jsonl  125 about the whole: needs a model\n"
        "trellis questions docs/ --kind cloze -n 100 -o cloze.jsonl  needs none",
    ),
    "evaluate": Command(
        "flows.cli.evaluate:evaluate",
        "Compare modes, settings or other systems on a question set.",
        "trellis evaluate --questions dev.jsonl --system mode=naive --system mode=mix\n"
        "trellis evaluate --questions dev.jsonl --system mix --gate gate.toml\n"
        "trellis evaluate --show 3 --against 1 --page page.html",
    ),
    "train": Command(
        "flows.cli.train:train",
        "Train a router, a rewriter, a filter or an answer.",
        "trellis train router --rows preferences.jsonl --use  without a GPU\n"
        "trellis train filter --rows judged.jsonl --base MODEL --by cross-encoder\n"
        "trellis train answer --questions gold.jsonl --by mipro --measure f1 --use",
    ),
    "watch": Command(
        "flows.cli.watch:watch",
        "Keep questions that are asked again after every publication.",
    ),
    "serve": Command(
        "flows.cli.serve:serve",
        "Serve the page, the API and scheduled index runs.",
        'trellis serve docs/ --cron "0 3 * * *" --timezone Europe/Berlin\n'
        "trellis serve --no-prefect        the service alone\n"
        "trellis serve --new-key ann:edit  a key, for a service that others can reach",
    ),
    "mcp": Command(
        "flows.cli.serve:mcp",
        "Serve the workspace as tools for an MCP client, over stdio.",
        "trellis mcp --workspace kb  the command in the client's configuration",
    ),
    "demo": Command(
        "flows.cli.demo:demo", "Index the sample corpus and ask it a question of each family."
    ),
}


def trellis_app() -> App:
    """Build the app with all commands, without importing them."""
    app = App(
        name="trellis",
        help="Answers from your documents, with sources: five RAG systems as one pipeline.",
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=lambda: version("trellis-rag"),
        version_flags=("--version",),
        default_parameter=OPTIONS,
        exit_on_error=False,
        print_error=False,
    )
    for place, (name, command) in enumerate(COMMANDS.items()):
        examples = "\n  ".join(("Examples:", *command.examples.splitlines()))
        more = {"help_epilogue": examples} if command.examples else {}
        app.command(command.path, name=name, help=command.help, sort_key=place, **more)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; by default with the arguments of the process."""
    if arguments is not None:
        return _run(list(arguments))
    end = ProcessEnd()
    end.code = _run(sys.argv[1:])
    return end.code


class ProcessEnd:
    """Ends the process without the last checks of extension modules.

    After a Prefect flow, DuckDB's binding (nanobind) lists its own module as leaked on standard
    error, although every connection is closed. The handlers that Prefect registers run first if
    this one is registered before Prefect is imported.
    """

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._exit)

    def _exit(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)


def _run(tokens: Sequence[str]) -> int:
    try:
        app = trellis_app()
        if tokens in (["--help"], ["-h"]):
            app.help_print([])
            return 0
        function, bound = _parsed(tokens, app)
    except UsageError as error:
        sys.stderr.write(f"trellis: {error.message}\n{error.remedy}\n")
        if "--json" in tokens:
            shown = {"type": "UsageError", "message": error.message, "remedy": error.remedy}
            sys.stdout.write(json.dumps({"error": shown}, ensure_ascii=False) + "\n")
        return error.exit_code
    except KeyboardInterrupt:  # during the import of the command's file
        return 130
    return function(*bound.args, **bound.kwargs) or 0


def _parsed(tokens: Sequence[str], app: App) -> tuple[Callable[..., int | None], BoundArguments]:
    """Parse the tokens into a function and its arguments. Raises UsageError."""
    if not tokens:
        raise UsageError("A command is missing.", "See them all: trellis --help")
    try:
        command, bound, _ = app.parse_args(tokens)
    except CycloptsError as error:
        raise usage_error(error, tokens, app) from error
    if text := next((token for token in tokens if _is_unreadable(token, bound)), None):
        raise UsageError(f"The argument {text!a} is not UTF-8.", "Write it in UTF-8.")
    return command, bound


def usage_error(error: CycloptsError, tokens: Sequence[str], app: App) -> UsageError:
    """Convert an error of the parser; the remedy offers a similar name and the right help."""
    chain, apps, rest = app.parse_commands(tokens)
    command = " ".join(("trellis", *chain))
    near = did_you_mean(rest[0], [name for name in apps[-1] if name[0] != "-"]) if rest else ""
    if isinstance(error, UnknownCommandError) and rest[0].startswith("-"):
        message = f"{rest[0]!r} stands before the command."
        near = f"Write the command first: trellis COMMAND {rest[0]}. "
    elif isinstance(error, UnknownCommandError):
        message = f"There is no command {rest[0]!r}."
    elif isinstance(error, UnusedCliTokensError):
        token = rest[0] if near else (error.unused_tokens or rest)[0]
        message = f"`{command}` does not take {token!r}."
        near = near or "Words that belong together stand in quotes. "
    else:
        message, near = str(error), ""
    return UsageError(message, f"{near}All that it takes: {command} --help")


def _is_unreadable(token: str, bound: BoundArguments) -> bool:
    """Whether a token is not UTF-8; only sources may be, since file names can be any bytes."""
    is_text = not any("\ud800" <= sign <= "\udfff" for sign in token)
    return not is_text and token not in bound.arguments.get("sources", ())
