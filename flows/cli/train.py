"""`trellis train`: train a router, a rewriter, a filter or the answer step."""

import asyncio
from pathlib import Path

from flows.cli.common import COMMON, Common
from flows.cli.options import Amount, Count, CountFrom0, Names, Record, names_of
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.orchestration.local_server import keep_server
from flows.train import TrainOptions, train_step
from flows.train import train as train_flow
from flows.usage import facts_of, in_short
from storage.training_records import Method, TrainedStep, TrainingReport
from tasks.train.lora import TrainingOptions


@command
def train(
    step: TrainedStep,
    /,
    *,
    by: Method | None = None,
    measure: str | None = None,
    rows: tuple[Path, ...] = (),
    tasks: CountFrom0 = 0,
    languages: Names = "en,zh",
    seeds: Path | None = None,
    questions: Path | None = None,
    compare: Path | None = None,
    exclude: tuple[Path, ...] = (),
    base: str = "",
    out: Path | None = None,
    licence: str = "",
    use: bool = False,
    learning_rate: Amount | None = None,
    epochs: Amount = 3.0,
    beta: Amount = 0.1,
    rank: Count = 16,
    batch: Count = 4,
    steps: Count | None = None,
    seed: CountFrom0 = 0,
    record: Record = False,
    common: Common = COMMON,
) -> None:
    """Train a step and show how well the result works; with --record as a flow run.

    Args:
        step: The step to train.
        by: The method (default: chosen by the other options).
        measure: What bootstrap, mipro and gepa optimise (default: the step's first measure).
        rows: Rows to train on (JSON lines).
        tasks: Router: make N tasks in each language.
        languages: The languages of those tasks (default en,zh).
        seeds: Seed tasks instead of the built-in ones (TOML).
        questions: Rewriter, filter, answer: questions with gold in the workspace.
        compare: Rows to compare on, instead of a held-out fifth.
        exclude: A set whose questions are not trained on.
        base: The model to train: a folder, or a name in the Hub's cache.
        out: The folder of the result (default WORKSPACE/trained/STEP-METHOD).
        licence: The licence of the rows, for their card.
        use: Let the workspace load the program.
        learning_rate: Default: dpo 1e-5, sft 2e-4, cross-encoder 2e-5.
        epochs: Default 3.
        beta: The beta of DPO (default 0.1).
        rank: The rank of LoRA (default 16).
        batch: Default 4.
        steps: End after N steps, regardless of the epochs.
        seed: The seed of all random choices (default 0).
    """
    screen = common.screen
    options = TrainOptions(
        step=step,
        by=by,
        measure=measure,
        rows=rows,
        tasks=tasks,
        languages=tuple(names_of(languages)),
        seeds=seeds,
        questions=questions,
        compare=compare,
        exclude=exclude,
        base=base,
        folder=out,
        licence=licence,
        use=use,
        training=TrainingOptions(
            learning_rate=learning_rate,
            epochs=epochs,
            beta=beta,
            rank=rank,
            batch=batch,
            steps=steps,
            seed=seed,
        ),
    )
    if record:
        keep_server()
        report: TrainingReport = asyncio.run(train_flow(options, common.workspace))
    else:
        with screen.progress() as progress:
            report = asyncio.run(train_step(options, common.runtime(progress)))
    screen.result(report, lambda: _show(report, screen))


def _show(report: TrainingReport, screen: Screen) -> None:
    screen.line(
        f"The {report.step}, trained by {report.by} on {report.rows} rows: {report.folder}",
        style="bold green",
    )
    facts = facts_of({"held out": report.held_out, "left out": report.left_out})
    if (curve := report.curve) is not None:
        loss = f"{curve.loss[0]:.3f} to {curve.loss[1]:.3f} in {curve.steps} steps"
        facts.append(("loss", loss))
        if curve.margin:
            facts.append(("margin", f"{curve.margin[0]:.3f} to {curve.margin[1]:.3f}"))
    for name, scores in report.scores.items():
        figures = [f"{measure} {value:.3f}" for measure, value in scores.items()]
        facts.append((name, ", ".join(figures)))
    if not report.scores:
        nothing = "with nothing: no question is held out; name some with --compare FILE"
        facts.append(("compared", nothing))
    if used := in_short(report.usage):
        facts.append(("models", used))
    screen.facts([*facts, ("use", report.use)], indent=2)
