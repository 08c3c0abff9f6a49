"""Sentences and chunks: what they hold, how large they are, and what leaves their ids alone."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prompts.text.segment import sentences
from prompts.text.tokens import count_tokens
from storage.records import Chunk, Document, Part, Triple
from tasks.chunk import chunk_document
from tasks.load.sources import compose

ENGLISH = (
    "The ferry of line {n} leaves Pier {n} at noon, and it returns before the tide turns at dusk."
)
CHINESE = "第{n}号渡轮中午从码头出发，傍晚退潮之前回到港口。"
LONG_WORD = "a" * 90
WORDS = "Pier the ferry 3.14 Dr. U.S. e.g. 渡轮 港口。 “好！” … end. Really? é́ 👩‍👩‍👧".split()
LINES = st.builds(
    lambda start, words: start + " ".join(words),
    st.sampled_from(["", "# ", "## ", "- ", "1. ", "| ", "> ", "```\n", "    ", "\n"]),
    st.lists(st.sampled_from([*WORDS, LONG_WORD]), max_size=14),
)
TEXTS = st.lists(LINES, max_size=30).map("\n".join) | st.text(max_size=400)
SIZES = st.integers(20, 80).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(0, (size - 1) // 2))
)


def document_of(text: str, *triples: Triple) -> Document:
    part = Part(document="d", source="s", path="a", kind="text", title="T", text=text)
    lines = "\n".join(triple.rendered() for triple in triples)
    facts = Part(
        document="d", source="s", path="b", kind="triples", title="T", text=lines, triples=triples
    )
    return compose([part, facts] if triples else [part])[0]


def chunked(text: str, size: int, overlap: int) -> list[Chunk]:
    return chunk_document(document_of(text), size, overlap)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Mr. Smith met E. A. Poe on Jan. 3.", "He paid $3.14 (approx. 3)."],
        ['"What?" said he.', '"Yes!"', "The U.S. Army came.", "It left the U.S.", "The end."],
        ["See No. 5 and vol. 2.", "No.", "He went to Acme Inc.", "They paid."],
        ["Version 3.8.8 of St. Mary's runs.", "Use it, e.g. Tuesdays."],
        ["`index SOURCE... --dry-run` tells the cost.", "Call `a. B` first."],
        ["Wait... what?", "He left..."],
        ["桥建成了。", "“多长？”", "他问；", "四百米！", "表现优异.", "但是很贵"],
    ],
)
def test_sentences_of_english_and_chinese(expected: list[str]) -> None:
    assert split(("" if "桥" in expected[0] else " ").join(expected)) == expected


def test_wrapped_lines_read_on_and_structure_does_not() -> None:
    wrapped = (
        "It was always said of him, that he knew how to keep\n"
        "Christmas well, if any man alive knew it."
    )
    blocks = ["- item one", "- item two", "1. First. Second.", "| a | b |", "| 1 | 2 |"]
    text = "\n".join(["# Title", wrapped, "May", "", *blocks, "1.2 Short heading", "Long " * 30])
    assert split(text) == [
        "# Title",
        wrapped,
        "May",
        "- item one",
        "- item two",
        "1. First.",
        "Second.",
        "| a | b |",
        "| 1 | 2 |",
        "1.2 Short heading",
        ("Long " * 30).strip(),
    ]


@settings(deadline=None)
@given(TEXTS)
def test_sentences_hold_all_characters_and_never_overlap(text: str) -> None:
    position = 0
    for start, end in sentences(text):
        assert not text[position:start].strip()
        assert start < end
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


@settings(deadline=None)
@given(TEXTS.filter(str.strip), SIZES)
def test_chunks_are_exact_complete_bounded_and_repeatable(
    text: str, limits: tuple[int, int]
) -> None:
    document = document_of(text)
    chunks = chunk_document(document, *limits)
    held = set[int]()
    for ordinal, chunk in enumerate(chunks):
        assert document.text[chunk.start : chunk.end] == chunk.text
        assert chunk.tokens == count_tokens([chunk.text])[0] <= limits[0]
        assert chunk.ordinal == ordinal
        held.update(range(chunk.start, chunk.end))
    assert all(sign.isspace() for place, sign in enumerate(document.text) if place not in held)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(chunks))
    assert chunk_document(document, *limits) == chunks


@settings(deadline=None)
@given(st.lists(LINES, max_size=30).map("\n".join), TEXTS.filter(str.strip))
def test_appended_text_leaves_the_ids_of_earlier_chunks_alone(text: str, more: str) -> None:
    assume(text.count("```") % 2 == 0)  # An open code block would take in the appended text.
    text += "\n\nA last line of plain words that ends here."
    before = chunked(text, 40, 10)
    after = {chunk.id for chunk in chunked(f"{text}\n\n{more}", 40, 10)}
    assert len(before) == 1 or {chunk.id for chunk in before[:-2]} <= after


@pytest.mark.parametrize("pattern", [ENGLISH, CHINESE])
def test_sentences_are_not_cut_and_neighbours_share_whole_ones(pattern: str) -> None:
    text = " ".join(pattern.format(n=n) for n in range(30))
    chunks = chunked(text, 100, 45)
    assert len(chunks) > 3
    assert {chunk.start for chunk in chunks} <= {start for start, _ in sentences(text)}
    assert {chunk.end for chunk in chunks} <= {end for _, end in sentences(text)}
    shared = [text[b.start : a.end] for a, b in pairwise(chunks)]
    assert all(shared)
    assert max(count_tokens(shared)) <= 45


def test_headings_begin_chunks_and_never_end_them() -> None:
    sections = [
        f"## Part {n}\n\n" + " ".join(ENGLISH.format(n=m) for m in range(n)) for n in range(1, 7)
    ]
    chunks = chunked("# Guide\n\n" + "\n\n".join(sections), 80, 20)
    assert all(not chunk.text.splitlines()[-1].startswith("#") for chunk in chunks)
    assert {chunk.heading for chunk in chunks} >= {"Guide", "Guide > Part 3", "Guide > Part 6"}
    assert any(chunk.text.startswith("## Part 5") for chunk in chunks)


def test_tables_and_lists_stay_whole_where_they_fit() -> None:
    table = "| Pier | Depth |\n|---|---|\n" + "\n".join(f"| {n} | {n} m |" for n in range(5))
    steps = "Take these steps:\n\n" + "\n".join(f"{n}. Step number {n}." for n in range(1, 6))
    first, second, third = (ENGLISH.format(n=n) for n in (1, 2, 3))
    chunks = chunked("\n\n".join([first, second, table, third, steps]), 90, 0)
    for whole in (table, steps):
        assert any(whole in chunk.text for chunk in chunks)


def test_triples_are_cut_between_lines_subject_by_subject() -> None:
    triples = [Triple(s=f"bridge_{n // 4}", p="spans", o=f"river number {n}") for n in range(24)]
    document = document_of(ENGLISH.format(n=1), *triples)
    text, *facts = chunk_document(document, 60, 10)
    assert text.kind == "text"
    assert {chunk.kind for chunk in facts} == {"triples"}
    lines = [chunk.text.split("\n") for chunk in facts]
    written = [line for own in lines for line in own]
    assert written == [triple.rendered() for triple in triples]
    assert all(len(own) % 4 == 0 for own in lines)
    assert all(document.text[chunk.start : chunk.end] == chunk.text for chunk in facts)


@pytest.mark.parametrize(
    "text",
    ["a" * 5000, "字" * 2000, "a," * 2000, "x\n" * 2000, "# h\n" * 300, f"w. {' ' * 9000}end."],
)
def test_monotonous_texts_keep_to_the_size(text: str) -> None:
    assert max(chunk.tokens for chunk in chunked(text, 30, 5)) <= 30
