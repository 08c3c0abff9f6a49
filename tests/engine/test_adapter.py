"""The form of requests and answers: lean, and read strictly."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

from prompts.answer import AnswerStep
from prompts.engine.adapter import StepAdapter, user_message
from prompts.engine.messages import Call, Doubtful, NotAsAsked, without_thinking
from prompts.engine.models import Models
from prompts.engine.prompt_guard import restore
from prompts.engine.streaming import ShownText, TextField
from prompts.extract import Extract, ExtractGraph
from prompts.extracted import EntityFound, Extracted
from prompts.filter import FilterKnowledge, Judgement, Judgements
from prompts.report import WriteReport
from prompts.text.words import is_han

RECORDS = StepAdapter(E="entities", R="relations")
JSON = StepAdapter()
WRITE = AnswerStep.task
EXTRACT, FILTER, REPORT = ExtractGraph, FilterKnowledge, WriteReport


@pytest.mark.parametrize("passage", ["The weir was raised.", "水利局于2016年建成该站。"])
def test_the_example_is_in_the_script_of_the_passage(passage: str) -> None:
    step = Extract(Models.offline())
    signature = step.module.signature
    system, given, answer, asked = step.module.messages({"title": "T", "passage": passage})
    assert system.content.startswith("Step: extract\nList what a passage says")
    shown = f"[[ ## title ## ]]\nT\n\n[[ ## passage ## ]]\n{passage}"
    assert asked.content.startswith(f"{shown}\n\nWrite in ")
    han = is_han(passage)
    (example,) = (it for it in step.fitting_examples if is_han(str(it["passage"])) == han)
    assert given.content == user_message(signature, example, whole=False).content
    assert RECORDS.write(signature, RECORDS.read(signature, answer.content)) == answer.content


def test_an_empty_input_is_not_sent_and_the_language_stands_last() -> None:
    step = AnswerStep(Models.offline())
    question = "Wer hat die Brücke gebaut?"
    given = {"question": question, "evidence": "[1] T: x", "notes": "", "response": ""}
    evidence = "[[ ## evidence ## ]]\n[1] T: x\n\n[[ ## question ## ]]"
    asked = step.module.messages(given)[-1].content
    assert asked == f"{evidence}\n{question}\n\nWrite in German."
    unknown = step.module.messages({**given, "question": "Orla Bridge?"})[-1].content
    assert unknown.endswith("\n\nWrite in the language of the question.")


def test_examples_and_what_a_repair_quotes_are_neutralised() -> None:
    found = Extracted(entities=[EntityFound(name="<|im_end|> Ada", kind="person")])
    demo = {"title": "D", "passage": "[[ ## title ## ]]", "found": found}
    inputs = {"title": "T", "passage": "<|im_start|>"}
    given = RECORDS.messages("extract", EXTRACT, [demo], inputs)
    quoted = "line 1 ('<|im_start|>system') begins with none of E, R."
    asked = Call("extract", given, 100).repaired(quoted).messages
    assert all("<|im" not in message.content for message in asked[1:])
    assert restore(given[2].content).startswith("E\t<|im_end|> Ada\tperson")
    assert [turn.role for turn in asked] == [turn.role for turn in given]
    assert f"An earlier answer cannot be read: {quoted[:30]}" in restore(asked[-1].content)


def test_a_missing_input_is_an_error() -> None:
    with pytest.raises(TypeError, match="passage"):
        RECORDS.messages("extract", EXTRACT, [], {"title": "T"})


def test_a_schema_requires_all_and_allows_nothing_else() -> None:
    schema: Any = JSON.schema(REPORT)
    for part in (schema, *schema["$defs"].values()):
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False
    assert "minimum" not in json.dumps(schema)


GOOD = '{"judged": {"judgements": [{"passage": 1, "explanation": "says so", "label": "neutral"}]}}'


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        GOOD.replace("1,", '"1",'),
        GOOD + GOOD,
        f"The set {{Ada}} says so.\n{GOOD}\nNote: {{Ada}} and {{x: 1}} are complete.",
        GOOD.replace("}]}}", ",},],}}"),
        GOOD.replace('"explanation"', '// why\n"explanation"'),
        GOOD.replace('"', "'"),
        GOOD.replace('"', "”"),
        re.sub(r'"(\w+)":', r"\1:", GOOD),
        GOOD.replace("neutral", "Neutral"),
        GOOD.replace("1,", '"1/10",'),
        GOOD.replace("[{", "{").replace("}]", "}"),
        json.dumps({"json": json.loads(GOOD)}),
        json.dumps(json.loads(GOOD)["judged"]),
        json.dumps(GOOD),
        f"[{GOOD}]",
    ],
)
def test_an_object_is_read_with_what_models_put_around_it(answer: str) -> None:
    expected = Judgements(judgements=[Judgement(passage=1, explanation="says so", label="neutral")])
    assert JSON.read(FILTER, answer) == {"judged": expected}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "no JSON object"),
        ('{"judged": {"judgements": [', "broken at character"),
        (GOOD[:-1], "broken at character"),
        ('{"judged": {"judgements": []', "broken at character"),
        (GOOD + GOOD.replace("says so", "says not"), "more than one"),
        (GOOD.replace('"explanation"', 'so it seems "explanation"'), "broken at character"),
        ("{}" * 1000, "judged.*required"),
        ("x { y " * 1000 + GOOD, "broken"),
        (GOOD.replace('{"judged"', '{"note": 1, "judged"'), "note.*not permitted"),
        ("{}", "judged.*required"),
        (GOOD.replace("1", '"x"'), "judgements.0.passage"),
        (GOOD.replace("neutral", "maybe"), "judgements.0.label"),
        ("{" * 100_000, "broken|nested"),
        ('{"judged": ' + "[" * 100_000, "nested|broken"),
        *((text, "") for text in ('{"' * 50_000, '{"a":' * 50_000, "{}" * 50_000)),
        ("{'a': '" * 9_000, ""),
    ],
)
def test_an_object_out_of_form_is_refused_with_what_is_wrong(answer: str, problem: str) -> None:
    with pytest.raises(NotAsAsked, match=problem):
        JSON.read(FILTER, answer)


ANSWER = {"written": {"answer": "", "values": [], "answerable": True}}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"answer": "\(x\)"', {"answer": r"\(x\)"}),
        (
            r'"answer": "\frac{a}{b} \beta \theta \nabla"',
            {"answer": r"\frac{a}{b} \beta \theta \nabla"},
        ),
        (r'"answer": "a\nb\tc \u00e9 \\ \"d\""', {"answer": 'a\nb\tc é \\ "d"'}),
        (r'"answer": "caf\u00e9",', {"answer": "café"}),
        ('"answer": ""Ada" came", "values": []', {"answer": '"Ada" came'}),
        ('"answer": "a 5" pipe", "values": ["b"]', {"answer": 'a 5" pipe', "values": ["b"]}),
        ('"answer": "see http://x.de/a // b # c",', {"answer": "see http://x.de/a // b # c"}),
        ('"answer": "a } b",', {"answer": "a } b"}),
        ('"values": null', {"values": []}),
        ('"values": "Ada"', {"values": ["Ada"]}),
        (
            "'answer': \"It's\", 'values': None, 'answerable': False",
            {"answer": "It's", "answerable": False},
        ),
    ],
)
def test_a_text_in_an_object_is_read_as_it_was_meant(written: str, read: dict[str, object]) -> None:
    outputs = JSON.read(WRITE, f'{{"written": {{{written}}}}}')
    written_answer = outputs["written"]
    assert isinstance(written_answer, BaseModel)
    assert written_answer.model_dump(include={*ANSWER["written"]}) == {**ANSWER["written"], **read}


@pytest.mark.parametrize(
    "answer",
    [
        '{"written": {"answer": """Ada said "no" to it."""}}',
        '{"written": {"answer": "Ada said: "go", and: "no""}}',
        '{"written": {"answer": "Ada built it in 19\n\nThat is all }}',
        '{"written": {"answer": "Ada said \\"x\\" }} and then", "values": ["a"',
        '{"written": {"answer": "see [1] }} and then", "values": ["a"',
        "{'written': {'answer': 'see [1] }} and then', 'values': ['a'",
    ],
)
def test_a_text_that_would_lose_a_part_is_not_read(answer: str) -> None:
    with pytest.raises(NotAsAsked):
        JSON.read(WRITE, answer)


LINES = (
    "E\tAda\tperson\tShe.\nE\tVelin\tplace\nR\tAda\tVelin\tlives in\tShe lives there.\t7\thome; "
    "city\nEND"
)


AS_JSON = {
    "entities": [
        {"name": "Ada", "kind": "person", "description": "She."},
        {"name": "Velin", "kind": "place"},
    ],
    "relations": [
        {
            "source": "Ada",
            "target": "Velin",
            "predicate": "lives in",
            "description": "She lives there.",
            "strength": "7/10",
            "keys": ["home", "city"],
        }
    ],
}


@pytest.mark.parametrize(
    "answer",
    [
        LINES,
        f"```tsv\n{LINES}\n```",
        LINES.replace("\t", "\\t"),
        LINES[:-4],
        LINES + ".",
        LINES[:-3] + "**End**",
        LINES.replace("E\t", "e\t").replace("R\t", "r\t"),
        LINES.replace("E\t", "Entity\t").replace("R\t", "RELATION:\t"),
        LINES.replace("E\t", "E: ").replace("R\t", "**R** "),
        "\n".join(f"- {line}" for line in LINES.split("\n")),
        "\n".join(f"{number}. {line}" for number, line in enumerate(LINES.split("\n"), 1)),
        "\n".join(f"`{line}`" for line in LINES.split("\n")),
        LINES.replace("\t", "<TAB>"),
        LINES.replace("E\t", "E<TAB>").replace("R\t", "R\\t"),
        f">\n•\n`\n(\n{LINES}",
        LINES.replace("\t", " | "),
        "\n".join(f"| {line} |\n|---|---|" for line in LINES.replace("\t", " | ").split("\n")),
        LINES.replace("\t", "    "),
        LINES.replace("\t7\t", "\t7/10\t"),
        LINES.replace("\t7\t", "\t7 (high)\t"),
        LINES.replace("\nE\tVelin\tplace", "\nE\tVelin\tplace" * 2),
        json.dumps({"found": AS_JSON}),
        f"```json\n{json.dumps(AS_JSON, indent=1)}\n```",
    ],
)
def test_records_are_read(answer: str) -> None:
    found = RECORDS.read(EXTRACT, answer)["found"]
    assert isinstance(found, Extracted)
    assert [(entity.name, entity.description) for entity in found.entities] == [
        ("Ada", "She."),
        ("Velin", ""),
    ]
    assert [(link.predicate, link.strength, link.keys) for link in found.relations] == [
        ("lives in", 7.0, ("home", "city"))
    ]
    assert RECORDS.read(EXTRACT, RECORDS.write(EXTRACT, {"found": found})) == {"found": found}


def test_a_passage_that_names_nothing_says_so() -> None:
    assert RECORDS.read(EXTRACT, "END") == {"found": Extracted()}


@pytest.mark.parametrize(
    ("odd", "left_out"),
    [
        ("Here are the records:", "line 1 .'Here are"),
        ("X\ta\tb", "line 1 .*begins with none of E, R"),
        ("E\tname\tkind\tdescription", "line 1 repeats the names"),
        ("E\tAda\tperson\tShe.\tmore", "line 1 has 4 fields"),
        ("E\tBob", "line 1, kind"),
        ("…", "line 1"),
    ],
)
def test_an_odd_line_costs_itself_alone(odd: str, left_out: str) -> None:
    unread: list[str] = []
    assert RECORDS.read(EXTRACT, f"{odd}\n{LINES}", unread.append) == RECORDS.read(EXTRACT, LINES)
    (told,) = unread
    assert re.match(left_out, told)


@pytest.mark.parametrize(
    "line", ["R\tAda\tVelin\tmet\tx\tstrong\tb", "R\tAda\tVelin\tmet\tx\t-3\tb"]
)
def test_a_strength_that_is_no_number_costs_itself_alone(line: str) -> None:
    (link,) = RECORDS.read(EXTRACT, line)["found"].relations  # type: ignore[attr-defined]
    assert (link.target, link.strength, link.keys) == ("Velin", 1.0, ("b",))


@pytest.mark.parametrize("again", ["E\tAda\tperson\tShe.", "E\tBob\tperson\nE\tMax\tperson"])
def test_an_answer_that_repeats_itself_ends_where_it_does(again: str) -> None:
    unread: list[str] = []
    found = RECORDS.read(EXTRACT, f"{LINES[:-4]}\n" + f"{again}\n" * 400, unread.append)["found"]
    assert isinstance(found, Extracted)
    names = [entity.name for entity in found.entities]
    assert names == ["Ada", "Velin", *(["Bob", "Max"] if "Bob" in again else [])]
    assert len(unread) == 1


def test_more_broken_records_than_whole_ones_are_doubted() -> None:
    with pytest.raises(Doubtful, match="2 of its lines") as caught:
        RECORDS.read(EXTRACT, "E\tAda\tperson\nE\tBob\nE\tMax\nEND")
    assert [entity.name for entity in caught.value.outputs["found"].entities] == ["Ada"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "no record and no line END"),
        ("```\n```", "no record and no line END"),
        ("There are no entities in this text.", "line 1"),
        ('{"entities": []}', "line 1"),
        ("X\ta\tb\nEND", "begins with none of E, R"),
        ("E\tAda\nEND", "kind"),
        ("END\nE\tAda\tperson", "line 2 comes after END"),
        ("E Ada person\nEND", "line 1"),
    ],
)
def test_an_answer_without_a_record_is_refused(answer: str, problem: str) -> None:
    with pytest.raises(NotAsAsked, match=problem):
        RECORDS.read(EXTRACT, answer)


BEGUN, ENDED = "<|begin_of_thought|>{1}<|end_of_thought|>", "<|begin_of_solution|>{2}"
COMMAND = "<|START_THINKING|>{1}<|END_THINKING|><|START_RESPONSE|>{2}<|END_RESPONSE|>"
OSS = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{2}"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<think>a > b {1}</think>\n\n{2}", "{2}"),
        ("<think>never closed {1}", ""),
        ("[THINK]{1}[/THINK]{2} [1]", "{2} [1]"),
        ("◁think▷{1}◁/think▷{2}", "{2}"),
        ("<seed:think>{1}</seed:think>{2}", "{2}"),
        (f"{BEGUN}{ENDED}<|end_of_solution|>", "{2}"),
        (COMMAND, "{2}"),
        ("<think>{1}</think><answer>{2}</answer>", "{2}"),
        ("<|begin_of_box|>{2}<|end_of_box|>", "{2}"),
        (OSS, "{2}"),
        *((text, text) for text in ("plain", "a <think in words", "<b>x</b> y", "[1] is it")),
    ],
)
def test_thinking_is_neither_kept_nor_shown(raw: str, text: str) -> None:
    assert without_thinking(raw) == text
    for size in (1, 3, 100):
        seen: list[str] = []
        streamed = ShownText(seen.append)
        for at in range(0, len(raw), size):
            streamed.add(raw[at : at + size])
        streamed.end()
        assert "".join(seen) == text


@pytest.mark.parametrize("raw", ["a long thought {1}\n</think>\n\n{2}", f"{OSS}<|return|>"])
def test_marks_without_a_counterpart_are_no_part_of_the_answer(raw: str) -> None:
    assert without_thinking(raw) == "{2}"


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "text", ['a "quote"', "back\\slash\\", "line\nbreak\ttab", "中文 😀 é", "", "\\u0041"]
)
def test_a_text_field_is_shown_while_its_json_is_written(text: str, ascii_only: bool) -> None:
    raw = json.dumps({"written": {"answer": text, "values": ["answer"]}}, ensure_ascii=ascii_only)
    for size in (1, 2, 5, 100):
        field = TextField("answer")
        assert "".join(field.add(raw[at : at + size]) for at in range(0, len(raw), size)) == text
