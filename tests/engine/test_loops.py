"""What counts as going round, and what of such an answer, or of one that was cut, still stands."""

import json
from dataclasses import replace

import pytest

from prompts.engine.calls import Call
from prompts.engine.loops import goes_round, standing
from tests.engine.fakes import call_of

LINES = replace(call_of(), by_line=True)
PROSE = call_of()
JSON = replace(call_of(), schema={"type": "object"}, by_item=True)
SENTENCE = "The quay was paid for by harbour dues. "
POINT = {"text": "The quay was paid for by harbour dues.", "score": 3}
FINDINGS = [{"text": f"Finding {number} says something of the quay.", "score": 3} for number in range(9)]
SHORT = [{"verdict": "yes"}] * 9


@pytest.mark.parametrize(
    ("text", "call", "round_and_round"),
    [
        ("E\tMill\tplace\t\nE\tQuay\tplace\t\nEND", LINES, False),
        ("E\tMill\tplace\t\n" * 3, LINES, True),
        ("|---|\n" * 3, LINES, False),
        (SENTENCE * 2, PROSE, False),
        (SENTENCE * 3, PROSE, True),
        ("Yes. " * 9, PROSE, False),
        ("the " * 300, PROSE, True),
        (json.dumps({"points": FINDINGS}, indent=1), JSON, False),
        (json.dumps({"points": [POINT] * 3}), JSON, True),
        (json.dumps({"points": [POINT] * 3})[:-20], JSON, False),
        (json.dumps({"points": SHORT}), JSON, False),
        (json.dumps({"written": {"answer": SENTENCE * 3}}), JSON, True),
        ('{"points": [' + "\n" * 1000, JSON, True),
        # Not to be read as JSON, and pretty-printed: its lines are alike.
        ("{'points': [" + "\n{'kind': 'organisation of some sort',\n}," * 5, JSON, False),
    ],
)
def test_what_is_said_three_times_goes_round(text: str, call: Call, round_and_round: bool) -> None:
    assert goes_round(text, call) is round_and_round


@pytest.mark.parametrize(
    ("text", "call", "kept"),
    [
        ("E\tMill\tplace\nE\tQu", LINES, "E\tMill\tplace\n…"),
        ("E\tMi", LINES, None),
        (f"It stands. {SENTENCE * 4}", PROSE, f"It stands. {SENTENCE}".strip()),
        (SENTENCE * 2, PROSE, None),
        (json.dumps({"points": FINDINGS[:3]})[:-9], JSON, {"points": FINDINGS[:2]}),
        (json.dumps({"partial": {"points": FINDINGS[:3]}})[:-9], JSON, {"partial": {"points": FINDINGS[:2]}}),
        (json.dumps({"points": FINDINGS[:3]})[:-9], replace(JSON, by_item=False), None),
        (json.dumps({"points": [FINDINGS[0], *[POINT] * 5]})[:-9], JSON, {"points": [FINDINGS[0], POINT]}),
        (json.dumps({"points": [POINT] * 5})[:-9], replace(JSON, by_item=False), None),
        (json.dumps({"answer": SENTENCE * 5})[:-9], replace(JSON, by_item=False), {"answer": SENTENCE.strip()}),
        ("no JSON", JSON, None),
    ],
)
def test_whole_pieces_before_a_cut_or_a_loop_stand(text: str, call: Call, kept: object) -> None:
    stands = standing(text, call)
    assert (json.loads(stands) if stands and isinstance(kept, dict) else stands) == kept
