"""A filter finds what it means, and an error says where it cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import FilterError, NothingMatches
from storage.filters import check_filter
from storage.records import Document, Part, Scalar
from storage.workspace import Generation, Workspace

Row = tuple[str, str, dict[str, Scalar]]
ROWS: dict[str, Row] = {
    "a": (
        "Orla Bridge",
        "en",
        {"year": 1931, "draft": False, "my key": "x", "metadata.city": "Velin"},
    ),
    "b": (
        "Velin's Ferry",
        "en",
        {"year": "1950", "draft": True, "note": None, "language": "Velinish"},
    ),
    "c": ("奥拉桥", "zh", {"date": "2024-05-01", "share": 9.5, "年份": 2024}),
    "d": ("100% Orla", "en", {"a/b~c": "odd", "share": 10}),
}


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generation]:
    workspace = Workspace(tmp_path_factory.mktemp("filters") / "ws")
    with workspace.write() as staging:
        staging.documents.put_documents([_document(name, *row) for name, row in ROWS.items()])
        staging.publish()
    with workspace.read() as generation:
        yield generation


def _document(name: str, title: str, language: str, metadata: dict[str, Scalar]) -> Document:
    part = Part(
        document=name,
        source=f"/data/{'notes' if name < 'c' else 'news'}",
        path=f"/data/{name}.md",
        kind="text",
        title=title,
        text=f"Text of {name}.",
        metadata=metadata,
    )
    return Document(
        id=name, title=title, text=part.text, language=language, parts=(part,), metadata=metadata
    )


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("year = 1931", "a"),
        ("year >= 1931", "ab"),  # A figure that is stored as text is compared as a figure
        ("year != 1931", "bcd"),  # A document without a year has another year
        ("not year >= 1931", "cd"),
        ("YEAR = 1931 OR share = 10", "ad"),
        ("year = 1931 or year = 1950 and draft = true", "ab"),
        ("(year = 1931 or year = 1950) and draft = true", "b"),
        ("draft <> true and not (year < 1900 or share = 9.5)", "ad"),
        ("title like '%orla%'", "ad"),
        ("title like 'Orla_Bridge'", "a"),
        ("title contains '100%'", "d"),
        ("title contains '奥拉'", "c"),
        ("title = 'Velin''s Ferry'", "b"),
        ('title = "Velin\'s Ferry"', "b"),
        ("document not in ('a', 'c')", "bd"),
        ("year in (1931, 1950)", "ab"),
        ("metadata.language = 'Velinish'", "b"),
        ("source != 'news'", "ab"),
        ("source like '%note%' and not source = 'notes'", ""),
        ("date > 2024-04", "c"),
        ("note is null", "abcd"),
        ("year is not null", "ab"),
        ("`my key` = 'x'", "a"),
        ("`a/b~c` = 'odd'", "d"),
        ("年份 >= 2000", "c"),
        ("city = 'Velin'", "a"),
        ("(" * 1_900 + "year = 1931" + ")" * 1_900, "a"),
        ("not " * 990 + "year = 1931", "a"),
        ("(year = 1 or " * 280 + "year = 1931" + ")" * 280, "a"),
        ("title = '; DROP TABLE documents; --'", ""),
        ("title like ''' OR true --'", ""),
    ],
)
def test_what_a_filter_finds(generation: Generation, expression: str, found: str) -> None:
    if found:
        assert "".join(generation.filters.matching(expression)) == found
    else:
        with pytest.raises(NothingMatches) as raised:
            generation.filters.matching(expression)
        assert repr(expression) in raised.value.message
    assert len(generation.documents.ids()) == len(ROWS)


@pytest.mark.parametrize(
    ("expression", "character", "words"),
    [
        ("", 1, "a field"),
        ("year >=", 8, "a value"),
        ("language = en", 12, "'en'"),
        ("year = 1 year = 2", 10, "`and`, `or` or the end"),
        ("title = 'x", 9, "Close the quote"),
        ("year ! 3", 6, "'!'"),
        ("year in 3", 9, "`(`"),
        ("year in (1 2)", 12, "`,` or `)`"),
        ("title like 3", 12, "text in quotes"),
        ("year not = 3", 10, "not year = 2020"),
        ("year = 1" + " or year = 1" * 500, 4001, "shorter"),
    ],
)
def test_an_error_says_where_a_filter_is_wrong(expression: str, character: int, words: str) -> None:
    with pytest.raises(FilterError) as raised:
        check_filter(expression)
    assert f"character {character}:" in raised.value.message
    assert words in str(raised.value)


def test_without_metadata_there_are_the_common_fields(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    with workspace.write() as staging:
        staging.documents.put_documents([_document("a", "A", "en", {})])
        staging.publish()
    with workspace.read() as generation:
        assert generation.filters.fields() == ["document", "title", "language", "source"]
        assert generation.filters.matching("document = 'a'") == ["a"]
