"""Measures of answers and passages, by the rules that the sets state."""

from collections.abc import Mapping, Sequence

import dspy
import numpy as np
import pytest

from storage.answer_records import Answer, Citation, Passage
from storage.evaluation_records import EvaluationQuestion
from storage.run_records import Usage
from tasks.evaluate.measures import (
    MEASURES,
    CitationScores,
    as_metric,
    citation_scores,
    claim_clusters,
    holds,
    plain_answer,
)
from tasks.grounding import word_coverage


def question(**fields: object) -> EvaluationQuestion:
    return EvaluationQuestion.model_validate(
        {"id": "q", "question": "Who designed Orla Bridge?", **fields}
    )


def answered(text: str, values: Sequence[str] = (), **fields: object) -> Answer:
    return plain_answer("Who designed Orla Bridge?", text, values).model_copy(update=fields)


def passages(*documents: str) -> tuple[Passage, ...]:
    return tuple(
        Passage(document=name, title=name, chunk=f"chk_{place}", score=1.0, text=f"About {name}.")
        for place, name in enumerate(documents)
    )


def cited(marker: str, quote: str, document: str = "d", start: int = 0) -> Citation:
    return Citation(
        marker=marker,
        document=document,
        title=document,
        chunk=f"chk{marker}",
        start=start,
        end=start + len(quote),
        page=None,
        quote=quote,
        verified=True,
    )


@pytest.mark.parametrize(
    ("text", "answer", "there"),
    [
        ("It was designed by Tomas Reyd.", "TOMAS REYD", True),
        ("He came to a town.", "the town", True),
        ("Reydson", "Reyd", False),
        ("Ada | Korb", "ada körb", True),
        ("15", "1.5", False),
        ("由 东华实业 开发。", "东华实业", True),
        ("共１２座", "12座", True),
        ("", "Reyd", False),
        ("Reyd", "", False),
    ],
)
def test_a_text_holds_an_answer_as_whole_words(text: str, answer: str, there: bool) -> None:
    assert holds(text, ["x", answer]) is there


GOLD, ONE = {"gold_documents": ["a", "b"]}, {"gold_documents": ["a"]}
SPANS = {"gold_spans": [{"document": "d", "start": start, "end": start + 10} for start in (10, 40)]}
REYD = {"answers": ["Reyd Korb"]}
CITING = answered(
    "x [1]", citations=(cited("[1]", "five!", "d", 18), cited("[2]", "elsewhere", "e", 40))
)


@pytest.mark.parametrize(
    ("measure", "known", "answer", "value"),
    [
        ("exact_match", {"answers": ["x", "The Ada Korb!"]}, answered("ada korb [1]."), 1.0),
        ("exact_match", {"answers": ["Ada"]}, answered("It was Ada.", ["Ada"]), 1.0),
        ("exact_match", {}, answered("Ada"), None),
        ("exact_match", {"answers": ["Ada"], "answerable": False}, answered("Ada"), None),
        ("f1", {"answers": ["Ada Korb of Marl"]}, answered("Ada Korb"), 2 * 2 / (2 + 4)),
        ("f1", {"answers": ["yes"]}, answered("yes, it was"), 0.0),
        ("f1", {"answers": ["光荣和开发"]}, answered("光荣"), 2 * 2 / (2 + 5)),
        ("span_f1", {"answers": ["光荣和开发"]}, answered("光荣开发"), 2 * 2 / (4 + 5)),
        ("answer_words", {"answers": ["A cancer of the skin"]}, answered("Skin cells [1]."), 0.5),
        (
            "rouge_l",
            {"answers": ["Melanoma is a cancer"]},
            answered("Melanomas [1], cancers"),
            4 / 6,
        ),
        ("passage_words@1", REYD, answered("x", passages=passages("reyd", "korb")), 0.5),
        ("answer_in_text", {"answers": ["Ada Korb"]}, answered("By Ada Korb in 1931 [1]."), 1.0),
        ("answer_in_text", {"answers": ["no"]}, answered("There is no doubt: yes."), 0.0),
        ("answer_in_text", {"answers": ["yes"]}, answered("Yes, both are [1]."), 1.0),
        ("values_f1", {"values": ["a_b", "c", "d"]}, answered("", ["A_b", "x"]), 2 / 5),
        ("values_exact", {"values": ["a", "b"]}, answered("", ["b", "a", "a"]), 1.0),
        ("values_hit", {"values": ["a", "b"]}, answered("", ["x", "a"]), 0.0),
        ("recall@2", GOLD, answered("x", passages=passages("c", "b", "a")), 0.5),
        ("all_gold@5", GOLD, answered("x", passages=passages("c", "b", "b", "a")), 1.0),
        ("ndcg@5", ONE, answered("x", passages=passages("b", "a", "a")), 1 / np.log2(3)),
        ("recall@5", {}, answered("x", passages=passages("a")), None),
        ("evidence_cited", SPANS, CITING, 0.5),
        ("abstention", {"answerable": False}, answered(""), 1.0),
        ("abstention", {}, answered(""), 0.0),
        ("calls", {}, answered("x", usage=Usage(calls=3, seconds=1.0)), 3.0),
        ("seconds", {}, answered("x"), None),
    ],
)
def test_a_measure_gives_what_its_definition_gives(
    measure: str, known: Mapping[str, object], answer: Answer, value: float | None
) -> None:
    assert MEASURES[measure].score(question(**known), answer) == (
        value if value is None else pytest.approx(value)
    )


