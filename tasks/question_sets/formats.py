"""The formats in which question sets are published, each read into questions and the rows of a corpus.

A corpus row is {id, title, text}, or a triple {s, p, o}. Each reader states its format.
"""

import ast
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from storage.evaluation_records import EvaluationQuestion
from storage.graph_records import TextSpan
from storage.records import Record, content_id
from tasks.evaluate.measures import LOONG_LEVELS

Row = dict[str, Any]
Parts = Mapping[str, Sequence[Row]]
Result = tuple[list[EvaluationQuestion], list[Row] | None]

# PolyG's names of its types of questions, as plans have them.
GRAPH_TYPES = {
    "single_entity_abstract": "s**",
    "single_entity_concrete": "sp*",
    "multi_entity_abstract": "s*o",
    "multi_entity_concrete": "spo",
    "nested_question": "nested",
}


class QuestionSet(Record):
    """Questions, and the rows of their corpus as `trellis index` reads them; None where it does not come with them."""

    name: str
    questions: tuple[EvaluationQuestion, ...]
    corpus: tuple[Row, ...] | None = None


class PublishedSet(Record):
    """A published set: where it is from, its files in words, the patterns of the files of each part ("questions",
    "corpus"), and the same parts on the hub as (repository, configuration, split)."""

    name: str
    source: str
    published: str
    files: dict[str, tuple[str, ...]]
    hub: dict[str, tuple[str, str, str]] = Field(default_factory=dict)

    def read(self, parts: Parts) -> QuestionSet:
        """The set from the rows of its parts; KeyError, TypeError or ValueError for rows of another format."""
        questions, corpus = READERS[self.name](parts)
        return QuestionSet(name=self.name, questions=tuple(questions), corpus=tuple(corpus) if corpus else None)


