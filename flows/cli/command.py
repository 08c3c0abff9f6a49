"""The command `trellis`: what can be typed, read by argparse alone; runs what was asked for and brings its end to the
shell.

Exit codes: 0 done, 1 some rows of a batch or a model failed, 2 usage, 3 budget reached, 4 locked, 5 failure gate,
6 evaluation gate, 130 interrupted. An error is told on standard error as what happened and what to do; with `--json`
also as `{"error": {"type", "message", "remedy"}}` on standard output. Help and typing errors come at once.
"""

import argparse
import atexit
import gc
import importlib
import math
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from storage.errors import did_you_mean

HOME = Path(__file__).resolve().parents[2]
BESIDE = ("tasks", "prompts", "storage")
INTERRUPTED = 130
GARBAGE = 100_000  # new objects, after which cyclic garbage is looked for

STRUCTURES = ("table", "graph", "algorithm", "catalogue", "chunk")
TRAINED = ("router", "rewriter", "filter", "answer")
METHODS = ("linear", "dpo", "sft", "cross-encoder", "bootstrap", "mipro", "gepa")
FORMATS = ("json", "graphml")
EFFORTS = ("low", "medium", "high")

_EPILOG = """\
a first session:
  trellis demo                                 index the sample corpus and ask it questions
  trellis index docs/ notes.jsonl              index a folder and a file into ./.trellis
  trellis ask "Who designed the bridge?"       an answer with its sources
  trellis show docs/bridge.md                  the text that a source's offsets refer to

No model and no key are needed: without settings everything runs offline.
exit codes: 0 done, 1 some rows or a model failed, 2 usage, 3 budget reached, 4 locked, 5 failure gate,
6 evaluation gate"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process by default."""
    foreign = [f"{name} ({place})" for name in BESIDE if (place := _place(name)) != HOME / name]
    if foreign:
        sys.stderr.write(
            f"trellis: other packages take the names of Trellis' own: {', '.join(foreign)}.\n"
            f"Theirs come first on Python's path. Unset PYTHONPATH, or start trellis from another folder.\n"
        )
        return 2
    options = _parsed(sys.argv[1:] if arguments is None else arguments)
    # Sources, of which there may be several, are files: their bytes stand for themselves. All else is text.
    given = [text for text in vars(options).values() if isinstance(text, str)]
    if unreadable := next((text for text in given if _no_text(text)), None):
        sys.stderr.write(f"trellis: the argument {unreadable!a} is not UTF-8.\nWrite it in UTF-8.\n")
        return 2
    if arguments is not None:
        return _run(options)
    # Only where the process is ours: what loading makes lives as long as it does, and the collector walks it in vain.
    gc.set_threshold(GARBAGE)
    ending = _Ending()
    ending.code = _run(options)
    return ending.code


class _Ending:
    """Ends the process without the last checks of extension modules.

    Prefect, and answers that were broken off, keep threads and modules to the very end, and DuckDB's binding then
    reports every object of its own as leaked. To be made before Prefect is imported: the handlers that it registers
    later, which stop its temporary server, run first.
    """

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._leave)

    def _leave(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)


def _parsed(arguments: Sequence[str]) -> Namespace:
    """What was typed. Ends the process with 2 and the nearest name where that cannot be meant."""
    parser, commands = build_parser()
    word = arguments[0] if arguments else ""
    if not word.startswith("-") and word not in commands:
        near = did_you_mean(word, commands)
        said = f"there is no command {word!r}. {near}" if word else "a command is missing. "
        parser.error(f"{said}The commands are {', '.join(commands)}")
    if word.startswith("-") and word not in ("-h", "--help"):
        parser.error(f"{word!r} stands before the command. Write the command first: trellis COMMAND {word}")
    options, rest = parser.parse_known_args(arguments)
    if rest:
        command = commands[word]
        unknown = next((text for text in rest if text.startswith("-")), rest[0])
        near = did_you_mean(unknown.partition("=")[0], command.options)
        what = "has no option" if unknown.startswith("-") else "does not take"
        command.error(f"`trellis {word}` {what} {unknown!r}. {near}All that it takes: trellis {word} --help")
    return options


