"""The Prefect flow `train`: a named run with its page. Its story is told in `flows/train.py`."""

import logging
from collections.abc import Mapping

from flows.orchestration.artifacts import Cell, Progress, put
from flows.orchestration.recording import begin, done, failed, flow, flow_run
from flows.orchestration.state_hooks import ended_by_signals
from flows.runtime import open_runtime
from flows.settings import load_settings
from flows.train import TrainOptions, train_step
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_error
from storage.errors import TrellisError
from storage.training_records import TrainingReport

logger = logging.getLogger(__name__)


def _training_in_short() -> str:
    options = flow_run.parameters.get("options")
    step = options.get("step") if isinstance(options, dict) else getattr(options, "step", "")
    return f"train {step}"


@flow(name="train", flow_run_name=_training_in_short)
async def train(options: TrainOptions, workspace: str | None = None) -> TrainingReport:
    """Train a router, a rewriter or a filter on rows, and compare it with other ways.

    Args:
        options: What is trained, by which method, on what.
        workspace: The folder of state; without it the one of the settings (./.trellis).
    """
    progress = Progress()
    try:
        settings = load_settings({"workspace": workspace})
        await begin(settings)
        async with ended_by_signals(), progress:
            report = await train_step(options, open_runtime(settings, progress.tell))
    except (TrellisError, EngineError) as error:
        return failed(error, TrainingReport)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    message = f"A {report.step}, trained by {report.by} on {report.rows} rows: {report.use}"
    logger.info(message)
    table: list[Mapping[str, Cell]] = [{"way": name, **scores} for name, scores in report.scores.items()]
    await put("training", table, message)
    return done(message, report)