class _Pool:
    """Passages of many questions, each once. Its id is its title, numbered where several have one title."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, str], str] = {}
        self.titles: dict[str, int] = {}

    def add(self, title: str, text: str) -> str:
        if (title, text) not in self.ids:
            number = self.titles[title] = self.titles.get(title, 0) + 1
            self.ids[title, text] = title if number == 1 else f"{title} #{number}"
        return self.ids[title, text]

    @property
    def rows(self) -> list[Row]:
        return [{"id": name, "title": title, "text": text} for (title, text), name in self.ids.items()]


# --- several hops ----------------------------------------------------------------------------------------------------


def _hotpot(parts: Parts) -> Result:
    """A list of {_id, question, answer, type, supporting_facts: [[title, sentence]], context: [[title, [sentence]]]};
    on the hub both lists are objects of lists."""
    pool, questions = _Pool(), []
    for row in parts["questions"]:
        facts = set(map(tuple, _pairs(row["supporting_facts"], "title", "sent_id")))
        gold: dict[str, list[TextSpan]] = {}
        for title, sentences in _pairs(row["context"], "title", "sentences"):
            text, spans = _joined(sentences)
            name = pool.add(title, text)
            for place, (start, end) in enumerate(spans):
                if (title, place) in facts:
                    gold.setdefault(name, []).append(TextSpan(document=name, start=start, end=end))
        questions.append(
            EvaluationQuestion(
                id=str(row.get("_id") or row["id"]), question=row["question"], kind=row.get("type", ""),
                answers=(row["answer"],), gold_documents=tuple(gold),
                gold_spans=tuple(span for spans in gold.values() for span in spans),
            )
        )  # fmt: skip
    return questions, pool.rows


def _pairs(given: Any, first: str, second: str) -> list[tuple[str, Any]]:
    given = json.loads(given) if isinstance(given, str) else given
    return (
        list(zip(given[first], given[second], strict=True)) if isinstance(given, Mapping) else list(map(tuple, given))
    )


def _joined(sentences: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    text, spans = "", []
    for sentence in sentences:
        text += "" if not text or text[-1].isspace() or sentence[:1].isspace() else " "
        start = len(text) + len(sentence) - len(sentence.lstrip())
        text += sentence
        spans.append((start, len(text)))
    return text, spans


def _musique(parts: Parts) -> Result:
    """Rows {id, question, answer, answer_aliases, answerable, paragraphs: [{title, paragraph_text, is_supporting}]}."""
    pool, questions = _Pool(), []
    for row in parts["questions"]:
        named = [(pool.add(part["title"], part["paragraph_text"]), part["is_supporting"]) for part in row["paragraphs"]]
        questions.append(
            EvaluationQuestion(
                id=row["id"], question=row["question"], kind=f"{row['id'].partition('hop')[0]} hops",
                answers=_texts(row.get("answer"), row.get("answer_aliases")),
                gold_documents=tuple(dict.fromkeys(name for name, supports in named if supports)),
                answerable=row.get("answerable", True),
            )
        )  # fmt: skip
    return questions, pool.rows


def _multihop_rag(parts: Parts) -> Result:
    """A list of {query, answer, question_type, evidence_list: [{url, title, fact}]}, and one of {url, title, body}."""
    bodies = {_url(row): row["body"] for row in parts["corpus"]}
    questions = []
    for place, row in enumerate(parts["questions"]):
        evidence = [(_url(item), item.get("fact", "")) for item in _listed(row["evidence_list"])]
        unknown = row["question_type"] == "null_query"
        questions.append(
            EvaluationQuestion(
                id=str(place), question=row["query"], kind=row["question_type"], answerable=not unknown,
                answers=() if unknown else (row["answer"],),
                gold_documents=tuple(dict.fromkeys(url for url, _ in evidence)),
                gold_spans=tuple(_found(url, bodies.get(url, ""), fact) for url, fact in evidence
                                 if fact and fact in bodies.get(url, "")),
            )
        )  # fmt: skip
    return questions, [{"id": _url(row), "title": row["title"], "text": row["body"]} for row in parts["corpus"]]


def _url(row: Row) -> str:
    return str(row.get("url") or row["title"])


def _found(document: str, text: str, quote: str) -> TextSpan:
    start = text.index(quote)
    return TextSpan(document=document, start=start, end=start + len(quote))


# --- open questions --------------------------------------------------------------------------------------------------


def _nq(parts: Parts) -> Result:
    """NQ-open's rows {question, answer: [text]}; DPR's {question, answers, positive_ctxs: [{title, text}]} too."""
    pool, questions = _Pool(), []
    for place, row in enumerate(parts["questions"]):
        gold = [pool.add(context["title"], context["text"]) for context in row.get("positive_ctxs", ())]
        questions.append(
            EvaluationQuestion(
                id=str(row.get("id", place)), question=row["question"], gold_documents=tuple(dict.fromkeys(gold)),
                answers=_texts(row.get("answer"), row.get("answers")),
            )
        )  # fmt: skip
    return questions, pool.rows


def _popqa(parts: Parts) -> Result:
    """TSV with question, prop (the relation asked for) and possible_answers, a list in JSON."""
    return [
        EvaluationQuestion(
            id=str(row.get("id", place)), question=row["question"], kind=row.get("prop", ""),
            answers=_texts(_listed(row["possible_answers"])),
        )
        for place, row in enumerate(parts["questions"])
    ], None  # fmt: skip


def _ambignq(parts: Parts) -> Result:
    """A list of {id, question, annotations: [{type: singleAnswer, answer: [text]} or {type: multipleQAs,
    qaPairs: [{question, answer: [text]}]}]}; on the hub an object of lists. Any reading's answer is right (`answers`),
    a full answer has one of each (`values`)."""
    questions = []
    for row in parts["questions"]:
        readings: list[Sequence[str]] = []
        for note in _objects(row["annotations"]):
            pairs = [pair["answer"] for pair in _objects(note.get("qaPairs") or [])]
            readings += pairs if note["type"] == "multipleQAs" else [note["answer"]]
        kind = "ambiguous" if len(readings) > 1 else "single"
        questions.append(_of_readings(str(row["id"]), row["question"], kind, readings))
    return questions, None


def _cambignq(parts: Parts) -> Result:
    """A list of {id, question, dqs: [question], clarification_answers: [[text]], clarification_question}."""
    return [
        _of_readings(str(row["id"]), row["question"], "ambiguous", row["clarification_answers"])
        for row in parts["questions"]
    ], None


def _of_readings(name: str, question: str, kind: str, readings: Iterable[Any]) -> EvaluationQuestion:
    """Each reading's answers: wordings, or a list of lists of wordings."""
    wordings = [_texts(*(reading if isinstance(reading, list) else [reading])) for reading in readings]
    wordings = [words for words in wordings if words]
    return EvaluationQuestion(
        id=name, question=question, kind=kind, answers=tuple(dict.fromkeys(w for words in wordings for w in words)),
        values=tuple(dict.fromkeys(words[0] for words in wordings)) if len(wordings) > 1 else (),
    )  # fmt: skip


