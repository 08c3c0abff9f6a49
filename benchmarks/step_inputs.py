"""Inputs for every step that asks a model, by the names of its fields, from indexes that no model
made.

They are the same on every machine and whatever a model answers. A step whose fields are fewer or in
another order gets its inputs all the same; a field that nobody knows is named by UnknownFieldError.
"""

import asyncio
import base64
import csv
import difflib
import io
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Literal, get_origin

import dspy
from PIL import Image

from benchmarks.runner import DATA, EXAMPLES, Run
from benchmarks.sets import SETS, index, read_rows, settings_in
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.answer import NumberedText, evidence_text
from prompts.engine.messages import first_tokens
from prompts.engine.step import Step
from prompts.extracted import Extracted, known
from prompts.filter import HYPOTHESES
from prompts.judge import CRITERIA, RUBRICS
from prompts.offline.extract import extract_offline
from prompts.plan_table import TableView, shown_table
from prompts.structures import StructureName
from prompts.synthesize import KINDS
from prompts.text.languages import language_of, names_of
from prompts.text.segment import sentences
from prompts.text.words import content_terms
from prompts.train import FORMS
from storage.evaluation_records import EvaluationQuestion

Tongue = Literal["en", "zh"]

# Of published corpora so many passages are indexed, and questions are asked whose passages are
# among them.
POOL = 200
INPUTS = 20  # of a step, unless --limit says otherwise; fewer are the first of these
PUBLISHED: Mapping[Tongue, str] = {"en": "hotpot_train100", "zh": "cmrc2018_zh"}
PASSAGES, PASSAGE_TOKENS = 5, 200
MOST_ENTITIES = 4  # among which an input's entity is chosen, those with most relations first
TABLES = ("bridges.csv", "ferry-traffic-2023.csv")
FOLLOW_UP = {"en": "And what else do the documents say about it?", "zh": "关于它，文中还说了什么？"}
TOOLS = (
    "search(query: A question or phrase) Find the passages that bear most on a query.",
    "entity(name: A name or alias) Tell what the graph holds on an entity.",
)
TYPES = (
    "length: number in m; of bridge",
    "opened: date; of bridge",
    "designed by: from bridge to person",
)
_FORMS: Sequence[StructureName] = ("table", "graph", "algorithm", "catalogue", "chunk")
_WORDS: Mapping[Tongue, Mapping[str, str]] = {
    "en": {
        "language": "English",
        "collection": "A collection of documents, among them: ",
        "user": "A journalist who writes about the region.",
        "task": "Find out how the people and places in these documents are connected.",
        "cell": "What is the {column} of {row}?",
        "in": " in ",
    },
    "zh": {
        "language": "Chinese",
        "collection": "一批文件，其中有：",
        "user": "一位报道该地区的记者。",
        "task": "弄清这些文件中的人物和地点之间的联系。",
        "cell": "{row}的{column}是什么？",
        "in": "，",
    },
}


class UnknownFieldError(Exception):
    """Nothing is known to put into a field of a step's signature; the message names both."""


@dataclass(frozen=True)
class GivenPassage:
    """A passage as it is shown: its document, title and the beginning of its text."""

    document: str
    title: str
    text: str


@dataclass(frozen=True)
class GivenReport:
    """A community report that quotes statements."""

    title: str
    summary: str
    statements: tuple[str, ...]


