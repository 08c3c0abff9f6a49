"""Names, kinds, aliases, relations and terms: what a passage yields without a model."""

import pytest

from prompts.extracted import ALIAS_PREDICATE, Extracted
from prompts.offline.extract import TOGETHER, TOGETHER_ZH, extract_offline
from prompts.text.names import name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.segment import sentences
from prompts.text.words import content_terms, terms


def said(found: Extracted) -> set[tuple[str, str, str]]:
    return {(relation.source, relation.predicate, relation.target) for relation in found.relations}


@pytest.mark.parametrize(
    ("text", "title", "found"),
    [
        # A common word is a name inside a sentence or in the title, not where it opens a sentence
        ("Corrosion is slow. Wipe the gauge. Marley was dead.", "", ["Marley"]),
        ("Then the Ghost spoke. Ghost and man left.", "", ["Ghost", "Ghost"]),
        ("Corrosion is a novel of 1931.", "Corrosion", ["Corrosion"]),
        ("STAVE TWO OF FIVE\n\nBob met NASA staff at Pier 4.", "", ["Bob", "NASA", "Pier 4"]),
        ('He cried, "Stop there!" and Tupper stopped.', "", ["Tupper"]),
        ("The Mole is a film by Ada Korb.", "The Mole (film)", ["The Mole", "Ada Korb"]),
        ("See Section 3 and Figure 2 by Ada.", "", ["Ada"]),
        ("She wrote an Idea down for Ada.", "", ["Ada"]),
        # Connectors hold a name together and lists apart
        (
            "The Bank of Velin, the Institute for Tidal Studies and Orla Bridge met Zoë.",
            "",
            ["Bank of Velin", "Institute for Tidal Studies", "Orla Bridge", "Zoë"],
        ),
        # Signs are part of a name
        ("G# is a language. G++ and .ORB followed it.", "", ["G#", "G++", ".ORB"]),
        (
            "Grade B+ is rare. Tidepad++ of Hask needs K+ ions.",
            "",
            ["Grade B+", "Tidepad++ of Hask", "K+"],
        ),
        ("The plan differs from Visual Orb .NET. It is old.", "", ["Visual Orb .NET"]),
        ("Orb Basic is no Orb Basic++ yet.", "Orb Basic", ["Orb Basic", "Orb Basic++"]),
        # A name may go on in the next line
        ("His name was then known to be Bob\nCratchit.", "", ["Bob Cratchit"]),
    ],
)
def test_names_are_found_by_their_capitals(text: str, title: str, found: list[str]) -> None:
    spans = name_spans(text, sentences(text), title)
    assert [span.text for span in spans] == found
    assert [" ".join(text[span.start : span.end].split()) for span in spans] == found


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("The Orla Bridge stands.", "Orla Bridge", "place"),
        ("He met Dr Anselm there.", "Dr Anselm", "person"),
        ("Ilse Marrand (born 9 May 1953 in Velin) built it.", "Ilse Marrand", "person"),
        ("Tobias Wren (2 March 1899 – 17 October 1973) built it.", "Tobias Wren", "person"),
        ("She lives in Saltmere.", "Saltmere", "place"),
        ("It won the Harbour Prize.", "Harbour Prize", "event"),
    ],
)
def test_the_words_around_a_name_tell_its_kind(text: str, name: str, kind: str) -> None:
    found = extract_offline("", text).entities
    assert {entity.name: entity.kind for entity in found}[name] == kind