def _objects(given: Any) -> list[Mapping[str, Any]]:
    """A list of objects, or what the hub makes of one: an object of lists."""
    if not isinstance(given, Mapping):
        return list(given)
    return [dict(zip(given, values, strict=True)) for values in zip(*given.values(), strict=True)]


def _cmrc(parts: Parts) -> Result:
    """CMRC 2018: a list of {context_id, context_text, title, qas: [{query_id, query_text, answers: [text]}]}; SQuAD's
    form of it {data: [{title, paragraphs: [{id, context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]};
    on the hub a row {id, context, question, answers: {text, answer_start}} for each question."""
    corpus, questions = dict[str, Row](), []
    for row in parts["questions"]:
        for paragraph in row.get("paragraphs", [row]):
            text = paragraph.get("context_text") or paragraph["context"]
            given = paragraph.get("context_id") or (paragraph.get("id") if "qas" in paragraph else None)
            name = str(given or content_id("ctx", text))
            corpus[name] = {"id": name, "title": row.get("title", name), "text": text}
            for asked in paragraph.get("qas", [paragraph]):
                answers = asked["answers"]
                answers = answers["text"] if isinstance(answers, Mapping) else answers
                wordings = _texts(*(one["text"] if isinstance(one, Mapping) else one for one in answers))
                questions.append(
                    EvaluationQuestion(
                        id=str(asked.get("query_id") or asked["id"]),
                        question=asked.get("query_text") or asked["question"], answers=wordings,
                        gold_documents=(name,),
                        gold_spans=tuple(_found(name, text, words) for words in wordings if words in text),
                    )
                )  # fmt: skip
    return questions, list(corpus.values())


# --- long documents --------------------------------------------------------------------------------------------------


def _loong(parts: Parts) -> Result:
    """data/loong.jsonl: {id, type, level, set, language, question, instruction, answer, doc: [name]}; data/doc/ with
    financial/*.txt, paper/*.md and legal/legal.json {name: {content, result}}. `doc` names a financial report by a part
    of its file's name (of 2024, but at level 4), others by their whole name."""
    corpus = [
        {"id": row["id"], "title": row.get("title") or row["id"].rpartition(".")[0] or row["id"],
         "text": row["text"] if "text" in row else row["content"] + row["result"]}
        for row in parts["corpus"]
    ]  # fmt: skip
    files = [str(row["id"]) for row in corpus]
    questions = []
    for row in parts["questions"]:
        level = int(row["level"])

        def found(name: str, of: str = row["type"], level: int = level) -> str:
            wanted = name if level == 4 else f"2024-{name}"
            return next((file for file in files if wanted in file), name) if of == "financial" else name

        documents = tuple(row.get("doc_ids") or map(found, row["doc"]))
        asked = row["question"] if row["type"] == "financial" else f"{row['instruction']}\n{row['question']}".strip()
        gold = row["answer"] if isinstance(row["answer"], str) else json.dumps(row["answer"], ensure_ascii=False)
        questions.append(
            EvaluationQuestion(
                id=str(row["id"]), question=asked, kind=LOONG_LEVELS[level - 1], answers=(gold,),
                gold_documents=documents, documents=documents, names=tuple(row["doc"]), group=f"set {row['set']}",
            )
        )  # fmt: skip
    return questions, corpus