@dataclass(frozen=True)
class GivenTable:
    """A table, the row and the column that are asked for."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row: int
    column: int


@dataclass(frozen=True)
class Material:
    """All that the inputs of one call are made from: a question, and what an index holds around it.

    `label` is the known right choice, of those questions that have one; `history` are earlier
    turns.
    """

    language: Tongue
    question: EvaluationQuestion
    passages: tuple[GivenPassage, ...]
    titles: tuple[str, ...]
    foreign: GivenPassage
    entity: str = ""
    statements: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    reports: tuple[GivenReport, ...] = ()
    number: int = 0
    label: str = ""
    history: tuple[str, ...] = ()
    table: GivenTable | None = None

    @property
    def asked(self) -> str:
        return self.question.question

    @property
    def gold_answer(self) -> str:
        return next(iter(self.question.answers or self.question.values), self.passages[0].title)

    @property
    def lines(self) -> list[str]:
        """The sentences of the first passages."""
        return [
            line
            for passage in self.passages[:2]
            for start, end in sentences(passage.text)
            if (line := " ".join(passage.text[start:end].split()))
        ]

    def word(self, name: str) -> str:
        """A text of ours in the material's language."""
        return _WORDS[self.language][name]

    @property
    def turn(self) -> int:
        """Which of the materials in this language it is, from 0."""
        return self.number // 2


# --- the materials --------------------------------------------------------------------------------


def materials(run: Run, many: int) -> list[Material]:
    """So many, English and Chinese in turn, the same first ones however many; all of the samples
    without --data.
    """
    sources: dict[Tongue, list[list[Material]]] = {"en": [], "zh": []}
    for language, found in _collections(run, many):
        sources[language].append(found)
    in_turn = {language: _in_turn(lists) for language, lists in sources.items()}
    chosen = (next(in_turn[language]) for language in cycle(in_turn))
    return [replace(one, number=number) for number, one in enumerate(islice(chosen, many))]


def _in_turn(lists: Sequence[Sequence[Material]]) -> Iterator[Material]:
    """One of each list in turn; where all are used up they begin again."""
    longest = max(map(len, lists))
    while True:
        for place in range(longest):
            yield from (one[place] for one in lists if place < len(one))