FILM = "Tomas Reyd directed Grey Tide, Low Water, and Orla Sound."
ROWS = """name | designer | length_m | opened_by
name: Kestrel Bridge | designer: Tobias Wren | length_m: 412.5 | opened_by: Town of Saltmere
name: Teal Causeway | designer: works department | length_m: 9 | opened_by: Ada Korb
"""
SHIPS = (
    "# Ships\n\n| Ship | Master |\n|---|---|\n| MV Heron | Ada Korb |\n| MV Petrel | none |\n\nA | "
    "B and C.\n"
)


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        # The words between two names; "it" is the title's thing
        (
            "The Orla Bridge was designed by Tomas Reyd. It was opened by Ada Korb in 1931.",
            {
                ("Orla Bridge", "designed by", "Tomas Reyd"),
                ("Orla Bridge", "opened by", "Ada Korb"),
            },
        ),
        # The words before a list hold for all of it
        (
            FILM,
            {("Tomas Reyd", "directed", name) for name in ("Grey Tide", "Low Water", "Orla Sound")},
        ),
        # Names of one sentence, whatever stands between
        (
            "Ada Korb (Velin, 1931) → Orla Films.",
            {("Ada Korb", TOGETHER, "Velin"), ("Velin", TOGETHER, "Orla Films")},
        ),
        ("“海湾”很大，我们来看“红隼”。", {("海湾", TOGETHER_ZH, "红隼")}),
        ("“海湾”环绕“红隼”。", {("海湾", "环绕", "红隼")}),
        # Aliases
        (
            "The Coastal Hydrology Institute (CHI) is old.",
            {("Coastal Hydrology Institute", how, "CHI") for how in (ALIAS_PREDICATE, TOGETHER)},
        ),
        (
            "Marrand & Oke, usually shortened to M&O, is a firm.",
            {("Marrand & Oke", how, "M&O") for how in (ALIAS_PREDICATE, "usually shortened to")},
        ),
        # Rows: from the first cell, by labels where there are some
        (
            ROWS,
            {
                ("Kestrel Bridge", "designer", "Tobias Wren"),
                ("Kestrel Bridge", "opened by", "Town of Saltmere"),
                ("Teal Causeway", "opened by", "Ada Korb"),
            },
        ),
        (SHIPS, {("MV Heron", TOGETHER, "Ada Korb")}),
    ],
)
def test_relations_are_the_words_between_names(
    text: str, relations: set[tuple[str, str, str]]
) -> None:
    extracted = extract_offline("Orla Bridge", text)
    assert said(extracted) == relations
    whole = " ".join(text.split())
    assert all(" ".join(relation.description.split()) in whole for relation in extracted.relations)


def test_addresses_code_and_formulas_hold_no_names() -> None:
    text = (
        "见 https://Example.org/Some/Path 与 `RunModel` 和 $\\Theta_K$ 以及 src/Main.py,作者用 "
        "GraphRAG 建图。"
    )
    assert [span.text for span in name_spans_zh(text) if span.text.isascii()] == ["GraphRAG"]


def test_terms_are_stems_and_bigrams() -> None:
    assert terms("The bridges of 红隼桥") == ["bridg", "红隼", "隼桥"]
    assert content_terms("哪些桥梁的") == ["桥梁"]
    assert terms("頭髮與軟體") == terms("头发与软体"), "both scripts have one set of terms"


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("C# and C, 1+1", "en", ["c#", "c", "1", "1"]),
        (".ORB+", "en", [".orb+", "orb"]),
        ("Tidepad++ 65+", "en", ["tidepad++", "tidepad", "65+"]),
        ("K-300 or K300", "en", ["k-300", "k300", "k300"]),
        ("Ada’s O'Brien mill", "en", ["ada", "o'brien", "mill"]),
        ("Kestrel'in L'Aquila 1931'de", "en", ["kestrel", "aquila", "1931"]),
        ("100'000 сім'я", "en", ["100'000", "100", "000", "сім'я"]),
        ("Orla'daki köprüyü İZMİR’de", "tr", terms("Orla köprüyü izmir", "tr")),
        ("il ponte dell’Olmo", "it", terms("ponte Olmo", "it")),
        ("l’écluse d'Ambel", "fr", terms("écluse Ambel", "fr")),
    ],
)
def test_terms_of_words_with_signs_and_apostrophes(
    text: str, language: str, found: list[str]
) -> None:
    assert terms(text, language) == found


@pytest.mark.parametrize(
    ("text", "term", "found"),
    [
        ("作者引入**泥沙模型**来处理。", "泥沙模型", True),
        ("潮汐闸门很旧。", "潮汐闸门", True),
        ("Kalman 很有名。", "Kalman", True),
        ("南京大学王磊团队来了。", "王磊", True),
        ("《湾区周报》的记者来了。", "湾区周报", True),
        ("海洋学家奥雷尔·文特来了。", "奥雷尔·文特", True),
        ("G#语言很新，.ORB 也是。", "G#", True),
        ("G#语言很新，.ORB 也是。", ".ORB", True),
        # Phrases, calls, speeches and common words
        ("他问：“今天的水位是多少”。", "今天的水位是多少", False),
        ("实验结果：水位上升。", "实验结果", False),
        ("具体来说，我们需要更多时间。", "时间", False),
        ("如图 3 所示，水位上升。", "图 3", False),
        ("path.join(a) 与 G.bfs(x) 返回列表。", "path.join", False),
        ("这种方式的问题是结果。", "方式", False),
    ],
)
def test_a_chinese_name_is_a_run_of_nouns_or_marked(text: str, term: str, found: bool) -> None:
    assert (term in {span.text for span in name_spans_zh(text)}) is found
