"""`trellis index`, `tune` and `demo`: what a run found and made, or what it would do and cost."""

import asyncio
import json
import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import flows
from flows.cli.screen import Screen, runtime_of, shorten_errors
from flows.index import IndexOptions
from flows.indexing.earlier_prompts import in_words
from flows.operations.forecast import forecast
from flows.operations.history import index_run
from flows.operations.tune import TuneOptions, TuneReport, tune_workspace
from flows.runtime import Runtime, with_budget
from flows.settings import load_settings
from flows.usage import cost_of, in_short
from prompts.tailoring import Tailoring
from storage.answer_records import Answer, Mode
from storage.errors import UsageError
from storage.records import Skipped
from storage.run_records import IndexReport, KeptPrompts, StepUsage
from storage.spending import Budget, Forecast, StepForecast

SHOWN_SKIPPED = 10


def index(options: Namespace, screen: Screen) -> int:
    """Index the sources; with --record, or where a Prefect server is configured, as a flow run.

    With --dry-run only say what that would do and cost.
    """
    if options.dry_run:
        return _dry_run(options, screen)
    recorded = options.record or os.environ.get("PREFECT_API_URL")
    report = _recorded(options) if recorded else _plain(options, screen)
    if screen.as_json:
        screen.json(report)
    else:
        show_report(report, screen)
        if report.kept_prompts:
            _show_kept(report.kept_prompts, options, screen)
    return 0


def _show_kept(kept: KeptPrompts, options: Namespace, screen: Screen) -> None:
    """What --remake would do, with the forecast of what it takes."""
    found = asyncio.run(forecast(options.sources, IndexOptions(remake=True), runtime_of(options)))
    screen.line(f"  {in_words(kept)}", style="yellow")
    screen.line(f"  --remake makes it anew: {cost_in_words(found)}", style="yellow")


def show_report(report: IndexReport, screen: Screen) -> None:
    """The report for people."""
    counts = report.documents
    if report.published:
        screen.line(f"Published generation {report.generation} in {report.seconds:.1f} s", style="bold green")
    else:
        screen.line(f"Nothing has changed: generation {report.generation} stays", style="bold")
    changes = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number)
    screen.facts(
        [
            ("documents", changes or "none"),
            ("text", f"{report.chunks} chunks"),
            ("graph", f"{report.entities} entities, {report.relations} relations, {report.claims} claims"),
            ("themes", f"{report.communities} communities, {report.reports} reports"),
        ],
        indent=2,
    )
    if not report.chunks:
        screen.line("  The sources hold nothing that can be read.", style="yellow")
    if used := in_short(report.usage):
        screen.line(f"  {used}")
    _show_skipped(report.skipped, screen)
    if report.dead_letters:
        screen.line(f"  {report.dead_letters} items failed: see trellis dead-letter", style="yellow")


def _show_skipped(skipped: Sequence[Skipped], screen: Screen) -> None:
    for one in skipped[:SHOWN_SKIPPED]:
        screen.line(f"  skipped {one.path}: {one.reason}", style="yellow")
    if len(skipped) > SHOWN_SKIPPED:
        screen.line(f"  and {len(skipped) - SHOWN_SKIPPED} more skipped (--json lists all)", style="yellow")


def _plain(options: Namespace, screen: Screen) -> IndexReport:
    with screen.progress() as progress:
        runtime = with_budget(runtime_of(options, progress), _budget(options))
        return asyncio.run(index_run(options.sources, _allowed(options), runtime))


def _dry_run(options: Namespace, screen: Screen) -> int:
    with screen.progress() as progress:
        runtime = with_budget(runtime_of(options, progress, reading=True), _budget(options))
        found = asyncio.run(forecast(options.sources, _allowed(options), runtime))
    screen.result(found, lambda: show_plan(found, _budget(options), screen))
    return 0


def _allowed(options: Namespace) -> IndexOptions:
    return IndexOptions(options.full, options.allow_removals, options.remake)


def _budget(options: Namespace) -> Budget:
    return Budget(tokens=options.budget_tokens, usd=options.budget_usd)