def _ultradomain(parts: Parts) -> Result:
    """A file for each domain, rows {_id, input, answers: [text], context, context_id, label, meta: {title}}."""
    corpus, questions = dict[str, Row](), []
    for place, row in enumerate(parts["questions"]):
        name, meta = str(row.get("context_id") or content_id("ctx", row["context"])), row.get("meta") or {}
        corpus[name] = {"id": name, "title": meta.get("title") or row.get("label") or name, "text": row["context"]}
        questions.append(
            EvaluationQuestion(
                id=str(row.get("_id") or place), question=row["input"], answers=_texts(row["answers"]),
                gold_documents=(name,), group=str(row.get("label") or row["_file"].partition(".")[0]),
            )
        )  # fmt: skip
    return questions, list(corpus.values())


def _graphrag_bench(parts: Parts) -> Result:
    """Lists of {id, source, question, answer, question_type, evidence: [text]}, and of {corpus_name, context}."""
    texts = {row["corpus_name"]: row["context"] for row in parts.get("corpus", ())}
    return [
        EvaluationQuestion(
            id=str(row["id"]), question=row["question"], kind=row["question_type"], answers=_texts(row["answer"]),
            gold_documents=(row["source"],), group=row["source"],
            gold_spans=tuple(_found(row["source"], texts[row["source"]], quote)
                             for quote in _listed(row.get("evidence") or [])
                             if quote and quote in texts.get(row["source"], "")),
        )
        for row in parts["questions"]
    ], [{"id": name, "title": name, "text": text} for name, text in texts.items()]  # fmt: skip


def _podcasts(parts: Parts) -> Result:
    """Questions about the whole, as CSV or rows with `question` or `question_text`; a text for each episode, or rows
    {doc, part, text} of its parts, of which each is a document with the episode's title."""
    questions = [
        EvaluationQuestion(
            id=str(row.get("id") or row.get("question_id") or place), kind="global",
            question=row.get("question") or row["question_text"],
        )
        for place, row in enumerate(parts["questions"])
    ]  # fmt: skip
    return questions, list(flat_corpus(parts["corpus"])) or None


# --- graphs ----------------------------------------------------------------------------------------------------------


def _pathquestion(parts: Parts) -> Result:
    """Lines question TAB answer(answer/answer/…) TAB subject#relation#entity#…; a graph of lines subject TAB relation
    TAB object (some with two TABs), whose file shares the "2H" or "3H" of the questions' file."""
    hops = {hop for row in parts["questions"] for hop in ("2H", "3H") if hop in row["_file"]}
    lines = [line.split("\t") for row in parts["questions"] for line in row["text"].splitlines() if "\t" in line]
    questions = []
    for place, (question, answer, path, *_) in enumerate(lines):
        every = answer.rpartition("(")[2].rstrip(")").split("/") if answer.endswith(")") else [answer]
        questions.append(
            EvaluationQuestion(
                id=str(place), question=question.strip(), kind=f"{path.partition('#<end>')[0].count('#') // 2} hops",
                answers=tuple(every), values=tuple(every), names=(path.partition("#")[0],),
            )
        )  # fmt: skip
    graph = [line.split() for row in parts["corpus"] if not hops or any(hop in row["_file"] for hop in hops)
             for line in row["text"].splitlines()]  # fmt: skip
    return questions, [dict(zip("spo", fact, strict=True)) for fact in graph if len(fact) == 3]


def _polyg(parts: Parts) -> Result:
    """GRAPH/TYPE_rephrased.jsonl: {qid, question, entity: {name: id}, type, hops, answer: [name] or "N/A"}; the graphs
    as GRBench has them, GRAPH/graph.json: {KIND_nodes: {id: {features: {name or title}, neighbors: {relation: [id]}}}}.
    """
    questions = []
    for place, row in enumerate(parts["questions"]):
        graph = row.get("graph") or row["_file"].rpartition("/")[0].rpartition("/")[2]
        values = tuple(dict.fromkeys(map(str, row["answer"]))) if isinstance(row.get("answer"), list) else ()
        questions.append(
            EvaluationQuestion(
                id=f"{graph}/{row['type']}/{row.get('qid', row.get('id', place))}", question=row["question"],
                kind=GRAPH_TYPES[row["type"]], values=values, names=tuple(row.get("entity") or row["entities"]),
                group=graph,
            )
        )  # fmt: skip
    return questions, _grbench(parts.get("corpus", ()))