def _no_text(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _place(name: str) -> Path | None:
    """The folder that `import name` would take, without importing it."""
    spec = find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]).resolve() if places else Path(spec.origin) if spec and spec.origin else None


def _run(options: Namespace) -> int:
    """The command, with the errors that are raised on purpose told in words."""
    from flows.cli.screen import Screen
    from prompts.engine.errors import EngineError
    from prompts.engine.key_masking import mask_keys, mask_logs
    from storage.errors import TrellisError
    from storage.faults import DATABASE_ERRORS, fault_of

    screen = Screen(as_json=options.json)
    mask_logs()
    module, _, function = options.run.partition(":")
    try:
        code = int(getattr(importlib.import_module(module), function)(options, screen) or 0)
        sys.stdout.flush()
    except (TrellisError, EngineError) as error:
        screen.error(error)
        return getattr(error, "exit_code", 1)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError, *DATABASE_ERRORS) as error:
        screen.error(fault_of(error, getattr(error, "filename", None) or "A file") or error)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Exception:  # noqa: BLE001 -- a fault, told in full as Python tells it, but for the keys
        sys.stderr.write(mask_keys(traceback.format_exc()))
        return 1
    return code


# --- what can be typed ------------------------------------------------------------------------------------------------

Argument = tuple[str, dict[str, object]]


def argument(name: str, text: str, **keywords: object) -> Argument:
    """What a command takes: a name or an option, with the keywords that argparse knows."""
    return name, {"help": text, **keywords}


def flag(name: str, text: str) -> Argument:
    """An option without a value."""
    return argument(name, text, action="store_true")


def number(name: str, text: str, metavar: str = "N", least: int = 1, **keywords: object) -> Argument:
    """An option, or an argument, that is a whole number."""
    return argument(name, text, type=_whole_from(least), metavar=metavar, **keywords)


def choice(name: str, text: str, names: Sequence[str], metavar: str, **keywords: object) -> Argument:
    """An argument, or an option, that is one of the names."""

    def parse(value: str) -> str:
        if value not in names:
            near = did_you_mean(value, names)
            raise argparse.ArgumentTypeError(f"{value!r} is none of these. {near}Use one of {', '.join(names)}")
        return value

    return argument(name, text, type=parse, metavar=metavar, **keywords)


class _Command(argparse.ArgumentParser):
    """The parser of one command, which knows the names of its options."""

    def __init__(self, **keywords: Any) -> None:
        self.options: list[str] = []
        super().__init__(**keywords)

    def take(self, name: str, **keywords: Any) -> None:
        """Add an argument or an option."""
        self.add_argument(name, **keywords)
        if name.startswith("-"):
            self.options.append(name)


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, _Command]]:
    """The parser of everything, and those of the commands by name.

    The parsed options hold `run`, the function of the command as "module:name", which takes the
    options and the screen and gives the exit code, or None for 0.
    """
    named: dict[str, _Command] = {}
    parser = argparse.ArgumentParser(
        prog="trellis", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Answers from your documents, with sources: five published RAG systems as one pipeline.",
    )  # fmt: skip
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Command)

    def add(name: str, run: str, text: str, examples: str, *arguments: Argument) -> None:
        lines = "".join(f"\n  {line}" for line in examples.splitlines())
        command = named[name] = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"examples:{lines}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.take("--workspace", metavar="DIR", help="the folder of state (default ./.trellis)")
        command.take("--json", action="store_true", help="machine output on stdout; messages go to stderr")
        for place, keywords in arguments:
            command.take(place, **keywords)
        command.set_defaults(run=f"flows.cli.{run}")

    _add_commands(add)
    return parser, named


