"""Rows for a router (StructRAG, section 4): new tasks, solved by each structure and judged."""

import random
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from prompts.engine.errors import ModelRefused
from prompts.engine.messages import Message
from prompts.route import Route, Routed
from prompts.text.question import parse_question
from prompts.train import FORMS, Rank, Simulate, Synthesize, SyntheticTask
from storage.answer_records import StructureType
from storage.errors import UsageError
from storage.files import text_of_file
from storage.records import Record
from storage.training_records import PreferenceRow, Row
from tasks.batches import gather_or_cancel
from tasks.evaluate.measures import squeezed
from tasks.step import step
from tasks.train.lora import Dialogue
from tasks.train.rows import append, language_of_row, replace, sha256_of, stored

SEEDS = Path(__file__).with_name("seed_tasks.toml")
STRUCTURES: tuple[StructureType, ...] = get_args(StructureType)
LANGUAGES = {"en": "English", "zh": "Chinese"}
PER_CALL, SHOWN_SEEDS = 5, 4
_MOST_CALLS = 3  # Calls for each one that is needed: a model may repeat itself


class SeedTask(Record):
    """A question with the titles of its documents."""

    language: str
    question: str
    documents: tuple[str, ...]


def read_seeds(path: Path | None = None) -> list[SeedTask]:
    """Read seed tasks from a TOML file like ours, which is the default.

    UsageError for a file of another form.
    """
    try:
        tasks = tomllib.loads(text_of_file(path or SEEDS))["task"]
        return [SeedTask.model_validate(task) for task in tasks]
    except (OSError, KeyError, ValueError) as error:
        remedy = "Write [[task]] tables with language, question and documents."
        problem = str(error).splitlines()[0]
        raise UsageError(f"{path} holds no seed tasks: {problem}.", remedy) from error


@step("synthesize", asks_model=True)
async def synthesize_tasks(
    seeds: Sequence[SeedTask], number: int, languages: Sequence[str], synthesize: Synthesize
) -> list[SeedTask]:
    """Make `number` new tasks in each language, fewer where the model repeats itself or a seed."""
    return [
        task
        for language in languages
        for task in await _in_language(language, seeds, number, synthesize)
    ]


async def _in_language(
    language: str, seeds: Sequence[SeedTask], number: int, synthesize: Synthesize
) -> list[SeedTask]:
    own = [task for task in seeds if task.language == language] or list(seeds)
    known = {squeezed(task.question) for task in own}
    tasks: list[SeedTask] = []
    draw = random.Random(language)  # noqa: S311 -- no secret
    for turn in range(1, _MOST_CALLS * -(-number // PER_CALL) + 1):
        if len(tasks) >= number:
            break
        shown = [_in_words(task) for task in draw.sample(own, min(SHOWN_SEEDS, len(own)))]
        new = await synthesize.run(LANGUAGES.get(language, language), PER_CALL, shown, turn)
        for task in (_seed_of(task, language) for task in new):
            if squeezed(task.question) not in known:
                known.add(squeezed(task.question))
                tasks.append(task)
    return tasks[:number]


def _in_words(task: SeedTask) -> str:
    return f"{task.question} ({'; '.join(task.documents)})"


def _seed_of(task: SyntheticTask, language: str) -> SeedTask:
    question = " ".join(task.question.split())
    return SeedTask(language=language, question=question, documents=tuple(task.documents))


@step("judge", asks_model=True)
async def judge_tasks(
    tasks: Sequence[SeedTask],
    path: Path,
    simulate: Simulate,
    rank: Rank,
    tell: Callable[[int, int], None],
) -> list[PreferenceRow]:
    """Rank the structures of each task by a judge, and store the best one before each other one.

    Tasks that an earlier run stored are not asked again. A hash of the question orders the
    solutions that the judge sees, so that no type gains by its place.
    """
    rows = stored(path, PreferenceRow)
    of_task = Counter(squeezed(row.question) for row in rows)
    done = {question for question, number in of_task.items() if number == len(STRUCTURES) - 1}
    if len(done) < len(of_task):  # A kill cut off the rows of a task
        rows = [row for row in rows if squeezed(row.question) in done]
        replace(path, rows)
    open_tasks = [task for task in tasks if squeezed(task.question) not in done]

    async def judged(task: SeedTask) -> None:
        order = list(STRUCTURES)
        random.Random(task.question).shuffle(order)  # noqa: S311
        solutions = await gather_or_cancel(
            simulate.run(task.question, task.documents, form) for form in order
        )
        best, *others = [
            order[place] for place in await rank.run(task.question, task.documents, solutions)
        ]
        name = f"syn_{sha256_of(squeezed(task.question).encode())[:12]}"
        new = [
            PreferenceRow(
                id=f"{name}_{other}",
                question=task.question,
                documents=task.documents,
                language=task.language,
                chosen=best,
                rejected=other,
                source="synthesised",
            )
            for other in others
        ]
        append(path, new)
        rows.extend(new)
        tell(len(rows) // len(others), len(tasks))

    await gather_or_cancel(judged(task) for task in open_tasks)
    return sorted(rows, key=lambda row: row.id)


def dialogues_of(rows: Sequence[PreferenceRow], route: Route) -> list[Dialogue]:
    """Return what the router's model reads of each row, with the chosen and the rejected answer.

    A row without a rejected structure rejects each other one.
    """
    return [
        Dialogue(_prompt(row, route), _answer(row.chosen, route), _answer(other, route))
        for row in rows
        for other in ([row.rejected] if row.rejected else STRUCTURES)
        if other != row.chosen
    ]


def _prompt(row: PreferenceRow, route: Route) -> tuple[Message, ...]:
    return route.module.messages({"question": row.question, "core_content": list(row.documents)})


def _answer(structure: StructureType, route: Route) -> str:
    routed = Routed(reason="", structure=structure, confidence=1.0, margin=1.0)
    return route.output_format.write(route.module.signature, {"routed": routed})


def examples_of(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return each question once, as inputs of the router and its output: the chosen structure."""
    once = {squeezed(row.question): row for row in rows if isinstance(row, PreferenceRow)}
    return [
        {
            "question": row.question,
            "core_content": list(row.documents),
            "routed": Routed(
                reason=FORMS[row.chosen], structure=row.chosen, confidence=0.9, margin=0.5
            ),
        }
        for row in once.values()
    ]


def same_structure(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """Return 1 where the router's answer has the structure of the example, else 0."""
    return float(wanted["routed"].structure == given["routed"].structure)


async def accuracy(rows: Sequence[PreferenceRow], route: Route) -> dict[str, float]:
    """Return the share of rows that get their structure, overall and by language.

    An answer that cannot be read is wrong.
    """

    async def is_routed(row: PreferenceRow) -> bool:
        try:
            routed = await route.run(
                parse_question(row.question), list(row.documents), tabular=False
            )
        except ModelRefused:
            return False
        return routed.structure == row.chosen

    right = await gather_or_cancel(is_routed(row) for row in rows)
    shares = {"accuracy": sum(right) / max(len(right), 1)}
    for language in sorted({language_of_row(row) for row in rows}):
        own = [
            is_right
            for is_right, row in zip(right, rows, strict=True)
            if language_of_row(row) == language
        ]
        shares[language] = sum(own) / len(own)
    return shares
