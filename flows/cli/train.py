"""`trellis train`: rows become a router, a rewriter or a filter, compared with other ways."""

import asyncio
from argparse import Namespace
from pathlib import Path

from flows.cli.screen import Screen, runtime_of
from flows.train import TrainOptions, train_step
from flows.usage import facts_of, in_short
from storage.training_records import TrainingReport
from tasks.train.lora import TrainingOptions


def train(options: Namespace, screen: Screen) -> None:
    """Train, and show how what was trained does; with --record as a flow run."""
    wanted = TrainOptions(
        step=options.step, by=options.by, measure=options.measure, rows=tuple(map(Path, options.rows)),
        tasks=options.tasks,
        languages=tuple(options.languages.split(",")), seeds=_path(options.seeds), questions=_path(options.questions),
        compare=_path(options.compare), exclude=tuple(map(Path, options.exclude)), base=options.base,
        folder=_path(options.out), licence=options.licence, use=options.use,
        training=TrainingOptions(
            learning_rate=options.learning_rate, epochs=options.epochs, beta=options.beta, rank=options.rank,
            batch=options.batch, steps=options.steps, seed=options.seed,
        ),
    )  # fmt: skip
    if options.record:
        from flows.orchestration.local_server import keep_server
        from flows.train import train as train_flow

        keep_server()
        report = asyncio.run(train_flow(wanted, options.workspace))
    else:
        with screen.progress() as progress:
            report = asyncio.run(train_step(wanted, runtime_of(options, progress)))
    screen.result(report, lambda: show_training(report, screen))


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def show_training(report: TrainingReport, screen: Screen) -> None:
    """The report for people."""
    screen.line(f"The {report.step}, trained by {report.by} on {report.rows} rows: {report.folder}", style="bold green")
    rows = [(name, ", ".join(f"{measure} {value:.3f}" for measure, value in of.items())) for name, of in
            report.scores.items()]  # fmt: skip
    facts = facts_of({"held out": report.held_out, "left out": report.left_out})
    if report.curve is not None:
        loss, margin = report.curve.loss, report.curve.margin
        facts.append(("loss", f"{loss[0]:.3f} to {loss[1]:.3f} in {report.curve.steps} steps"))
        facts += [("margin", f"{margin[0]:.3f} to {margin[1]:.3f}")] if margin else []
    facts += rows or [("compared", "with nothing: no question is held out; name some by --compare FILE")]
    facts += [("models", in_short(report.usage))] if in_short(report.usage) else []
    screen.facts([*facts, ("use", report.use)], indent=2)
