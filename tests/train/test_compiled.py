"""Steps compiled by each of DSPy's optimisers by a measure, saved, loaded, and seen in the prompt
that is sent.
"""

import json
from pathlib import Path

import pytest

from tasks.train.rows import divided, read_questions
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.workspaces import write_rows

OWN = "Answer in the fewest words that the evidence allows."
# What an optimiser's own prompts are answered with: MIPROv2 reads fields, GEPA JSON.
PROPOSED = "\n\n".join(
    f"[[ ## {name} ## ]]\n{OWN}"
    for name in (
        "observations",
        "summary",
        "program_description",
        "module_description",
        "proposed_instruction",
        "completed",
    )
)


def written(place: str) -> str:
    body = {"reasoning": "", "answer": f"In {place} [1].", "values": [place], "answerable": True}
    return json.dumps({"written": body})


@pytest.fixture
def gold(copied: Command, scripted: Server, tmp_path: Path) -> Path:
    """Questions with their gold; the server knows every second answer, and all of them under a
    better instruction.
    """
    asked = [f"Where was no {n} of the council born?" for n in range(10, 30)]
    right, wrong = written("Velin"), written("Nowhere")
    scripted.misbehave(
        {"kind": "writes", "step": "answer", "text": OWN, "says": right},
        *(
            {"kind": "writes", "step": "answer", "text": question, "says": right}
            for question in asked[::2]
        ),
        {"kind": "writes", "step": "answer", "says": wrong},
        {
            "kind": "writes",
            "step": "unknown",
            "text": "new_instruction",
            "says": json.dumps({"new_instruction": OWN}),
        },
        {"kind": "writes", "step": "unknown", "says": PROPOSED},
    )
    rows = [
        {"question": question, "answers": ["Velin"], "gold_documents": ["reyd"]}
        for question in asked
    ]
    return write_rows(tmp_path / "gold.jsonl", rows)


@pytest.mark.parametrize("by", ["bootstrap", "mipro", "gepa"])
@pytest.mark.parametrize("measure", ["exact_match"])
def test_an_answer_is_compiled_by_a_measure_and_asked_with_what_was_found(
    by: str, measure: str, gold: Path, copied: Command, model_server: Server
) -> None:
    if by == "mipro":
        pytest.importorskip("optuna")
    done = copied(
        "train",
        "answer",
        "--questions",
        str(gold),
        "--by",
        by,
        "--measure",
        measure,
        "--use",
        "--json",
    )
    assert done.code == 0, done.err
    assert set(done.json["scores"]) == {"rules", "prompt", "compiled"}
    assert {name for scores in done.json["scores"].values() for name in scores} == {measure}
    program = json.loads(
        (copied.workspace / "programs" / "answer.json").read_text(encoding="utf-8")
    )
    model_server.misbehave()
    model_server.reset()
    assert copied("ask", "Where was Tomas Reyd born?", "--mode", "naive", "--json").code == 0
    (messages,) = model_server.sent("answer")
    if by == "bootstrap":
        assert program["demos"]
        assert program["demos"][0]["question"] in messages[1]["content"]
    else:
        assert (
            done.json["scores"]["compiled"][measure] == 1.0 > done.json["scores"]["prompt"][measure]
        )
        assert OWN in messages[0]["content"]
    card = json.loads(
        (copied.workspace / "trained" / f"answer-{by}" / "card.json").read_text(encoding="utf-8")
    )
    assert card["options"]["measure"] == measure


def test_a_rewriter_is_compiled_by_what_the_search_finds(
    copied: Command, gold: Path, model_server: Server
) -> None:
    def rewritten(question: str) -> str:
        return json.dumps(
            {"rewriting": {"reasoning": "", "question": question, "queries": [], "ambiguities": []}}
        )

    found = divided(read_questions(gold))[0][0].question
    model_server.misbehave(
        {
            "kind": "writes",
            "step": "rewrite",
            "text": found,
            "says": rewritten("Where was Tomas Reyd born?"),
        },
        {"kind": "writes", "step": "rewrite", "says": rewritten("Kestrel Quay flood winter")},
    )
    arguments = (
        "--questions",
        str(gold),
        "--by",
        "bootstrap",
        "--measure",
        "ndcg@1",
        "--use",
        "--json",
    )
    done = copied("train", "rewriter", *arguments)
    assert done.code == 0, done.err
    program = json.loads(
        (copied.workspace / "programs" / "rewrite.json").read_text(encoding="utf-8")
    )
    assert [demo["question"] for demo in program["demos"]] == [found]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("router", "--by", "gepa", "--measure", "f1"), "not compiled by the measure 'f1'"),
        (("router", "--measure", "accuracy"), "knows no measure"),
        (("answer", "--rows", "rows.jsonl"), "--questions"),
        (("rewriter", "--by", "mipro", "--rows", "rows.jsonl"), "--questions"),
    ],
)
def test_what_cannot_be_compiled_is_refused_in_words(
    arguments: tuple[str, ...], words: str, gold: Path, copied: Command
) -> None:
    done = copied("train", *arguments)
    assert done.code == 2
    assert words in done.err