def _recorded(options: Namespace) -> IndexReport:
    from flows.index import index as index_flow

    shorten_errors()
    run = index_flow(
        options.sources, workspace=options.workspace, full=options.full, allow_removals=options.allow_removals,
        remake=options.remake, budget=_budget(options),
    )  # fmt: skip
    return asyncio.run(run)


BASES = {"history": "as its model wrote before", "rule": "by rule"}


def show_plan(found: Forecast, budget: Budget, screen: Screen) -> None:
    """The forecast for people."""
    changes = ", ".join(f"{number} {name}" for name, number in found.documents.model_dump().items() if number)
    screen.line("Forecast: nothing was called or written", style="bold")
    reading = f"{found.chunks} chunks, {found.chunks_to_extract} to extract"
    screen.facts([("documents", changes or "none"), ("text", reading), ("models", cost_in_words(found))], indent=2)
    for step in found.steps:
        screen.line(f"{step.step} ({step.model}): {cost_in_words(step)}; output {BASES[step.basis]}", indent=4)
    _show_skipped(found.skipped, screen)
    tokens = found.input_tokens + found.output_tokens
    if budget.tokens is not None and tokens > budget.tokens:
        screen.line(f"  {tokens:,} tokens are more than the budget of {budget.tokens:,}", style="yellow")
    if budget.usd is not None and found.cost_usd is not None and found.cost_usd > budget.usd:
        screen.line(f"  ${found.cost_usd:.2f} is more than the budget of ${budget.usd:.2f}", style="yellow")


def cost_in_words(some: Forecast | StepForecast) -> str:
    """Calls, tokens and cost in words."""
    if not some.calls:
        return "no calls" + (f", {some.cached_calls:,} answers from the cache" if some.cached_calls else "")
    cached = f" and {some.cached_calls:,} from the cache" if some.cached_calls else ""
    cost = cost_of(StepUsage(cost_usd=some.cost_usd))
    return f"about {some.calls:,} calls{cached}, {some.input_tokens:,} tokens in, {some.output_tokens:,} out, {cost}"


def tune(options: Namespace, screen: Screen) -> int:
    """Read a sample of the sources, keep what was found in the workspace, and show it."""
    wanted = TuneOptions(tokens=options.tokens, seed=options.seed, force=options.force)
    with screen.progress() as progress:
        report = asyncio.run(tune_workspace(options.sources, wanted, runtime_of(options, progress)))
    if screen.as_json:
        screen.json(report)
        return 0
    _show_tailoring(report, screen)
    for name in _overridden(options, report.tailoring):
        screen.line(f"Your settings name another {name}, which counts instead.", style="yellow")
    screen.line()
    screen.line(f"Read it, and change what does not fit: {report.path}")
    screen.line(f"Then: trellis index {' '.join(options.sources)}   (everything is extracted anew where it differs)")
    return 0


def _show_tailoring(report: TuneReport, screen: Screen) -> None:
    found = report.tailoring
    screen.line(
        f"From {report.passages} passages of {report.documents} documents ({report.tokens} tokens)", style="bold green"
    )
    kinds = [
        f"{one}" + (f"  ({report.names[one.name]} names)" if one.name in report.names else "")
        for one in found.entity_types
    ]
    kinds = kinds or ["none found: the common kinds stay"]
    screen.facts(
        [
            ("persona", found.persona or "none"),
            ("language", found.language or "not told: the documents' own"),
            *(("kinds" if place == 0 else "", kind) for place, kind in enumerate(kinds)),
            ("examples", f"{len(found.examples)} of {sum(one.tokens() for one in found.examples)} tokens"),
        ],
        indent=2,
    )
    if used := in_short(report.usage):
        screen.line(used, indent=2)
    for reason in report.left_out:
        screen.line(f"left out {reason}", indent=2, style="yellow")


def _overridden(options: Namespace, found: Tailoring) -> list[str]:
    """The values of the tailoring that another place sets too: the file in the workspace comes last."""
    in_force = load_settings({"workspace": options.workspace}).tailoring
    return [name for name in Tailoring.model_fields if getattr(in_force, name) != getattr(found, name)]


WORKSPACE = ".trellis-demo"
QUESTIONS = ("questions.jsonl", "questions_global.jsonl")
SHOWN_SOURCES = 3