def _collections(run: Run, many: int) -> Iterator[tuple[Tongue, list[Material]]]:
    samples = run.workspace("inputs_samples")
    asked = [*_sample_questions("questions"), *_sample_questions("questions_extra")]
    with open_session(
        index([EXAMPLES / "corpus"], settings_in(samples, embedding="none"))[0]
    ) as session:
        yield "en", asyncio.run(_materials("en", _spoken(asked, "en")[:many], session))
        yield "zh", asyncio.run(_materials("zh", _spoken(asked, "zh")[:many], session))
    if run.options.data is None:
        return
    for language, name in PUBLISHED.items():
        folder = run.workspace(f"inputs_{name}")
        (corpus,) = replace(SETS[name], first=POOL).write(run.options.data, folder)
        inside = {str(row["id"]) for row in read_rows(corpus)}
        every = SETS[name].read_questions(run.options.data, None)
        questions = [one for one in every if set(one.gold_documents) <= inside]
        step = max(len(questions) // INPUTS, 1)
        with open_session(index([corpus], settings_in(folder, embedding="none"))[0]) as session:
            yield language, asyncio.run(_materials(language, questions[::step][:many], session))


def _spoken(questions: Sequence[EvaluationQuestion], language: Tongue) -> list[EvaluationQuestion]:
    return [one for one in questions if language_of(one.question) == language]


def _sample_questions(name: str) -> list[EvaluationQuestion]:
    """The questions of the sample corpus that it answers."""
    return [
        EvaluationQuestion(
            id=row["id"],
            question=row["question"],
            answers=tuple(row["expected"]),
            gold_documents=tuple(row["documents"]),
        )
        for row in read_rows(EXAMPLES / f"{name}.jsonl")
        if row["fallback"] == "none"
    ]


async def _materials(
    language: Tongue, questions: Sequence[EvaluationQuestion], session: Session
) -> list[Material]:
    collection = Collection.of(session)
    found = [await _passages(question, session) for question in questions]
    made = []
    for place, (question, passages) in enumerate(zip(questions, found, strict=True)):
        foreign = _another([*reversed(found[:place]), *found[place + 1 :]], passages)
        titles = tuple(dict.fromkeys(passage.title for passage in passages if passage.title))
        here = Material(language, question, passages, titles or collection.titles[:5], foreign)
        made.append(collection.around(here, place))
    return made


async def _passages(question: EvaluationQuestion, session: Session) -> tuple[GivenPassage, ...]:
    """What the words of the question find, with a passage of each gold document."""
    retrieved = (
        await retrieve_passages(question.question, AskOptions(k=PASSAGES), session)
    ).passages
    found = [GivenPassage(one.document, one.title, one.text) for one in retrieved]
    here = {passage.document for passage in found}
    missing = [name for name in question.gold_documents if name not in here]
    gold = [chunks[0] for chunks in session.chunks_of(missing).values()]
    found = found[: PASSAGES - len(gold[:2])]
    found += [GivenPassage(chunk.document, chunk.title, chunk.text) for chunk in gold[:2]]
    return tuple(replace(one, text=first_tokens(one.text, PASSAGE_TOKENS)) for one in found)


def _another(others: Sequence[Sequence[GivenPassage]], own: Sequence[GivenPassage]) -> GivenPassage:
    """A passage that was found for other questions alone."""
    here = {passage.document for passage in own}
    every = (one for passages in others for one in passages if one.document not in here)
    return next(every, own[-1])


@dataclass(frozen=True)
class NamedRelation:
    """A relation with the names of its ends."""

    source: str
    predicate: str
    target: str
    statement: str

    def __str__(self) -> str:
        return f"{self.source} -[{self.predicate}]-> {self.target}"


@dataclass(frozen=True)
class Collection:
    """What an index holds, by names."""

    titles: tuple[str, ...]
    texts: tuple[str, ...]
    degrees: Mapping[str, int]
    relations: tuple[NamedRelation, ...]
    reports: Mapping[str, Sequence[GivenReport]] = field(repr=False)

    @classmethod
    def of(cls, session: Session) -> "Collection":
        """The graph and the reports of an open index."""
        graph = session.generation.graph
        entities = graph.entities()
        names = {entity.id: entity.name for entity in entities}
        relations = [
            NamedRelation(names[one.source], one.predicate, names[one.target], one.description)
            for one in graph.relations()
        ]
        reports = defaultdict(list)
        for report in session.generation.communities.reports():
            statements = tuple(finding.explanation for finding in report.findings)
            given = GivenReport(report.title, report.summary, statements)
            for name in dict.fromkeys(finding.document for finding in report.findings):
                reports[name].append(given)
        return cls(
            titles=tuple(session.titles),
            texts=tuple(chunk.text for chunk in session.index.chunks),
            degrees={entity.name: entity.degree for entity in entities},
            relations=tuple(sorted(relations, key=str)),
            reports={
                name: sorted(given, key=lambda one: one.title) for name, given in reports.items()
            },
        )

    def around(self, here: Material, place: int) -> Material:
        """The material with what the graph holds around its passages; the entity is another one at
        each place.
        """
        text = "\n".join(passage.text for passage in here.passages)
        names = sorted(
            (name for name in self.degrees if len(name) > 1 and name in text),
            key=lambda name: (-self.degrees[name], name),
        )
        asked = [name for name in names if name in here.asked]
        tied = [one for one in self.relations if {one.source, one.target} & set(names[:5])]
        at_asked = [one for one in self.relations if {one.source, one.target} & set(asked)]
        ways = [
            (
                f"{one.source} -[{one.predicate}]->"
                if one.source in asked
                else f"{one.target} <-[{one.predicate}]-"
            )
            for one in at_asked
        ]
        predicates = (one.predicate for one in [*at_asked, *tied, *self.relations])
        reports = [
            one for passage in here.passages for one in self.reports.get(passage.document, ())
        ]
        told = (
            [name for name in names if name in here.passages[0].text]
            or names
            or [here.passages[0].title]
        )
        entity = told[place % min(len(told), MOST_ENTITIES)]
        return replace(
            here,
            entity=entity,
            statements=tuple(self.spoken(entity, here.language)[:8]) or tuple(here.lines[:4]),
            relations=tuple(map(self.stated, tied[:3])),
            pairs=tuple(self.paired(name) for name in names[:3]),
            names=tuple(asked),
            ways=tuple(dict.fromkeys(ways))[:12],
            predicates=tuple(dict.fromkeys(predicates))[:30],
            reports=tuple(dict.fromkeys(reports))[:3],
        )

    def saying(self, name: str) -> list[str]:
        """The sentences that hold a name, in the order of the texts."""
        return [
            " ".join(text[start:end].split())
            for text in self.texts
            if name in text
            for start, end in sentences(text)
            if name in text[start:end]
        ]

    def spoken(self, name: str, language: Tongue) -> list[str]:
        """The sentences that hold a name and are in a language; all where none is."""
        every = self.saying(name)
        return [line for line in every if language_of(line, language) == language] or every

    def stated(self, relation: NamedRelation) -> str:
        """A relation and what is stated of it, a line each."""
        said = [
            one.statement for one in self.relations if str(one) == str(relation) and one.statement
        ]
        said = (
            said or [line for line in self.saying(relation.source) if relation.target in line][:2]
        )
        return "\n".join([str(relation), *(f"- {line}" for line in said)])

    def paired(self, name: str) -> str:
        """A name and the one of another entity that is spelt most like it, with what is said of
        both.
        """
        others = difflib.get_close_matches(
            name, [one for one in self.degrees if one != name], 1, 0.0
        )
        return " | ".join(
            f"{one} (thing): {first_tokens(next(iter(self.saying(one)), ''), 40)}"
            for one in (name, *others)
        )


# --- questions whose right choice is known --------------------------------------------------------


# What the list of questions calls the scopes that a model chooses from.
_SCOPES = {"search": "part"}


@cache
def _labelled(name: str, label: str) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """The rows of a list of ours by language, one of each label in turn."""
    rows: dict[str, dict[str, list[Mapping[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for row in read_rows(DATA / f"{name}.jsonl"):
        rows[row["language"]][row[label]].append(row)
    return {
        language: [row for turn in zip(*by_label.values(), strict=False) for row in turn]
        for language, by_label in rows.items()
    }


def fitted(step: str, material: Material) -> Material:
    """The material for a step: with a question of a kind that tells how well the step does."""
    if step in {"route", "choose"}:
        name, label = (
            ("router_questions", "type") if step == "route" else ("auto_questions", "family")
        )
        rows = _labelled(name, label)[material.language]
        row = rows[material.turn % len(rows)]
        asked = EvaluationQuestion(id=str(row["id"]), question=str(row["question"]))
        given = row.get("documents")
        titles = tuple(map(str, given)) if isinstance(given, list) else (str(row["collection"]),)
        return replace(
            material,
            question=asked,
            titles=titles,
            label=_SCOPES.get(str(row[label]), str(row[label])),
        )
    if step == "rewrite" and material.turn % 2:
        asked = material.question.model_copy(update={"question": FOLLOW_UP[material.language]})
        history = (material.asked, material.gold_answer)
        name = next((span.text for span in names_of(material.asked)), material.gold_answer)
        return replace(material, question=asked, history=history, label=name)
    if step == "plan_table":
        table = _table(material)
        label = table.columns[table.column]
        values = {"column": label.replace("_", " "), "row": _row_name(table, material)}
        question = material.word("cell").format(**values)
        asked = EvaluationQuestion(
            id="table", question=question, answers=(table.rows[table.row][table.column],)
        )
        return replace(material, question=asked, table=table, label=label)
    return material


def _table(material: Material) -> GivenTable:
    name = TABLES[material.turn % len(TABLES)]
    with Path(EXAMPLES, "corpus", "data", name).open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    column = 2 + material.turn // len(TABLES) % (len(head) - 2)
    table = tuple(map(tuple, rows))
    return GivenTable(
        name.partition(".")[0], tuple(head), table, material.number % len(rows), column
    )


def _row_name(table: GivenTable, material: Material) -> str:
    """What tells the row from others: its first cell, and the second where that is a part of the
    key.
    """
    first, second, *_ = table.rows[table.row]
    alone = sum(row[0] == first for row in table.rows) == 1
    return first if alone else f"{first}{material.word('in')}{second}"


# --- the fields -----------------------------------------------------------------------------------

Maker = Callable[[Material], object]


def _evidence(material: Material) -> str:
    pieces = [
        NumberedText(number, passage.title, passage.text)
        for number, passage in enumerate(material.passages, 1)
    ]
    return evidence_text(pieces)


def _titled(material: Material) -> list[str]:
    return [f"{passage.title}: {passage.text}" for passage in material.passages]


def _numbered(lines: Sequence[str], first: int = 1) -> list[str]:
    return [f"[{number}] {line}" for number, line in enumerate(lines, first)]


def _with_sentences(material: Material) -> list[str]:
    """Two passages with their sentences by number."""
    shown, number = [], 1
    for passage in material.passages[:2]:
        lines = [passage.text[start:end].strip() for start, end in sentences(passage.text)]
        shown.append("\n".join([passage.title, *_numbered(lines, number)]))
        number += len(lines)
    return shown


def _known(material: Material) -> list[str]:
    """What rules found in the passage, without the last name."""
    passage = material.passages[0]
    found = extract_offline(passage.title, passage.text)
    return known(Extracted(entities=found.entities[:-1]))


def _reports(material: Material) -> list[str]:
    """Reports with numbered statements; where the index has none of these passages, the
    passages.
    """
    given = material.reports or tuple(
        GivenReport(one.title, "", (one.text,)) for one in material.passages[:3]
    )
    shown, number = [], 1
    for report in given:
        lines = _numbered([first_tokens(line, 80) for line in report.statements], number)
        shown.append("\n".join([f"{report.title}: {first_tokens(report.summary, 80)}", *lines]))
        number += len(lines)
    return shown


def _openings(material: Material) -> list[str]:
    given = [(one.title, one.summary) for one in material.reports]
    given += [(one.title, one.text) for one in material.passages]
    return _numbered([f"{title}: {first_tokens(text, 60)}" for title, text in given[:4]], 0)


def _points(material: Material) -> str:
    """Points as readers of reports write them."""
    lines = material.lines[:4]
    return "\n".join(f"({90 - 20 * place}) {line} [1]" for place, line in enumerate(lines))


def _right_first(material: Material) -> bool:
    return material.turn % 2 == 0


def _right(material: Material) -> str:
    return f"{material.gold_answer} ({material.passages[0].title})"


def _wrong(material: Material) -> str:
    text = material.foreign.text
    lines = [text[start:end].strip() for start, end in sentences(text)][:4]
    return max(lines, key=len, default=material.foreign.title)


def _description(material: Material) -> str:
    joint = "、" if material.language == "zh" else "; "
    return f"{material.word('collection')}{joint.join(material.titles)}"


def _shown_tables(material: Material) -> str:
    table = material.table or _table(material)
    view = TableView(table.name, table.columns, table.rows)
    return f"[1] {shown_table(view, set(content_terms(material.asked)), 2_000, 1)}"


def _part_kind(material: Material) -> str:
    name = list(KINDS)[material.turn % len(KINDS)]
    return f"{name}: the question {KINDS[name]}."


def _solutions(material: Material) -> list[str]:
    return [
        f"{letter}: Put the documents into {FORMS[form]}, then read the answer off."
        for letter, form in zip("ABCDE", _FORMS, strict=True)
    ]


def _red_square() -> dspy.Image:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(file, "JPEG")
    return dspy.Image(f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}")


FIELDS: Mapping[str, Maker] = {
    "question": lambda one: one.asked,
    "response": lambda _: "",
    "notes": lambda _: "",
    "history": lambda one: list(one.history),
    "evidence": _evidence,
    "passages": _titled,
    "passage": lambda one: one.passages[0].text,
    "title": lambda one: one.passages[0].title,
    "titles": lambda one: list(one.titles),
    "documents": lambda one: list(one.titles),
    "core_content": lambda one: list(one.titles),
    "knowledge": lambda one: [
        f"{passage.title}: {first_tokens(passage.text, 40)}" for passage in one.passages
    ],
    "samples": _titled,
    "sample": _titled,
    "known": lambda _: [],
    "hypothesis": lambda _: HYPOTHESES["either"],
    "criterion": lambda _: f"directness: {CRITERIA['directness']}",
    "rubric": lambda _: RUBRICS["loong_score"],
    "first": lambda one: _right(one) if _right_first(one) else _wrong(one),
    "second": lambda one: _wrong(one) if _right_first(one) else _right(one),
    "right": lambda one: one.gold_answer,
    "answer": lambda one: _right(one) if _right_first(one) else _wrong(one),
    "tables": _shown_tables,
    "reports": _reports,
    "focus": lambda one: one.entity,
    "entities": lambda one: [one.entity, *(one.names or one.titles)],
    "name": lambda one: one.entity,
    "statements": lambda one: list(one.statements),
    "relations": lambda one: _numbered(one.relations, 0),
    "pairs": lambda one: _numbered(one.pairs, 0),
    "names": lambda one: list(one.names),
    "unknown": lambda one: [
        span.text for span in names_of(one.asked) if span.text not in one.names
    ],
    "around": lambda one: list(one.ways),
    "sentences": lambda one: _numbered(one.lines),
    "description": _description,
    "user": lambda one: one.word("user"),
    "task": lambda one: one.word("task"),
    "tasks": lambda _: 2,
    "users": lambda _: 2,
    "number": lambda _: 3,
    "kind": _part_kind,
    "language": lambda one: one.word("language"),
    "examples": lambda one: [f"{one.asked} ({'; '.join(one.titles)})"],
    "form": lambda one: FORMS[_FORMS[one.turn % len(_FORMS)]],
    "solutions": _solutions,
    "tools": lambda _: list(TOOLS),
    "types": lambda _: list(TYPES),
    "calls": lambda _: [],
    "calls_left": lambda _: "4",
    "beside": lambda one: one.passages[0].text,
    "picture": lambda _: _red_square(),
}
# What a field holds in one step alone.
OWN_FIELDS: Mapping[tuple[str, str], Maker] = {
    ("filter", "passages"): _evidence,
    ("ask_part", "passages"): _with_sentences,
    ("relevance", "passages"): _with_sentences,
    ("glean", "known"): _known,
    ("reduce", "points"): _points,
    ("report", "statements"): lambda one: _numbered(one.statements),
    ("plan", "relations"): lambda one: list(one.predicates),
    ("describe", "samples"): _titled,
}


def inputs_of(step: Step, material: Material) -> dict[str, object]:
    """The inputs of a step by the names of its fields; UnknownFieldError for a field that is not
    known here.
    """
    inputs: dict[str, object] = {}
    for name, info in step.module.signature.input_fields.items():
        if name in inputs:
            continue
        maker = OWN_FIELDS.get((step.step, name)) or FIELDS.get(name)
        if maker is None:
            raise UnknownFieldError(
                f"The step {step.step!r} has a field {name!r} that no inputs are made for: add it "
                "to FIELDS in benchmarks/step_inputs.py."
            )
        inputs[name] = _of_type(maker(material), info.annotation)
    return inputs


def _of_type(value: object, annotation: object) -> object:
    """A value as the field has it: lines or a list of them."""
    wants_list = get_origin(annotation) is list
    if isinstance(value, list) and annotation is str:
        lines = list(map(str, value))
        return ("\n\n" if any("\n" in line for line in lines) else "\n").join(lines)
    return [value] if wants_list and not isinstance(value, list) else value
