"""Steps compiled by DSPy's optimisers: measured, saved, loaded, and seen in the prompt sent."""

import json
from pathlib import Path

import pytest

from tasks.train.rows import divided, read_questions
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.train.conftest import rewriting
from tests.workspaces import write_rows

OWN = "Answer in the fewest words that the evidence allows."
# The answer to an optimiser's own prompts: MIPROv2 reads fields, GEPA JSON.
_FIELDS = (
    "observations summary program_description module_description proposed_instruction completed"
)
PROPOSED = "\n\n".join(f"[[ ## {name} ## ]]\n{OWN}" for name in _FIELDS.split())


def written(place: str) -> str:
    body = {"reasoning": "", "answer": f"In {place} [1].", "values": [place], "answerable": True}
    return json.dumps({"written": body})


@pytest.fixture
def gold(copied: Command, scripted: Server, tmp_path: Path) -> Path:
    """Questions whose answers the server knows by half, or wholly under a better instruction."""
    asked = [f"Where was no {n} of the council born?" for n in range(10, 30)]
    right, wrong = written("Velin"), written("Nowhere")
    proposed = json.dumps({"new_instruction": OWN})
    scripted.misbehave(
        {"kind": "writes", "step": "answer", "text": OWN, "says": right},
        *(
            {"kind": "writes", "step": "answer", "text": question, "says": right}
            for question in asked[::2]
        ),
        {"kind": "writes", "step": "answer", "says": wrong},
        {"kind": "writes", "step": "unknown", "text": "new_instruction", "says": proposed},
        {"kind": "writes", "step": "unknown", "says": PROPOSED},
    )
    rows = [
        {"question": question, "answers": ["Velin"], "gold_documents": ["reyd"]}
        for question in asked
    ]
    return write_rows(tmp_path / "gold.jsonl", rows)


@pytest.mark.parametrize("by", ["bootstrap", "mipro", "gepa"])
def test_an_answer_is_compiled_and_asked_with_what_was_found(
    by: str, gold: Path, copied: Command, model_server: Server
) -> None:
    if by == "mipro":
        pytest.importorskip("optuna")
    measured = ("--by", by, "--measure", "exact_match")
    done = copied("train", "answer", "--questions", str(gold), *measured, "--use", "--json")
    assert done.code == 0, done.err
    scores = {name: own["exact_match"] for name, own in done.json["scores"].items()}
    assert set(scores) == {"rules", "prompt", "compiled"}
    program = json.loads((copied.workspace / "programs" / "answer.json").read_bytes())
    model_server.misbehave()
    model_server.reset()
    assert copied("ask", "Where was Tomas Reyd born?", "--mode", "naive", "--json").code == 0
    (messages,) = model_server.sent("answer")
    if by == "bootstrap":
        assert program["demos"][0]["question"] in messages[1]["content"]
    else:
        assert scores["compiled"] == 1.0 > scores["prompt"]
        assert OWN in messages[0]["content"]
    card = copied.workspace / "trained" / f"answer-{by}" / "card.json"
    assert json.loads(card.read_bytes())["options"]["measure"] == "exact_match"


def test_a_rewriter_is_compiled_by_what_the_search_finds(
    copied: Command, gold: Path, model_server: Server
) -> None:
    found = divided(read_questions(gold))[0][0].question
    right, wrong = rewriting("Where was Tomas Reyd born?"), rewriting("Kestrel Quay flood winter")
    model_server.misbehave(
        {"kind": "writes", "step": "rewrite", "text": found, "says": right},
        {"kind": "writes", "step": "rewrite", "says": wrong},
    )
    measured = ("--by", "bootstrap", "--measure", "ndcg@1")
    done = copied("train", "rewriter", "--questions", str(gold), *measured, "--use", "--json")
    assert done.code == 0, done.err
    program = json.loads((copied.workspace / "programs" / "rewrite.json").read_bytes())
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
def test_what_cannot_be_compiled_is_refused(
    arguments: tuple[str, ...], words: str, gold: Path, copied: Command
) -> None:
    done = copied("train", *arguments)
    assert done.code == 2
    assert words in done.err