@dataclass(frozen=True)
class Family:
    """A kind of question: what it is, and one of it, by its id in the examples or in words."""

    name: str
    question: str
    mode: Mode = "auto"
    history: tuple[str, ...] = ()


FAMILIES = (
    Family("one fact", "q01"),
    Family("figures of several documents", "q02"),
    Family("a chain over three documents", "q03"),
    Family("steps to follow", "q04"),
    Family("an overview of one document", "q05"),
    Family("the whole collection", "g02"),
    Family("how two things are connected", "q09"),
    Family("the graph alone", "q08", mode="traverse"),
    Family("a follow-up", "Where was she born?", history=("Which bridges did Ilse Marrand design?",)),
    Family("in Chinese", "q12"),
    Family("what the documents do not say", "q11"),
)


def demo(options: Namespace, screen: Screen) -> int:
    """Index the sample corpus into a workspace of its own, ask a question of each family, and say what to try next."""
    options.workspace = options.workspace or WORKSPACE
    samples = sample_folder()
    if not screen.as_json:
        screen.line(f"Indexing the sample corpus into {options.workspace}: no model, no network.")
    with screen.progress() as progress:
        runtime = runtime_of(options, progress)
        report = asyncio.run(_index_samples(samples / "corpus", runtime))
    if not screen.as_json:
        show_report(report, screen)
    answers = _demo_answers(FAMILIES, _questions(samples), runtime, screen)
    screen.result(
        {"index": report.model_dump(), "answers": [answer.model_dump() for answer in answers]},
        lambda: _next(answers, options.workspace, screen),
    )
    return 0


def _demo_answers(
    families: Sequence[Family], questions: dict[str, str], runtime: Runtime, screen: Screen
) -> list[Answer]:
    """The answers, each shown as it comes."""
    from flows.cli.ask import show_answer

    answers = []
    for family in families:
        question = questions.get(family.question, family.question)
        if not screen.as_json:
            screen.line()
            screen.line(f"? {question}", style="bold cyan")
            asked = f"after: {' '.join(family.history)}" if family.history else ""
            mode = f"--mode {family.mode}" if family.mode != "auto" else ""
            screen.line(" · ".join(part for part in (family.name, asked, mode) if part), style="dim")
        answers.append(asyncio.run(_demo_answer(question, family, runtime)))
        if not screen.as_json:
            show_answer(answers[-1], screen, most_sources=SHOWN_SOURCES)
    return answers


def sample_folder() -> Path:
    """Where the sample corpus is: in a checkout, or in the installed package."""
    package = Path(flows.__file__).resolve().parent
    for folder in (package.parent / "examples", package / "_examples"):
        if (folder / "corpus").is_dir():
            return folder
    raise UsageError("The sample corpus is missing.", "Install trellis-rag again, or run from a whole checkout.")


async def _index_samples(corpus: Path, runtime: Runtime) -> IndexReport:
    return await index_run([corpus], IndexOptions(), runtime)


async def _demo_answer(question: str, family: Family, runtime: Runtime) -> Answer:
    from flows.query import answer_question
    from flows.question import AskOptions
    from flows.session import open_session

    with open_session(runtime) as session:
        return await answer_question(question, AskOptions(mode=family.mode, history=family.history), session)


def _questions(samples: Path) -> dict[str, str]:
    lines = [line for name in QUESTIONS for line in (samples / name).read_text(encoding="utf-8").splitlines()]
    return {row["id"]: str(row["question"]) for row in map(json.loads, lines)}


def _next(answers: list[Answer], workspace: str, screen: Screen) -> None:
    cited = next((one.citations[0].document for one in answers if one.citations), "people/ilse-marrand.md")
    place = f" --workspace {workspace}"
    screen.line()
    screen.line("Try next", style="bold")
    for command in (
        f'trellis ask "Which bridges did Ilse Marrand design?"{place}',
        f'trellis graph "Ilse Marrand"{place}',
        f"trellis show {cited}{place}",
        f"trellis reports --level 0{place}",
        "trellis index YOUR-FOLDER    (then ask without --workspace)",
    ):
        screen.line(command, indent=2)
