"""The parser of all that can be typed after `trellis`. It loads argparse alone: help and typing errors come at once."""

import argparse
import re
from typing import Protocol

from flows.modes.registry import AUTO, mode_names

STRUCTURES = "table, graph, algorithm, catalogue, chunk"
FORMATS = "json, graphml, parquet"

_EPILOG = """\
a first session:
  trellis demo                                 index the sample corpus and ask it questions
  trellis index docs/ notes.jsonl              index a folder and a file into ./.trellis
  trellis ask "Who designed the bridge?"       an answer with its sources
  trellis show docs/bridge.md                  the text that a source's offsets refer to

No model and no key are needed: without settings everything runs offline.
exit codes: 0 done, 1 some rows or a model failed, 2 usage, 3 budget reached, 4 locked, 5 failure gate"""


class Commands(Protocol):
    """What argparse adds commands to; it gives that type no public name."""

    def add_parser(
        self, name: str, *, help: str, description: str, epilog: str,  # noqa: A002 -- argparse's word
        formatter_class: type[argparse.HelpFormatter],
    ) -> argparse.ArgumentParser: ...  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; the parsed options hold `run`, the function of the command as "module:name"."""
    parser = argparse.ArgumentParser(
        prog="trellis", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Answers from your documents, with sources: five published RAG systems as one pipeline.",
    )  # fmt: skip
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _index(commands)
    _tune(commands)
    _prompt(commands)
    _ask(commands)
    _retrieve(commands)
    _look(commands)
    _state(commands)
    _forget(commands)
    _diff(commands)
    _serve(commands)
    return parser


def _command(commands: Commands, name: str, run: str, text: str, examples: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.add_argument("--workspace", metavar="DIR", help="the folder of state (default ./.trellis)")
    command.add_argument("--json", action="store_true", help="machine output on stdout; messages go to stderr")
    command.set_defaults(run=f"flows.cli.{run}")
    return command


def _index(commands: Commands) -> None:
    command = _command(
        commands, "index", "index:index", "bring the workspace up to date with its sources",
        '  trellis index docs/\n  trellis index "notes/**/*.md" facts.csv --workspace kb',
    )  # fmt: skip
    command.add_argument("sources", nargs="+", metavar="SOURCE", help="a file, a folder or a glob pattern")
    command.add_argument("--full", action="store_true", help="extract everything again instead of what changed")
    command.add_argument(
        "--allow-removals", action="store_true", help="also where more than 30%% of the documents would go"
    )
    command.add_argument(
        "--remake", action="store_true", help="also anew what the prompts of a new version would word otherwise"
    )
    command.add_argument("--dry-run", action="store_true", help="only forecast calls, tokens and cost")
    command.add_argument("--budget-tokens", type=_positive, metavar="N", help="stop before models take more tokens")
    command.add_argument("--budget-usd", type=_amount, metavar="X", help="stop before models cost more US dollars")
    _recorded(command)


def _tune(commands: Commands) -> None:
    command = _command(
        commands, "tune", "index:tune", "fit the prompts to a domain, from a sample of its documents",
        "  trellis tune docs/\n  trellis index docs/       uses what was found",
    )  # fmt: skip
    command.add_argument("sources", nargs="+", metavar="SOURCE", help="a file, a folder or a glob pattern")
    command.add_argument(
        "--tokens", type=_positive, default=6000, metavar="N", help="how much is read as a sample (default 6000)"
    )
    command.add_argument("--seed", type=_whole, default=0, metavar="N", help="another number, another sample")
    command.add_argument("--force", action="store_true", help="also in place of a file that was written by hand")


def _prompt(commands: Commands) -> None:
    command = _command(
        commands, "prompt", "doctor:prompt", "the whole prompt of a step, as the model reads it with these settings",
        "  trellis prompt                    the names of the steps\n  trellis prompt extract\n"
        "  trellis prompt report --own > prompts/report.md     the instruction alone, to change it (TRELLIS_PROMPTS)",
    )  # fmt: skip
    command.add_argument("step", nargs="?", metavar="STEP", help="a step's name; without it, all names")
    command.add_argument("--own", action="store_true", help="only the instruction, which a file can replace")


def _ask(commands: Commands) -> None:
    command = _command(
        commands, "ask", "ask:ask", "answer a question, or a file of questions, with sources",
        '  trellis ask "Who designed the Ambel Crossing?"\n  trellis ask --questions questions.jsonl > answers.jsonl',
    )  # fmt: skip
    _question(command)
    command.add_argument("--structure", type=_structure, metavar="TYPE", help=f"instead of the router's: {STRUCTURES}")
    _recorded(command)


def _retrieve(commands: Commands) -> None:
    command = _command(
        commands, "retrieve", "ask:retrieve", "the best passages for a question, without an answer",
        '  trellis retrieve "salt in the wells" --k 3\n  trellis retrieve --questions questions.jsonl',
    )  # fmt: skip
    _question(command)


def _look(commands: Commands) -> None:
    reports = _command(
        commands, "reports", "reports:reports", "the reports on groups of entities, or one of them in full",
        "  trellis reports                        the levels, and the most important reports of each\n"
        "  trellis reports --level 0              all of the broadest\n"
        "  trellis reports com_0123456789abcdef   one, with its citations, members and the groups above and below",
    )  # fmt: skip
    reports.add_argument("report", nargs="?", metavar="ID", help="the community of a report, as the list shows it")
    reports.add_argument("--level", type=_whole, metavar="N", help="only this level; 0 is the broadest")
    graph = _command(
        commands, "graph", "graph:graph", "what the graph knows of an entity, or a correction of it by hand",
        '  trellis graph "Ilse Marrand"\n  trellis graph 海岸水文研究所 --json\n'
        '  trellis graph merge "Ilse Marrand" "I. Marrand"      both names mean one thing\n'
        '  trellis graph split "Mercury" --documents rocks.md   there it is another thing\n'
        '  trellis graph split "Tarn" --names "Mrs. Tarn"       this name means another thing\n'
        '  trellis graph edit "Mercury" --kind place --description "A planet."\n'
        "  trellis graph edits                                  the corrections, which every run applies\n"
        "  trellis graph undo 2",
    )  # fmt: skip
    graph.add_argument(
        "words", nargs="+", metavar="NAME", help="any name of an entity; or merge, split, edit, edits, undo and theirs"
    )
    graph.add_argument("--names", metavar="A,B", help="split: the names that mean another thing (,, is a comma)")
    graph.add_argument("--documents", metavar="D,E", help="split: the documents that mean another thing")
    for given in ("kind", "name", "description"):
        graph.add_argument(f"--{given}", metavar=given.upper(), help=f"edit: the {given} that it should have")
    show = _command(
        commands, "show", "graph:show", "a document's stored text, exactly as offsets count it",
        "  trellis show people/ilse-marrand.md\n  trellis show people/ilse-marrand.md --json",
    )  # fmt: skip
    show.add_argument("document", metavar="DOCUMENT", help="its id: the path in its source, or the row's id")
    for command in (reports, graph, show):
        _as_of(command)


def _state(commands: Commands) -> None:
    _command(
        commands, "status", "workspace:status", "what is indexed, from where, with which settings",
        "  trellis status\n  trellis status --workspace kb --json",
    )  # fmt: skip
    _command(commands, "generations", "workspace:generations", "the generations that are kept", "  trellis generations")
    rollback = _command(
        commands, "rollback", "workspace:rollback", "make an earlier generation the current one", "  trellis rollback 3"
    )
    rollback.add_argument("generation", type=_positive, metavar="N", help="a number that `trellis generations` lists")
    letters = _command(
        commands, "dead-letter", "changes:letters", "what failed and is kept, or another try of exactly that",
        "  trellis dead-letter\n  trellis dead-letter --retry",
    )  # fmt: skip
    letters.add_argument("--retry", action="store_true", help="try it again and publish what succeeds; needs no source")
    _as_of(letters)
    export = _command(
        commands, "export", "workspace:export", "write what is indexed as files for other programs",
        "  trellis export backup/\n  trellis export graph/ --format graphml      for Gephi, igraph, NetworkX\n"
        "  trellis export tables/ --format parquet     for DuckDB, pandas, Spark",
    )  # fmt: skip
    export.add_argument("folder", metavar="DIR", help="made where there is none; an earlier export there is replaced")
    export.add_argument("--format", type=_format, default="json", metavar="FORMAT", help=f"{FORMATS}; default json")
    _as_of(export)
    archive = _command(
        commands, "archive", "workspace:archive", "write the whole workspace into one file",
        "  trellis archive backup-2026-01-31.tar.gz     also while an index runs",
    )  # fmt: skip
    archive.add_argument("file", metavar="FILE", help="a new file: .tar.gz or .tar")
    restore = _command(
        commands, "restore", "workspace:restore", "make a workspace of an archive",
        "  trellis restore backup-2026-01-31.tar.gz --workspace kb",
    )  # fmt: skip
    restore.add_argument("file", metavar="FILE", help="what `trellis archive` wrote")
    clean = _command(
        commands, "clean", "workspace:clean", "free the room of what is no longer needed",
        "  trellis clean                old generations, leftovers, holes in the database\n"
        "  trellis clean --keep 1       of the generations only the current one\n"
        "  trellis clean --caches       what models and the embedder would have to do again\n"
        "  trellis clean --vectors      where a warning says that the vector index is damaged",
    )  # fmt: skip
    clean.add_argument("--keep", type=_positive, metavar="N", help="how many generations stay (default: the setting)")
    clean.add_argument("--caches", action="store_true", help="also the caches of models' answers and of vectors")
    clean.add_argument("--vectors", action="store_true", help="build the current vector index anew from the database")
    _command(
        commands, "doctor", "doctor:doctor", "try every model, the embedding, the workspace and Prefect once",
        "  trellis doctor\n  TRELLIS_LM=ollama/qwen3 trellis doctor --json",
    )  # fmt: skip
    _command(
        commands, "demo", "index:demo", "index the sample corpus and ask it a question of each family",
        "  trellis demo\n  trellis demo --workspace kb",
    )  # fmt: skip


def _forget(commands: Commands) -> None:
    command = _command(
        commands, "forget", "changes:forget", "remove a document from everything, and keep it out",
        "  trellis forget people/ilse-marrand.md\n"
        "  trellis forget people/ilse-marrand.md --keep-history   older generations stay, and hold its text\n"
        "  trellis forget people/ilse-marrand.md --undo           the next run on its source brings it back",
    )  # fmt: skip
    command.add_argument("documents", nargs="+", metavar="DOCUMENT", help="its id: its path, or the row's")
    command.add_argument("--keep-history", action="store_true", help="leave older generations that hold it")
    command.add_argument("--undo", action="store_true", help="let it in again; nothing is brought back by this alone")


def _diff(commands: Commands) -> None:
    diff = _command(
        commands, "diff", "changes:diff", "what came, went and changed from one generation to another",
        "  trellis diff 3         from generation 3 to the current one\n  trellis diff 3 5 --json",
    )  # fmt: skip
    diff.add_argument("before", type=_positive, metavar="N", help="a number that `trellis generations` lists")
    diff.add_argument("after", type=_positive, nargs="?", metavar="M", help="another one (default: the current one)")
    diff.add_argument("--all", action="store_true", help="every row, however many there are")


def _serve(commands: Commands) -> None:
    command = _command(
        commands, "serve", "serve:serve", "schedule index runs and answer questions in Prefect's UI",
        '  trellis serve docs/ --cron "0 3 * * *" --timezone Europe/Berlin\n  trellis serve --port 4300',
    )  # fmt: skip
    command.add_argument("sources", nargs="*", metavar="SOURCE", help="what index runs bring the workspace up to")
    command.add_argument("--cron", metavar="EXPR", help='when to index: "0 3 * * *" is every night at three')
    command.add_argument("--timezone", default="UTC", metavar="NAME", help="of --cron (default UTC)")
    command.add_argument(
        "--port", type=_positive, metavar="N", help="of a server of our own, where PREFECT_API_URL names none"
    )
    command.add_argument(
        "--pool", metavar="NAME", help="only register the deployments, for the workers of this pool, and end"
    )


def _question(command: argparse.ArgumentParser) -> None:
    asked = command.add_mutually_exclusive_group(required=True)
    asked.add_argument("question", nargs="?", metavar="QUESTION", help="one question")
    asked.add_argument(
        "--questions", metavar="FILE",
        help="rows {id, question, documents?, where?, history?} (- for stdin); one JSON line each comes out, in order",
    )  # fmt: skip
    command.add_argument("--mode", type=_mode, default=AUTO, metavar="MODE", help=_modes(" (default)"))
    command.add_argument("--level", type=_whole, metavar="N", help="of the reports that mode global reads; 0: broadest")
    command.add_argument(
        "--effort",
        choices=("low", "medium", "high"),
        help="how much is given to models (default: TRELLIS_EFFORT, medium)",
    )
    command.add_argument(
        "--response", default="", metavar="TEXT", help='the form of the answer: "a list", "one paragraph", "in German"'
    )
    command.add_argument("--k", type=_positive, default=8, metavar="K", help="how many passages (default 8)")
    command.add_argument("--where", metavar="EXPR", help="only documents with: \"year >= 2020 and language = 'en'\"")
    command.add_argument("--pages", metavar="DIR", help="read the files of this folder too, beside the index")
    _as_of(command)


def _as_of(command: argparse.ArgumentParser) -> None:
    command.add_argument("--as-of", type=_positive, metavar="N", help="read generation N instead of the current one")


def _recorded(command: argparse.ArgumentParser) -> None:
    command.add_argument("--record", action="store_true", help="run it as a Prefect flow, so that the run is recorded")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: use a whole number from 1")
    return int(text)


def _amount(text: str) -> float:
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r}: use an amount above 0, such as 2.50")
    return float(text)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: use a whole number from 0")
    return int(text)


def _mode(text: str) -> str:
    return _one_of(text, _modes())


def _modes(mark: str = "") -> str:
    return ", ".join(f"{name}{mark if name == AUTO else ''}" for name in mode_names())


def _structure(text: str) -> str:
    return _one_of(text, STRUCTURES)


def _format(text: str) -> str:
    return _one_of(text, FORMATS)


def _one_of(text: str, choices: str) -> str:
    if text not in choices.split(", "):
        raise argparse.ArgumentTypeError(f"{text!r}: use one of {choices}")
    return text