def _whole_from(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: use a whole number from {least}")
        return int(text)

    return parse


def _amount(text: str) -> float:
    """Above 0: 2.50, $2.50, 1e-5, 1_000; a comma may mean either of two things, and is refused."""
    try:
        amount = float(text.strip().removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        comma = ", with a point and no comma" if "," in text else ""
        raise argparse.ArgumentTypeError(f"{text!r}: use an amount above 0, such as 2.50 or 1e-5{comma}")
    return amount


def _add_commands(add: Callable[..., None]) -> None:
    """Each command: its name, its function as "module:name", what it does, examples as typed, and what it takes."""
    sources = argument("sources", "a file, a folder or a glob pattern", nargs="+", metavar="SOURCE")
    as_of = number("--as-of", "read generation N instead of the current one")
    budget = (
        number("--budget-tokens", "stop before models take more tokens"),
        argument("--budget-usd", "stop before models cost more US dollars", type=_amount, metavar="X"),
    )
    record = flag("--record", "run it as a Prefect flow, so that the run is recorded")
    question = (
        argument("question", "one question", nargs="?", metavar="QUESTION"),
        argument(
            "--questions", metavar="FILE",
            text="rows {id, question, documents?, where?, history?} (- for stdin); one JSON line each, in order",
        ),
        argument("--mode", "auto (default), or a mode of docs/modes.md", metavar="MODE", default="auto"),
        number("--level", "of the reports that mode global reads; 0: broadest", least=0),
        choice(
            "--effort", f"how much is given to models: {', '.join(EFFORTS)} (default: TRELLIS_EFFORT, medium)", EFFORTS,
            "LEVEL",
        ),
        argument(
            "--response", 'the form of the answer: "a list", "one paragraph", "in German"', default="", metavar="TEXT"
        ),
        number("--k", "at most K passages for an answer (default: what fits), K listed (default 8)", "K"),
        argument("--where", "only documents with: \"year >= 2020 and language = 'en'\"", metavar="EXPR"),
        argument("--pages", "read the files of this folder too, beside the index", metavar="DIR"),
        as_of,
    )  # fmt: skip
    add(
        "index", "index:index", "bring the workspace up to date with its sources",
        'trellis index docs/\ntrellis index "notes/**/*.md" facts.csv --workspace kb',
        sources,
        flag("--full", "extract everything again instead of what changed"),
        flag("--allow-removals", "also where more than 30%% of the documents would go"),
        flag("--remake", "also anew what the prompts of a new version would word otherwise"),
        flag("--dry-run", "only forecast calls, tokens, cost and time"),
        *budget, record,
    )  # fmt: skip
    add(
        "tune", "index:tune", "fit the prompts to a domain, from a sample of its documents",
        "trellis tune docs/\ntrellis index docs/       uses what was found",
        sources,
        number("--tokens", "how much is read as a sample (default: as much as an answer reads, TRELLIS_ANSWER_TOKENS)"),
        number("--seed", "another number, another sample", least=0, default=0),
        flag("--force", "also in place of a file that is there"),
    )  # fmt: skip
    add(
        "prompt", "doctor:prompt", "the whole prompt of a step, as the model reads it with these settings",
        "trellis prompt                    the names of the steps\ntrellis prompt extract\n"
        "trellis prompt report --own > prompts/report.md     the instruction alone, to change it (TRELLIS_PROMPTS)",
        argument("step", "a step's name; without it, all names", nargs="?", metavar="STEP"),
        flag("--own", "only the instruction, which a file can replace"),
    )  # fmt: skip
    add(
        "ask", "ask:ask", "answer a question, or a file of questions, with sources",
        'trellis ask "Who designed the Ambel Crossing?"\ntrellis ask --questions questions.jsonl > answers.jsonl',
        *question,
        choice("--structure", f"instead of the router's: {', '.join(STRUCTURES)}", STRUCTURES, "TYPE"),
        argument(
            "--history", "what was said before the question: a file of texts or {role, content}, oldest first; a list "
            "in JSON, or one JSON line each (- for stdin)", metavar="FILE",
        ),
        record,
    )  # fmt: skip
    add(
        "retrieve", "ask:retrieve", "the best passages for a question, without an answer",
        'trellis retrieve "salt in the wells" --k 3\ntrellis retrieve --questions questions.jsonl', *question,
    )  # fmt: skip
    add(
        "questions", "questions:questions", "make a question set for your documents, with the evidence of each answer",
        "trellis questions docs/ -o questions.jsonl                 125 about the whole (needs a model)\n"
        "trellis questions --kind single_fact,multi_hop,unanswerable -n 200 -o parts.jsonl   of the workspace\n"
        "trellis questions docs/ --kind cloze -n 100 -o cloze.jsonl  without a model: sentences without a name",
        argument("sources", "files, folders or glob patterns (default: what is indexed)", nargs="*", metavar="SOURCE"),
        argument("--kind", "global, single_fact, multi_hop, comparison, unanswerable, cloze (default global)",
                 default="global", metavar="A,B"),
        number("-n", "how many in all (default 125)", default=125),
        argument("-o", "the file of rows {id, question, answers, gold_documents, …}", required=True, metavar="FILE"),
        number("--seed", "another number, other passages", least=0, default=0),
    )  # fmt: skip
    add(
        "reports", "browse:reports", "the reports on groups of entities, or one of them in full",
        "trellis reports                        the levels, and the most important reports of each\n"
        "trellis reports --level 0              all of the broadest\n"
        "trellis reports com_0123456789abcdef   one, with its citations, members and the reports above and below",
        argument("report", "the community of a report, as the list shows it", nargs="?", metavar="ID"),
        number("--level", "only this level; 0 is the broadest", least=0),
        as_of,
    )  # fmt: skip
    add(
        "graph", "changes:graph", "what the graph knows of an entity, or a correction of it by hand",
        'trellis graph "Ilse Marrand"\ntrellis graph 海岸水文研究所 --json\n'
        'trellis graph merge "Ilse Marrand" "I. Marrand"      both names mean one thing\n'
        'trellis graph split "Mercury" --documents rocks.md   there it is another thing\n'
        'trellis graph split "Tarn" --names "Mrs. Tarn"       this name means another thing\n'
        'trellis graph edit "Mercury" --kind place --description "A planet."\n'
        "trellis graph edits                                  the corrections, which every run applies\n"
        "trellis graph undo 2",
        argument(
            "words", "any name of an entity; or merge, split, edit, edits, undo and theirs", nargs="+",
            metavar="NAME",
        ),
        argument("--names", "split: the names that mean another thing (,, is a comma)", metavar="A,B"),
        argument("--documents", "split: the documents that mean another thing", metavar="D,E"),
        *(
            argument(f"--{name}", f"edit: the {name} that it should have", metavar=name.upper())
            for name in ("kind", "name", "description")
        ),
        as_of,
    )  # fmt: skip
    add(
        "show", "browse:show", "a document's stored text, exactly as offsets count it",
        "trellis show people/ilse-marrand.md\ntrellis show people/ilse-marrand.md --json",
        argument("document", "its id: the path in its source, or the row's id", metavar="DOCUMENT"), as_of,
    )  # fmt: skip
    add(
        "status", "workspace:status", "what is indexed, from where, with which settings",
        "trellis status\ntrellis status --workspace kb --json",
    )  # fmt: skip
    add("generations", "workspace:generations", "the generations that are kept", "trellis generations")
    add(
        "rollback", "workspace:rollback", "make an earlier generation the current one", "trellis rollback 3",
        number("generation", "a number that `trellis generations` lists"),
    )  # fmt: skip
    add(
        "dead-letter", "changes:letters", "what failed and is kept, or another try of exactly that",
        "trellis dead-letter\ntrellis dead-letter --retry",
        flag("--retry", "try it again and publish what succeeds; needs no source"), as_of,
    )  # fmt: skip
    add(
        "export", "workspace:export", "write what is indexed as files for other programs",
        "trellis export backup/\ntrellis export graph/ --format graphml      for Gephi, igraph, NetworkX",
        argument("folder", "made where there is none; an earlier export there is replaced", metavar="DIR"),
        choice("--format", f"{', '.join(FORMATS)}; default json", FORMATS, "FORMAT", default="json"),
        as_of,
    )  # fmt: skip
    add(
        "archive", "workspace:archive", "write the whole workspace into one file",
        "trellis archive backup-2026-01-31.tar.gz     also while an index runs",
        argument("file", "a new file: .tar.gz or .tar", metavar="FILE"),
    )  # fmt: skip
    add(
        "restore", "workspace:restore", "make a workspace of an archive",
        "trellis restore backup-2026-01-31.tar.gz --workspace kb",
        argument("file", "what `trellis archive` wrote", metavar="FILE"),
    )  # fmt: skip
    add(
        "clean", "workspace:clean", "free the room of what is no longer needed",
        "trellis clean                old generations, leftovers, what is deleted in the database\n"
        "trellis clean --keep 1       of the generations only the current one\n"
        "trellis clean --caches       what models and the embedder would have to do again\n"
        "trellis clean --vectors      where a warning says that the vector index is damaged",
        number("--keep", "how many generations stay (default: the setting)"),
        flag("--caches", "also the caches of models' answers and of vectors, and answers of stopped evaluations"),
        flag("--vectors", "build the current vector index anew from the database"),
    )  # fmt: skip
    add(
        "doctor", "doctor:doctor",
        "try every model, the embedding and Prefect once, and read the current generation and the workspace whole",
        "trellis doctor\nTRELLIS_LM=ollama/qwen3 trellis doctor --json",
    )  # fmt: skip
    add(
        "demo", "demo:demo", "index the sample corpus and ask it a question of each family",
        "trellis demo\ntrellis demo --workspace kb",
    )  # fmt: skip
    add(
        "train", "train:train", "a router, a rewriter, a filter or an answer from rows, compared with other ways",
        "trellis train router --rows preferences.jsonl --use              without a GPU, as a small file\n"
        "trellis train router --tasks 450 --base Qwen/Qwen2.5-0.5B-Instruct   rows made by models, then DPO\n"
        "trellis train rewriter --questions gold.jsonl --base MODEL\n"
        "trellis train filter --rows judged.jsonl --base MODEL --by cross-encoder\n"
        "trellis train answer --questions gold.jsonl --by mipro --measure f1 --use",
        choice("step", ", ".join(TRAINED), TRAINED, "STEP"),
        choice("--by", f"{', '.join(METHODS)} (default by what is given)", METHODS, "METHOD"),
        argument("--measure", "by which bootstrap, mipro and gepa compile (default: the step's first)", metavar="NAME"),
        argument("--rows", "rows to train on (JSON lines)", action="append", default=[], metavar="FILE"),
        number("--tasks", "router: make so many tasks in each language", least=0, default=0),
        argument("--languages", "of those tasks (default en,zh)", default="en,zh", metavar="A,B"),
        argument("--seeds", "seed tasks in place of ours (TOML)", metavar="FILE"),
        argument("--questions", "rewriter, filter, answer: questions with gold in the workspace", metavar="FILE"),
        argument("--compare", "rows to compare on, in place of a fifth held out", metavar="FILE"),
        argument("--exclude", "a set whose questions are not trained on", action="append", default=[], metavar="FILE"),
        argument("--base", "the model to train: a folder, or a name in the Hub's cache", default="", metavar="MODEL"),
        argument("--out", "the folder of the result (default WORKSPACE/trained/STEP-METHOD)", metavar="DIR"),
        argument("--licence", "of the rows, for their card", default="", metavar="TEXT"),
        flag("--use", "put a program among those that the workspace loads"),
        argument("--learning-rate", "(default dpo 1e-5, sft 2e-4, cross-encoder 2e-5)", type=_amount, metavar="X"),
        argument("--epochs", "(default 3)", type=_amount, default=3.0, metavar="X"),
        argument("--beta", "of DPO (default 0.1)", type=_amount, default=0.1, metavar="X"),
        number("--rank", "of LoRA (default 16)", default=16),
        number("--batch", "(default 4)", default=4),
        number("--steps", "end after so many, whatever the epochs"),
        number("--seed", "of all that is drawn (default 0)", least=0, default=0),
        record,
    )  # fmt: skip
    add(
        "forget", "changes:forget", "remove a document from everything, and keep it out",
        "trellis forget people/ilse-marrand.md\n"
        "trellis forget people/ilse-marrand.md --undo   the next run on its source brings it back",
        argument("documents", "its id: its path, or the row's", nargs="+", metavar="DOCUMENT"),
        flag("--undo", "let it in again; nothing is brought back by this alone"),
    )  # fmt: skip
    add(
        "diff", "changes:diff", "what came, went and changed from one generation to another",
        "trellis diff 3         from generation 3 to the current one\ntrellis diff 3 5 --json",
        number("before", "a number that `trellis generations` lists"),
        number("after", "another one (default: the current one)", "M", nargs="?"),
        flag("--all", "every row, however many there are"),
    )  # fmt: skip
    add(
        "evaluate", "evaluate:evaluate", "compare modes, settings, workspaces or other systems on a question set",
        "trellis evaluate --questions dev.jsonl --system mode=naive --system mode=mix,effort=high,name=deep\n"
        "trellis evaluate --questions dev.jsonl --system mix --system answers=other.jsonl,name=other --page p.html\n"
        "trellis evaluate --questions dev.jsonl --system mix --gate gate.toml     exit code 6 where a measure fell\n"
        "trellis evaluate --list\n"
        "trellis evaluate --show 3 --against 1 --page page.html",
        argument("--questions", "rows {id, question, answers, gold_documents, …}, or a set's name", metavar="FILE"),
        argument(
            "--system", "what is compared, once for each: mode=MODE, effort, structure, k, workspace, generation, any "
            "setting, or answers=FILE.jsonl; and a name (default: mode auto)", action="append", metavar="SPEC",
        ),
        argument("--measures", "names, apart by commas (default: those that fit the questions)", metavar="A,B"),
        argument(
            "--judge", "let the role `judge` compare the answers of every two systems: overall (default), "
            "comprehensiveness, diversity, empowerment, directness", nargs="?", const="overall", metavar="A,B",
        ),
        number("--repeats", "how often the judge looks at a pair in each order (default 1)", default=1),
        argument("--data", "the folder of a published set's files", metavar="DIR"),
        number("--limit", "only the first questions"),
        argument("--page", "write the result as a page: .html or .md", metavar="FILE"),
        argument("--gate", "fail with 6 where a measure fell against the last accepted evaluation", metavar="FILE"),
        flag("--accept", "gates compare with this evaluation from now on"),
        flag("--list", "the evaluations of this workspace"),
        number("--show", "an evaluation of this workspace, instead of a new one"),
        argument("--table", "the result in a published table's form: loong_by_task, lightrag_wins, …", metavar="NAME"),
        number("--against", "another one to show the scores of beside"),
        argument("--people", "people's verdicts, to hold the judge's against", metavar="FILE"),
        number("--remove", "remove one"),
        flag("--dry-run", "ask five questions of each system, and forecast what the rest takes"), *budget, record,
    )  # fmt: skip
    add(
        "watch", "evaluate:watched", "questions that are asked again after every publication",
        'trellis watch add "Who is director of the institute?"\n'
        "trellis watch                  their last answers, and how they changed\n"
        "trellis watch run              ask them now\ntrellis watch remove wat_3f2a91",
        argument("words", "add QUESTION, remove ID, or run; without any they are listed", nargs="*", metavar="ACTION"),
        argument("--mode", "of a question that is added", metavar="MODE", default="auto"),
    )  # fmt: skip
    add(
        "serve", "serve:serve", "the page, the API and Prefect's schedule of index runs, until it is ended",
        'trellis serve docs/ --cron "0 3 * * *" --timezone Europe/Berlin\n'
        "trellis serve --no-prefect               the service alone, on http://127.0.0.1:8100\n"
        "trellis serve --new-key ann:edit         a key, for a service that others can reach\n"
        "trellis serve --listen 0.0.0.0:8100",
        argument("sources", "what index runs bring the workspace up to", nargs="*", metavar="SOURCE"),
        argument("--cron", 'when to index: "0 3 * * *" is every night at three', metavar="EXPR"),
        argument("--timezone", "of --cron (default UTC)", default="UTC", metavar="NAME"),
        argument("--listen", "where the service listens: [HOST:]PORT (default 127.0.0.1:8100); another host than "
                 "this machine needs a key", metavar="ADDRESS"),
        flag("--no-prefect", "the service alone, without a Prefect server and deployments"),
        argument("--new-key", "only make a key of the role ask, edit or admin", metavar="NAME:ROLE"),
        number("--port", "of Prefect's server, where PREFECT_API_URL names none"),
        argument("--pool", "only register the deployments, for the workers of this pool, and end", metavar="NAME"),
    )  # fmt: skip
    add(
        "mcp", "serve:mcp", "answers, entities, reports and sources as tools for an MCP client, over stdio",
        "trellis mcp --workspace kb       the command in the client's configuration: docs/mcp.md",
    )  # fmt: skip
