"""How many calls and tokens does a question of each kind cost, when every role has a model?

`python -m benchmarks.routes` indexes the sample corpus offline, then asks its questions and some more against the
scripted model server of the tests, without memory, in the modes auto and struct. Bars: a single fact costs at most two
calls in auto, a question in struct at most as many as it has documents, and five.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pydantic import SecretStr

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.answer_records import Answer, Mode
from storage.records import Record
from tests.server.client import Server, serving

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FILES = ("questions.jsonl", "questions_extra.jsonl")
MODES: tuple[Mode, ...] = ("auto", "struct")
NO_MEMORY = 1_000  # a θ that no memory reaches
FACT_CALLS, OVER_DOCUMENTS = 2, 5
FACT = "single-fact"
OWN = (
    (FACT, "When was Ilse Marrand born?", ()),
    (FACT, "Who designed the Kestrel Bridge?", ()),
    (FACT, "Where was Tobias Wren born?", ()),
    (FACT, "How long is the Ambel Crossing?", ()),
    (FACT, "When was Gullstone Brewery founded?", ()),
    (FACT, "Who is the director of the Coastal Hydrology Institute?", ()),
    (FACT, "谁设计了红隼桥？", ()),
    (FACT, "海岸水文研究所成立于哪一年？", ()),
    ("two parts", "Who designed the Kestrel Bridge and when was it opened?", ()),
    ("follow-up", "Where did she study?", ("Who designed the Maltings Bridge?", "Ilse Marrand designed it.")),
    ("follow-up", "And the Gannet Bridge?", ("Who designed the Maltings Bridge?", "Ilse Marrand designed it.")),
    ("follow-up, clear", "When did Tobias Wren die?", ("Who designed the Kestrel Bridge?", "Tobias Wren.")),
)


class Put(Record):
    """A question to ask, and what it is called in the table."""

    kind: str
    question: str
    history: tuple[str, ...] = ()


class Cost(Record):
    """What a question cost; `documents` are those that were read for it."""

    kind: str
    mode: Mode
    question: str
    route: str
    documents: int
    calls: int
    tokens_in: int
    steps: dict[str, int]

    @property
    def is_over(self) -> bool:
        """Whether it costs more than the bar of its kind allows."""
        if self.mode == "struct":
            return self.calls > self.documents + OVER_DOCUMENTS
        return self.kind == FACT and self.calls > FACT_CALLS


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.routes", description=__doc__)
    parser.add_argument("--show", action="store_true", help="show every question")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder, serving() as server:
        costs = [cost for mode in MODES for cost in asyncio.run(measure(Path(folder) / mode, mode, server))]
    print(f"{'mode':7}{'question':18}{'route':11}{'n':>3}  {'calls min/median/max':22}{'tokens in':>10}  calls by step")
    for mode in MODES:
        for kind, route in dict.fromkeys((cost.kind, cost.route) for cost in costs if cost.mode == mode):
            print(_line([cost for cost in costs if (cost.mode, cost.kind, cost.route) == (mode, kind, route)]))
    over = [cost for cost in costs if cost.is_over]
    if options.show:
        for cost in costs:
            print(f"{cost.mode} {cost.calls} calls, {cost.documents} documents, {cost.steps}: {cost.question}")
    for cost in over:
        print(
            f"over its bar ({cost.mode}, {cost.documents} documents): {cost.calls} calls {cost.steps}: {cost.question}"
        )
    print(f"{len(costs) - len(over)} of {len(costs)} questions within their bars")
    return 1 if over else 0


async def measure(workspace: Path, mode: Mode, server: Server) -> list[Cost]:
    """Index the sample corpus without a model, then ask everything in a mode with one."""
    offline = Settings(workspace=workspace, embedding="none", theta=NO_MEMORY)
    await build_index([EXAMPLES / "corpus"], IndexOptions(), open_runtime(offline))
    models = {"lm": "openai/scripted", "lm_base_url": server.base_url, "lm_api_key": SecretStr("none")}
    runtime = open_runtime(offline.model_copy(update=models))
    with open_session(runtime) as session:
        found = [await _cost(put, mode, session) for put in questions()]
    await runtime.models.aclose()
    return found


def questions() -> list[Put]:
    """The sample questions and those of this file."""
    lines = [line for name in FILES for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines if line.strip()]
    sample = [Put(kind=row["class"], question=row["question"]) for row in rows]
    return sample + [Put(kind=kind, question=question, history=history) for kind, question, history in OWN]


async def _cost(put: Put, mode: Mode, session: Session) -> Cost:
    answer = await answer_question(put.question, AskOptions(mode=mode, history=put.history), session)
    usage = answer.usage
    return Cost(
        kind=put.kind, mode=mode, question=put.question, route=answer.trace.route.type, documents=_documents(answer),
        # A call that another question has made already comes from the cache; it would be one by itself.
        calls=usage.calls + usage.cached_calls, tokens_in=usage.input_tokens,
        steps={name: one.calls + one.cached_calls for name, one in usage.by_step.items()},
    )  # fmt: skip


def _documents(answer: Answer) -> int:
    """How many documents were read for an answer: those of its structures, else of its passages."""
    structured = {one.document for one in answer.trace.structures}
    return len(structured or {passage.document for passage in answer.passages})


def _line(costs: Sequence[Cost]) -> str:
    calls = [cost.calls for cost in costs]
    steps = dict.fromkeys(step for cost in costs for step in cost.steps)
    by_step = ", ".join(f"{step} {sum(cost.steps.get(step, 0) for cost in costs) / len(costs):.1f}" for step in steps)
    spread = f"{min(calls)} / {median(calls):g} / {max(calls)}"
    tokens = median(cost.tokens_in for cost in costs)
    return (
        f"{costs[0].mode:7}{costs[0].kind:18}{costs[0].route:11}{len(costs):>3}  {spread:22}{tokens:>10.0f}  {by_step}"
    )


if __name__ == "__main__":
    sys.exit(main())