def _grbench(rows: Iterable[Row]) -> list[Row]:
    nodes = {key: node for row in rows for key, node in row.items() if isinstance(node, Mapping) and "features" in node}
    names = {
        key: str(node["features"].get("name") or node["features"].get("title") or key) for key, node in nodes.items()
    }
    return [
        {"s": names[key], "p": relation, "o": names[other]}
        for key, node in nodes.items()
        for relation, others in node.get("neighbors", {}).items()
        for other in others
        if other in names
    ]


# --- rows of any set -------------------------------------------------------------------------------------------------


def flat_questions(rows: Iterable[Row]) -> tuple[EvaluationQuestion, ...]:
    """Rows with the fields of EvaluationQuestion, or with those that published rows have in their place: `answer` and
    `aliases`; `gold_ids`, `gold_pos` or `context_id` for the documents; `type`, `question_type` or `hops` for the kind.
    The answers of a row with a `path` through a graph are its values."""
    return tuple(_flat_question(row, place) for place, row in enumerate(rows))


def _flat_question(row: Row, place: int) -> EvaluationQuestion:
    known = {name: row[name] for name in EvaluationQuestion.model_fields.keys() & row.keys()}
    gold = next((row[name] for name in ("gold_documents", "gold_ids", "gold_pos", "context_id") if name in row), ())
    hops = f"{row['hops']} hops" if "hops" in row else ""
    answer = row.get("answer")
    figure = str(answer) if isinstance(answer, int | float) else None
    answers = _texts(figure, answer, row.get("answers"), row.get("aliases"))
    return EvaluationQuestion.model_validate(
        {
            **known,
            "id": str(row.get("id", row.get("i", place))),
            "question": row["question"],
            "kind": str(row.get("kind") or row.get("type") or row.get("question_type") or hops),
            "answers": answers,
            "values": row.get("values", answers if "path" in row else ()),
            "gold_documents": tuple(map(str, gold)) if isinstance(gold, list | tuple) else (str(gold),),
        }
    )


def flat_corpus(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows {id or pos, title, text}, {doc, part, text} or triples {s, p, o} as `trellis index` reads them."""
    return tuple(_flat_document(row, place) for place, row in enumerate(rows))


def _flat_document(row: Row, place: int) -> Row:
    if "s" in row:
        return {name: row[name] for name in ("s", "p", "o", "document") if name in row}
    if "part" in row:
        return {"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]}
    titled = {"title": row["title"]} if row.get("title") else {}
    return {"id": str(row.get("id", row.get("pos", place))), **titled, "text": row["text"]}


def _texts(*given: Any) -> tuple[str, ...]:
    """The texts among values and lists of values, each once; a figure in a list of wordings is none."""
    flat = [text for value in given for text in (value if isinstance(value, list | tuple) else [value])]
    return tuple(dict.fromkeys(text for text in flat if isinstance(text, str) and text.strip()))


def _listed(given: Any) -> list[Any]:
    """A list, or one that a text writes as JSON or Python does; a text that is none is its only item."""
    if not isinstance(given, str):
        return list(given)
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(given)
        except (ValueError, SyntaxError):
            continue
        return value if isinstance(value, list) else [given]
    return [given]


READERS: Mapping[str, Callable[[Parts], Result]] = {
    "hotpotqa": _hotpot, "2wiki": _hotpot, "musique": _musique, "nq": _nq, "popqa": _popqa, "ambignq": _ambignq,
    "cambignq": _cambignq, "cmrc": _cmrc, "loong": _loong, "ultradomain": _ultradomain,
    "graphrag_bench": _graphrag_bench, "multihop_rag": _multihop_rag, "podcasts": _podcasts,
    "pathquestion": _pathquestion, "polyg": _polyg,
}  # fmt: skip


@cache
def published_sets() -> Mapping[str, PublishedSet]:
    """The published sets by name, as published.toml beside this file has them."""
    known = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
    return {name: PublishedSet(name=name, **fields) for name, fields in known.items()}
