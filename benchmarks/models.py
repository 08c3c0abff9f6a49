"""How well a real model does: steps, answers, what cannot be answered, facts, the graph."""

from benchmarks.model_answers import ASKED, WAYS, measure_answers
from benchmarks.model_facts import measure_facts
from benchmarks.model_graph import measure_graph
from benchmarks.model_steps import measure_steps
from benchmarks.model_unanswerable import measure_unanswerable
from benchmarks.runner import Run, measure, names_of, option, whole_number
from benchmarks.sets import settings_in
from flows.runtime import open_runtime
from prompts.engine.effort import HELPERS
from prompts.engine.models import Models

PARTS = ("steps", "answers", "unanswerable", "facts", "graph")


@measure(
    option(
        "--base-url",
        required=True,
        help="the server, with OpenAI's protocol: http://127.0.0.1:8080/v1",
    ),
    option("--model", required=True, metavar="NAME", help="the model, as the server calls it"),
    option(
        "--parts", type=names_of(PARTS), default=list(PARTS), metavar="A,B", help=", ".join(PARTS)
    ),
    option("--steps", type=lambda text: text.split(","), metavar="A,B", help="these steps (all)"),
    option("--quick", action="store_true", help="the steps alone, 5 inputs each"),
    option("--ways", type=names_of(WAYS), default=list(WAYS), metavar="A,B", help=", ".join(WAYS)),
    option("--seed", type=int, default=7, help="which questions are taken, and in which order (7)"),
    option(
        "--profile",
        choices=("auto", "small", "large"),
        default="auto",
        help="what the model can do (auto)",
    ),
    option(
        "--helpers",
        type=names_of(HELPERS),
        metavar="A,B",
        help="of the answers by Trellis: these helping steps ask the model (as the profile says)",
    ),
    option(
        "--timeout",
        type=whole_number,
        default=1_800,
        help="seconds that an answer may take (1,800)",
    ),
    option(
        "--sets",
        dest="question_sets",
        type=names_of(ASKED),
        default=list(ASKED[:1]),
        metavar="A,B",
        help=f"of the answers: {', '.join(ASKED)} ({ASKED[0]})",
    ),
)
def models(run: Run) -> None:
    """How well does a real model do each step, and answer, beside a plain retriever with the same
    model?

    `steps`: each step gets inputs from indexes that no model made (20, or --limit); told are the
    shares in form at the first try, after a repair, refused, going round, copying an example, in
    another language, and what a call takes. `answers`: `plain` is BM25 and vectors fused, the first
    five passages and one prompt of three lines; `ours` the same prompt over Trellis' first five;
    `gold` over the passages that answer the question (a ceiling); `low`, `medium` and `high` are
    Trellis itself, its index made without a model. Exact match and F1 by HotpotQA's rules;
    "contained" is the share of answers that hold the gold answer. `unanswerable`: the same ways on
    30 questions that the corpus does not answer, in English and in Chinese. `facts`: plans for 35
    counting and comparing questions over typed facts of the samples, and which of 61 questions the
    model takes for such. `graph`: names and relations of 40 passages, beside what GPT-4o and
    GPT-3.5 listed. With --keep the rows stay, but not those of facts: a second run, after a kill
    too, asks only what is missing or has changed.
    """
    parts = ["steps"] if run.options.quick else run.options.parts
    if "steps" in parts:
        measure_steps(run, models_of(run), run.options.model)
    if "answers" in parts:
        measure_answers(run, run.options.model)
    if "unanswerable" in parts:
        measure_unanswerable(run, run.options.model)
    if "facts" in parts:
        measure_facts(run, models_of(run), run.options.model)
    if "graph" in parts:
        measure_graph(run, models_of(run), run.options.model)


def models_of(run: Run) -> Models:
    """The model for every role, without a cache: rows are kept instead."""
    options = run.options
    settings = settings_in(
        run.workspace("steps"),
        lm=f"openai/{options.model}",
        lm_base_url=options.base_url,
        lm_api_key="none",
        timeout=options.timeout,
        concurrency=1,
        profile=options.profile,
    )
    return open_runtime(settings).models.without_cache()
