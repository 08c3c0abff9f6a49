"""Which mode answers best, and what does each cost? All modes on five sets, as one page.

    python -m benchmarks.compare --data DIR --out page.html [--sets A,B] [--modes A,B] [--server] [--json results.json]

Each set is indexed offline, as `trellis index` does, and every question is asked in every mode, without memory and with
caches of its own. `direct` and `hyde` need a model. With `--server` the first questions are asked again with every role
on the scripted server of the tests: its answers are rules, so that only calls and tokens mean something there. For the
questions about a whole collection `global` is asked level by level too.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.ablations import standing
from benchmarks.compare_measure import Room, Scripted, measure
from benchmarks.compare_records import Asked, Comparison, Figures, SetFigures, Way
from benchmarks.compare_sets import COMPARED, CompareSet
from benchmarks.page.whole import page
from benchmarks.questions import Question
from flows.modes.registry import mode_names
from flows.session import Session, open_session
from storage.answer_records import Mode

ALL_MODES: tuple[Mode, ...] = mode_names()


def main(arguments: Sequence[str] | None = None, sets: Sequence[CompareSet] = COMPARED) -> int:
    """Compare and write the page; 2 where the folder or a file of a set is absent."""
    options = _parser([known.name for known in sets]).parse_args(arguments)
    if options.read is not None:
        found = read(options.read)
    else:
        chosen = [known for known in sets if known.name in options.sets]
        problem = absent(options.data, chosen)
        if problem:
            print(problem, file=sys.stderr)
            return 2
        found = compared(chosen, options)
    if options.json is not None:
        options.json.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    options.out.write_text(page(found), encoding="utf-8")
    return 0


def compared(chosen: Sequence[CompareSet], options: argparse.Namespace) -> Comparison:
    """The figures of the sets; each is printed as it is known, and written to the JSON file so far."""
    done: list[SetFigures] = []
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary, _server(options) as server:
        for known in chosen:
            folder = (options.keep or Path(temporary)) / known.name
            folder.mkdir(parents=True, exist_ok=True)
            done.append(set_figures(known, options, folder, server))
            if options.json is not None:
                so_far = Comparison(sets=tuple(done))
                options.json.write_text(so_far.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return Comparison(sets=tuple(done))


def read(files: Sequence[Path]) -> Comparison:
    """Figures that were written before, as one; a set in several files is that of the last."""
    found = [Comparison.model_validate_json(file.read_text(encoding="utf-8")) for file in files]
    sets = {one.name: one for comparison in found for one in comparison.sets}
    return Comparison(sets=tuple(sets.values()))


def set_figures(known: CompareSet, options: argparse.Namespace, folder: Path, server: Scripted | None) -> SetFigures:
    """One set: indexed unless its folder holds the index, then asked in every way."""
    data = options.data or Path()
    known = replace(known, embedding="none") if options.no_vectors else known
    room = Room(known, folder / "workspace", options.seconds)
    runtime = room.index(known.write(data, folder))
    questions = known.ask(data, options.limit)
    print(f"{known.name}: {len(questions)} questions", flush=True)
    with open_session(runtime) as session:
        found = []
        for way in ways_of(known, options.modes, session):
            found.append(measure(way, questions, session, room, server))
            print(line(found[-1]), flush=True)
        told = asyncio.run(_standing(known, questions, session)) if "low" in options.modes else {}
    published = known.published(data) if known.published else {}
    return SetFigures(
        name=known.name, told=known.told, multihop=known.multihop, questions=len(questions),
        command=command_of(known, options), measures=known.measures, ways=tuple(found), beside=dict(published),
        standing=told,
    )  # fmt: skip


def ways_of(known: CompareSet, modes: Sequence[Mode], session: Session) -> list[Way]:
    """The modes; where claims are counted, `global` also with all reports of each level."""
    ways = [Way(mode=mode) for mode in modes]
    if known.judged == "claims" and "global" in modes:
        levels = sorted({report.level for report in session.reports.reports.values()})
        ways += [Way(mode="global", level=level) for level in levels]
    return ways


async def _standing(known: CompareSet, questions: Sequence[Asked], session: Session) -> dict[str, float]:
    """How often the answer stands in what a mode lays before the answering step; where answers are known."""
    if known.judged != "answer":
        return {}
    asked = [Question(text=one.text, gold=one.gold, answers=one.answers) for one in questions]
    return (await standing(asked, session)).shares


def line(one: Figures) -> str:
    """The figures of a way, for the terminal."""
    quality = ", ".join(f"{name} {value:.3f}" for name, value in one.quality.items()) or one.problem
    parts = [f"  {one.way.name:16} {quality}"]
    if one.asked is not None:
        parts.append(f"{one.asked.seconds_median * 1000:.0f} ms, {one.asked.cpu_ms:.0f} CPU ms")
    if one.served is not None:
        parts.append(f"{one.served.calls:.1f} calls, {one.served.tokens:.0f} tokens")
    return "; ".join([*parts, *([f"{one.failed} failed: {one.problem}"] if one.failed else [])])


def command_of(known: CompareSet, options: argparse.Namespace) -> str:
    """The command that gives the same figures of a set, with DIR in place of the folder."""
    parts = [f"python -m benchmarks.compare --data DIR --sets {known.name}"]
    if len(options.modes) < len(ALL_MODES):
        parts.append(f"--modes {','.join(options.modes)}")
    parts += [f"--limit {options.limit}"] if options.limit else []
    parts += ["--no-vectors"] if options.no_vectors else []
    parts += [f"--seconds {options.seconds:g}"] if options.seconds < 3600 else []
    parts += [f"--server --served {options.served}"] if options.server else []
    return " ".join([*parts, "--out page.html"])


def absent(data: Path | None, chosen: Sequence[CompareSet]) -> str:
    """What is missing, and what to do; nothing where all is there."""
    if not any(known.files for known in chosen):
        return ""
    if data is None or not data.is_dir():
        return f"There is no folder {data}. Name the one that holds the question sets: --data DIR."
    missing = sorted({str(path) for known in chosen for path in known.missing(data)})
    return f"These files are absent: {', '.join(missing)}. Add them, or choose other sets." if missing else ""


@contextlib.contextmanager
def _server(options: argparse.Namespace) -> Iterator[Scripted | None]:
    """A scripted server, where one is wanted."""
    if not options.server:
        yield None
        return
    from tests.server.client import serving

    with serving() as server:
        yield Scripted(server.base_url, options.served)


def _chosen(known: Sequence[str], text: str) -> list[str]:
    """Names that are known, "auto,naive"."""
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return [name for name in known if name in text.split(",")]


def _parser(names: list[str]) -> argparse.ArgumentParser:
    sets_of, modes_of = partial(_chosen, names), partial(_chosen, ALL_MODES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="Compare the modes.")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--sets", type=sets_of, default=names, metavar="A,B", help=", ".join(names))
    parser.add_argument("--modes", type=modes_of, default=ALL_MODES, metavar="A,B", help=", ".join(ALL_MODES))
    parser.add_argument("--limit", type=int, metavar="N", help="at most N questions of each set")
    parser.add_argument("--server", action="store_true", help="count calls and tokens on the scripted server too")
    parser.add_argument("--served", type=int, default=20, metavar="N", help="ask it the first N of each set (20)")
    parser.add_argument("--no-vectors", action="store_true", help="index and search without vectors")
    parser.add_argument("--seconds", type=float, default=3600, metavar="S", help="no question more after these (3600)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--read", type=Path, nargs="+", metavar="FILE", help="make the page of figures written before")
    return parser


if __name__ == "__main__":
    sys.exit(main())