TEXT = (
    "Orla Bridge was designed by Ada Korb [1][2]. It was opened in 1931 [2]. Gulls eat bolts [1]. "
    "Nobody cites this."
)
CITED = {"[1]": "Orla Bridge was designed by Ada Korb.", "[2]": "Orla Bridge was opened in 1931."}


def test_citations_are_judged_as_alce_does() -> None:
    """Two of four statements are supported, by [1] of the first and [2] of the second."""
    scores = citation_scores("What of Orla Bridge?", TEXT, CITED, word_coverage)
    assert scores == CitationScores(0.5, 0.5)
    assert citation_scores("What?", "# A heading", {}, word_coverage) is None
    uncited = citation_scores("What?", "Orla Bridge was opened.", {}, word_coverage)
    assert uncited == CitationScores(0.0, 0.0)


def test_claims_that_say_the_same_are_one_cluster() -> None:
    claims = [
        "Salt eats the bearings of the bridge",
        "Salt eats bearings of a bridge",
        "Ferries wait for the tide",
    ]
    assert [claim_clusters(claims[:count]) for count in (0, 1, 2, 3)] == [0, 1, 1, 2]
    answer = answered("Salt eats bearings [1]. Salt eats the bearings [2]. Nothing is cited here.")
    names = ("claims", "claim_clusters")
    assert [MEASURES[name].score(question(), answer) for name in names] == [2, 1]


class FirstWord(dspy.Module):
    """A program whose answer is the first word of the question."""

    def forward(self, question: str) -> dspy.Prediction:
        first = question.split(maxsplit=1)[0]
        return dspy.Prediction(answer=first, values=[first])


def test_dspy_evaluates_with_each_measure() -> None:
    rows = [
        dspy.Example(question="Ada built it", answer="Ada", values=["Ada"], gold_documents=["a"]),
        dspy.Example(question="Orla stands", answer="Marl", values=["Marl"], gold_documents=["a"]),
    ]
    examples = [row.with_inputs("question") for row in rows]
    percents = {"exact_match": 50.0, "f1": 50.0, "values_exact": 50.0, "recall@5": 0.0}
    for name, percent in percents.items():
        metric = as_metric(MEASURES[name])
        evaluate = dspy.Evaluate(
            devset=examples, metric=metric, num_threads=1, display_progress=False
        )
        assert evaluate(FirstWord()).score == percent
    answer = FirstWord()(question="Ada built it")
    for measure in MEASURES.values():
        if "judge" not in measure.needs:
            assert isinstance(as_metric(measure)(examples[0], answer), float)
