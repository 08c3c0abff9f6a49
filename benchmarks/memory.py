"""What memory saves, and whether it ever answers for another question."""

import asyncio
import itertools
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.runner import DATA, Cell, Run, measure, share
from benchmarks.sets import Row, index, read_rows, write_rows
from benchmarks.traversal import GRAPH, QUESTIONS, facts_of
from flows.query import answer_question, respond
from flows.question import AskOptions, Response, resources_for
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings, load_settings
from tasks.memory import check_trigger
from tasks.route import SEARCH
from tasks.watching import watched

TAUS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
OWN_TAUS = (0.7, 0.8, 0.9, 0.95)
GROUPS = 100  # of like questions
TUNED_FROM = 336  # groups from here on were seen while the trigger's rules were written


@dataclass(frozen=True)
class GroupedQuestion:
    """A question with what its group asks: (entity, relations), and the triples that answer it."""

    text: str
    about: str
    relations: tuple[str, ...]
    facts: tuple[str, ...]


@dataclass
class Costs:
    """What a series of questions cost: sums over them."""

    seconds: list[float] = field(default_factory=list)
    searching: float = 0.0
    searches: int = 0
    external: int = 0
    from_memory: int = 0
    hits: int = 0
    recalled: int = 0
    answers: list[tuple[str, ...]] = field(default_factory=list)
    _began: float = 0.0

    def __call__(self, step: str, begins: bool) -> None:
        """Watch the step that searches."""
        if step != "retrieve":
            return
        if begins:
            self._began = time.thread_time()
        else:
            self.searches += 1
            self.searching += time.thread_time() - self._began

    def add(self, response: Response, facts: Sequence[str]) -> None:
        read = response.result.passages
        if response.recall.used:
            self.recalled += 1
            self.from_memory += len(read)
        else:
            self.external += len(read)
        self.answers.append((response.answered.fallback, *sorted(response.answered.values)))
        lines = {line for passage in read for line in passage.text.splitlines()}
        self.hits += all(fact in lines for fact in facts)


def settings_for(folder: Path, **settings: object) -> Settings:
    """The settings of a folder's workspace, as the environment has them besides."""
    return load_settings({"workspace": folder / "ws", **settings})


