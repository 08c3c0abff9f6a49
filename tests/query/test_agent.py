"""The agent's step and record: calls in many forms are read, evidence is numbered and ordered."""

import pytest

from prompts.agent import FINISH, CallNextTool, CallTool, ToolCall, ToolResult, shown_calls
from prompts.engine.messages import rough_tokens
from tasks.agent import NOTHING, Exploration, Found
from tasks.citations import Source


def source(name: str, start: int = 0, text: str = "A sentence.") -> Source:
    return Source(name, name.upper(), text, start, ((f"chk_{name}{start}", start),))


@pytest.mark.parametrize(
    ("written", "tool", "arguments"),
    [
        ('{"tool": "entity", "arguments": ["Orla"]}', "entity", ("Orla",)),
        ('{"tool": "entity", "arguments": {"name": "Orla"}}', "entity", ("Orla",)),
        ('{"tool": "entity", "arguments": "Orla"}', "entity", ("Orla",)),
        ('{"tool": "passage", "arguments": [3]}', "passage", ("3",)),
        ('{"tool": "finish", "arguments": {"numbers": [1, 2]}}', "finish", ("1", "2")),
        ('{"tool": "finish", "arguments": null}', "finish", ()),
        ('{"thought": "All is found.", "tool": "Finish"}', "finish", ()),
    ],
)
def test_a_call_is_read_in_many_forms(written: str, tool: str, arguments: tuple[str, ...]) -> None:
    read = CallTool.output_format.parse(CallNextTool, written)["next_call"]
    assert isinstance(read, ToolCall)
    assert (read.tool, read.arguments) == (tool, arguments)


def test_calls_that_differ_in_case_and_blanks_are_the_same() -> None:
    first = ToolCall(tool="search", arguments=("Who  is Ada?",))
    assert first.key == ToolCall(tool="search", arguments=(" who is ADA?",)).key
    assert first.key != ToolCall(tool="search_words", arguments=("Who is Ada?",)).key


def test_evidence_is_numbered_once_and_quoted_once() -> None:
    seen = Exploration()
    seen.add(FINISH, [Found("", source("a")), Found("x -[made]-> y", source("b"))], 1_000)
    seen.add(FINISH, [Found("", source("a")), Found("words alone")], 1_000)
    seen.add(FINISH, [Found("", source("a"), again=True)], 1_000)
    seen.add(FINISH, [], 1_000)
    assert [result.result for result in seen.results] == [
        ["[1] A: A sentence.", "[2] x -[made]-> y; B: A sentence."],
        ["[1] A (shown above)", "words alone"],
        ["[1] A: A sentence."],
        [NOTHING],
    ]


def test_a_result_ends_where_its_room_ends() -> None:
    seen = Exploration()
    seen.add(FINISH, [Found("", source(name)) for name in "abcdef"], 12)
    assert len(seen.sources) == len(seen.results[0].result) < 6


def test_named_evidence_comes_first_then_each_best() -> None:
    seen = Exploration()
    seen.add(FINISH, [Found("", source(name)) for name in "abc"], 1_000)
    seen.add(FINISH, [Found("", source(name)) for name in "de"], 1_000)
    assert [one.document for one in seen.best] == ["a", "d", "b", "e", "c"]
    seen.needed = (3, 99)
    assert [one.document for one in seen.best] == ["c", "a", "d", "b", "e"]


def test_older_results_are_shortened_and_the_newest_is_whole() -> None:
    long = " ".join(["word"] * 200)
    calls = [ToolResult(call=f"search({n})", result=[f"[{n}] {long}"]) for n in range(3)]
    first, second, last = shown_calls(calls, rough_tokens(long) * 2 + 10)
    assert (second, last) == (calls[1], calls[2])
    assert first.result[0].startswith("[0] word")
    assert rough_tokens(first.result[0]) < 40
    assert shown_calls(calls, 1)[-1] == calls[-1]