def indexed(folder: Path, documents: Sequence[Mapping[str, object]]) -> None:
    """Make a workspace of these rows in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(documents, folder / "rows.jsonl")
    index([folder / "rows.jsonl"], settings_for(folder))


async def fires(question: str, session: Session) -> bool:
    """Whether the trigger would serve a question from memory; nothing is answered or kept."""
    asked = await resources_for(question, AskOptions(), session)
    return (await check_trigger(asked.question.queries, asked.memory)).used


@measure(files=[GRAPH, QUESTIONS])
def memory(run: Run) -> None:
    """What does memory save, and does it ever answer for another question? (ERM4: 100 questions
    fill it, 200 follow.)

    PathQuestion: the triples of one subject are one document, so that sources can be told apart;
    questions with one path ask the same in other words. One question of each group fills memory,
    the other two follow; then as many of other groups with the same entity or the same relations
    are put to the trigger. Offline, by search.

    Retrieval work is counted in passages scored (every search scores all of the index) and in
    processor time of searching. An answer is the same where its values are, and how well it is
    supported. The words and weights were chosen on other groups and on the odd groups of our own
    sets (`memory_paraphrases`).
    """
    folder = run.workspace("pathquestion_memory")
    indexed(folder, [{**row, "document": row["s"]} for row in read_rows(run.file(GRAPH))])
    groups = groups_of(list(read_rows(run.file(QUESTIONS))))
    untuned, number = groups[:TUNED_FROM], run.limit or GROUPS
    filling = untuned[:: max(len(untuned) // number, 1)][:number]
    follow = [question for group in filling for question in group[1:3]]
    wrong = others(filling, groups, len(follow))
    title = (
        f"{len(filling)} questions fill memory, {len(follow)} like ones follow, {len(wrong)} ask "
        "for something else"
    )
    none, base = _measured(open_runtime(settings_for(folder, memory="off")), follow, (), None)
    with open_session(open_runtime(settings_for(folder, tau=1.0))) as session:
        session.warm()
        asyncio.run(ask_all([group[0] for group in filling], session))
        session.runtime.workspace.database.close()
    side, filled = folder / "ws" / "side.sqlite", folder / "filled.sqlite"
    shutil.copy(side, filled)
    rows = {"none": none}
    ways: dict[str, dict[str, object]] = {f"τ = {tau}": {"tau": tau} for tau in TAUS}
    for name, settings in ways.items():
        for suffix in ("", "-wal", "-shm"):
            side.with_name(side.name + suffix).unlink(missing_ok=True)
        shutil.copy(filled, side)
        rows[name], _ = _measured(
            open_runtime(settings_for(folder, **settings)), follow, wrong, base
        )
    run.table(title, rows)


def groups_of(rows: Sequence[Row]) -> list[list[GroupedQuestion]]:
    """The questions by path, in their order."""
    groups: dict[tuple[str, ...], list[GroupedQuestion]] = {}
    for row in rows:
        path = tuple(map(str, row["path"]))
        asked = GroupedQuestion(str(row["question"]), path[0], path[1::2], tuple(facts_of(path)))
        groups.setdefault(path, []).append(asked)
    return list(groups.values())


def others(
    filling: Sequence[Sequence[GroupedQuestion]],
    every: Sequence[Sequence[GroupedQuestion]],
    limit: int,
) -> list[GroupedQuestion]:
    """Questions of groups that did not fill, which share an entity or the relations with one that
    did, in turn.

    A group with the same entity and the same relations asks the same, with another of its answers
    in mind.
    """
    same = {(group[0].about, group[0].relations) for group in filling}
    entities, relations = {entity for entity, _ in same}, {path for _, path in same}
    left = [group for group in every if (group[0].about, group[0].relations) not in same]
    by_entity = [question for group in left if group[0].about in entities for question in group]
    by_relations = [
        question
        for group in left
        if group[0].about not in entities and group[0].relations in relations
        for question in group
    ]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(by_entity, by_relations))
    return [question for question in mixed if question is not None][:limit]


async def ask_all(questions: Sequence[GroupedQuestion], session: Session) -> Costs:
    """Every question through the steps of the ask path, one after another."""
    costs = Costs()
    with watched(costs):
        for question in questions:
            began = time.process_time()
            # The mode that has a memory: `auto` would walk these triples first.
            response = await respond(
                await resources_for(question.text, AskOptions(mode=SEARCH), session), SEARCH
            )
            costs.seconds.append(time.process_time() - began)
            costs.add(response, question.facts)
    return costs


def _measured(
    runtime: Runtime,
    follow: Sequence[GroupedQuestion],
    wrong: Sequence[GroupedQuestion],
    base: Costs | None,
) -> tuple[dict[str, Cell], Costs]:
    """The five costs of the questions that follow, and how often another question would be
    served.
    """
    with open_session(runtime) as session:
        session.warm()
        false = [asyncio.run(fires(question.text, session)) for question in wrong]
        costs = asyncio.run(ask_all(follow, session))
        passages = len(session.index.chunks)
    runtime.workspace.database.close()
    number, first = len(follow), base or costs
    return {
        "CPU ms": statistics.mean(costs.seconds) * 1000,
        "external": costs.external / number,
        "memory": costs.from_memory / number,
        "hit rate": costs.hits / number,
        "scored": costs.searches * passages / number,
        "search CPU ms": costs.searching / number * 1000,
        "searches saved": 1 - costs.searches / first.searches,
        "search time saved": 1 - costs.searching / first.searching,
        "used": costs.recalled / number,
        "false": share(false),
        "same": share([one == two for one, two in zip(costs.answers, first.answers, strict=True)]),
    }, costs


@measure()
def memory_paraphrases(run: Run) -> None:
    """Does the trigger know our own paraphrases, in Chinese and English, and no other question?

    A group has a question that fills memory (`fill`), two in other words (`paraphrases`), one that
    differs in a name, an attribute or a year and needs other evidence (`confusable`), and the two
    texts. The rules were written with the odd groups in view; the even ones are measured apart,
    though one person wrote both.
    """
    for language in ("zh", "en"):
        groups = list(read_rows(DATA / f"memory_paraphrases_{language}.jsonl"))[: run.limit]
        folder = run.workspace(f"paraphrases_{language}")
        names = ("text", "confusable_text")
        indexed(
            folder,
            [
                {"id": f"{group['group']}-{name}", "text": group[name]}
                for group in groups
                for name in names
            ],
        )
        rows, wrong = {}, list[str]()
        for tau in OWN_TAUS:
            with open_session(open_runtime(settings_for(folder, tau=tau))) as session:
                for group in groups if tau == OWN_TAUS[0] else ():
                    asyncio.run(answer_question(group["fill"], AskOptions(), session))
                for name, part in (("odd", groups[::2]), ("even", groups[1::2]), ("all", groups)):
                    hits = _served(
                        [text for group in part for text in group["paraphrases"]], session
                    )
                    false = _served([group["confusable"] for group in part], session)
                    rows[f"τ {tau} {name}"] = {
                        "groups": len(part),
                        "hit": share(list(hits.values())),
                        "false": share(list(false.values())),
                    }
                    if tau == 0.9 and name == "odd":
                        wrong += [text for text, used in hits.items() if not used]
                        wrong += [text for text, used in false.items() if used]
                remembered = len(session.runtime.workspace.database.memory.entries())
            session.runtime.workspace.database.close()
        run.table(f"{language}: {remembered} of {len(groups)} are remembered", rows)
        run.show(wrong)


def _served(questions: Sequence[str], session: Session) -> dict[str, bool]:
    return {question: asyncio.run(fires(question, session)) for question in questions}
