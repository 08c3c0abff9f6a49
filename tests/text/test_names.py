"""Names, kinds, aliases, statements and tables: what a passage yields without a model."""

from itertools import pairwise

import pytest

from prompts.extract import ALIAS_PREDICATE, Extracted, extract_offline
from prompts.offline.extract import TOGETHER, TOGETHER_ZH
from prompts.text.names import name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.segment import sentences
from prompts.text.tokens import usually_lower
from prompts.text.words import content_terms, fold_name, terms


def names(text: str, title: str = "") -> list[str]:
    return [span.text for span in name_spans(text, sentences(text), title)]


def said(found: Extracted) -> set[tuple[str, str, str]]:
    return {(relation.source, relation.predicate, relation.target) for relation in found.relations}


def kinds(found: Extracted) -> dict[str, str]:
    return {entity.name: entity.kind for entity in found.entities}


@pytest.mark.parametrize(
    ("words", "small"),
    [("life education corrosion wipes opened", True), ("london scrooge saltmere england peter", False)],
)
def test_common_words_are_usually_written_small_and_names_are_not(words: str, small: bool) -> None:
    assert {usually_lower(word) for word in words.split()} == {small}


@pytest.mark.parametrize(
    ("text", "title", "found"),
    [
        # a common word that opens a sentence is no name, one with a capital inside a sentence or in the title is
        ("Corrosion is slow. Wipe the gauge. Marley was dead.", "", ["Marley"]),
        ("Then the Ghost spoke. Ghost and man left.", "", ["Ghost", "Ghost"]),
        ("Corrosion is a novel of 1931.", "Corrosion", ["Corrosion"]),
        ("STAVE TWO OF FIVE\n\nBob met NASA staff at Pier 4.", "", ["Bob", "NASA", "Pier 4"]),
        ('He cried, "Stop there!" and Tupper stopped.', "", ["Tupper"]),
        ("He met the Ghost of Tides Yet to Come there.", "", ["Ghost of Tides Yet to Come"]),
        # the title is one name
        ("Supper at the Mole is a film by Ada Korb.", "Supper at the Mole (film)", ["Supper at the Mole", "Ada Korb"]),
        ("See Section 3 and Figure 2 by Ada.", "", ["Ada"]),
        ("She wrote an Idea down for Ada.", "", ["Ada"]),
        # connectors hold a name together and lists apart
        (
            "The Bank of Velin, the Institute for Tidal Studies and Orla Bridge met Ada and Zoë.", "",
            ["Bank of Velin", "Institute for Tidal Studies", "Orla Bridge", "Ada", "Zoë"],
        ),
        # signs are part of a name
        ("G# is a language by Ada Korb. G++ and .ORB followed it.", "", ["G#", "Ada Korb", "G++", ".ORB"]),
        ("Grade B+ is rare. Tidepad++ of Hask needs K+ ions.", "", ["Grade B+", "Tidepad++ of Hask", "K+"]),
        ("The grade B- is rare. Take the A- and B-samples.", "", ["B-", "B-samples"]),
        ("The plan differs from Visual Orb .NET. It is old.", "", ["Visual Orb .NET"]),
        ("Orb Basic is no Orb Basic++ yet.", "Orb Basic", ["Orb Basic", "Orb Basic++"]),
        # an ending behind an apostrophe is none in a Turkish text
        ("Orla Köprüsü'nün müdürü Ayşe Ünlü'dür, adı bağlıdır.", "", ["Orla Köprüsü", "Ayşe Ünlü"]),
    ],
)  # fmt: skip
def test_names_by_their_capitals(text: str, title: str, found: list[str]) -> None:
    assert names(text, title) == found


def test_a_name_may_stand_over_a_line_end_and_reads_as_one_line() -> None:
    text = "At noon the tired old clerk whose name was then known to be Bob\nCratchit went out to slide in the street."
    (span,) = name_spans(text, sentences(text))
    assert span.text == "Bob Cratchit"
    assert text[span.start : span.end] == "Bob\nCratchit"


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
def test_what_stands_around_a_name_tells_its_kind(text: str, name: str, kind: str) -> None:
    assert kinds(extract_offline("", text))[name] == kind


FILM = "Tomas Reyd directed Grey Tide, Low Water, and Orla Sound."
ROWS = """name | designer | length_m | opened_by
name: Kestrel Bridge | designer: Tobias Wren | length_m: 412.5 | opened_by: Town of Saltmere
name: Teal Causeway | designer: works department | length_m: 9 | opened_by: Ada Korb
"""
SHIPS = "# Ships\n\n| Ship | Master |\n|---|---|\n| MV Heron | Ada Korb |\n| MV Petrel | none |\n\nA | B and C.\n"


@pytest.mark.parametrize(
    ("text", "relations"),
    [
        # the words between two names; "it" is the one before
        (
            "The Orla Bridge was designed by Tomas Reyd. It was opened by Ada Korb in 1931.",
            {("Orla Bridge", "designed by", "Tomas Reyd"), ("Orla Bridge", "opened by", "Ada Korb")},
        ),
        # those before a list hold for all of it
        (FILM, {("Tomas Reyd", "directed", name) for name in ("Grey Tide", "Low Water", "Orla Sound")}),
        # names of one sentence, whatever stands between
        (
            "Ada Korb (Velin, 1931) → Orla Films.",
            {("Ada Korb", TOGETHER, "Velin"), ("Velin", TOGETHER, "Orla Films")},
        ),
        ("“海湾”很大，我们来看“红隼”。", {("海湾", TOGETHER_ZH, "红隼")}),
        ("“海湾”环绕“红隼”。", {("海湾", "环绕", "红隼")}),
        # aliases
        (
            "The Coastal Hydrology Institute (CHI) is old.",
            {("Coastal Hydrology Institute", how, "CHI") for how in (ALIAS_PREDICATE, TOGETHER)},
        ),
        (
            "Marrand & Oke, usually shortened to M&O, is a firm.",
            {("Marrand & Oke", how, "M&O") for how in (ALIAS_PREDICATE, "usually shortened to")},
        ),
        # tables: of the first cell, by the labels of its row where it has them
        (
            ROWS,
            {
                ("Kestrel Bridge", "designer", "Tobias Wren"), ("Kestrel Bridge", "opened by", "Town of Saltmere"),
                ("Teal Causeway", "opened by", "Ada Korb"),
            },
        ),
        (SHIPS, {("MV Heron", TOGETHER, "Ada Korb")}),
    ],
)  # fmt: skip
def test_relations_are_what_a_text_says_of_two_names(text: str, relations: set[tuple[str, str, str]]) -> None:
    extracted = extract_offline("Orla Bridge", text)
    assert said(extracted) == relations
    whole = " ".join(text.split())
    assert all(" ".join(relation.description.split()) in whole for relation in extracted.relations)


def test_addresses_code_and_formulas_hold_no_names() -> None:
    text = "见 https://Example.org/Some/Path 与 `RunModel` 和 $\\Theta_K$ 以及 src/Main.py,作者用 GraphRAG 建图。"
    assert [span.text for span in name_spans_zh(text) if span.text.isascii()] == ["GraphRAG"]


def test_chinese_spans_never_overlap_and_quote_the_text() -> None:
    text = "海岸水文研究所(Coastal Hydrology Institute)由海洋学家奥雷尔·文特(Aurel Vint)于1952年创立。"
    spans = name_spans_zh(text)
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert all(one.end <= two.start for one, two in pairwise(spans))


def test_names_fold_to_one_form() -> None:
    assert fold_name("The Łódź Café (town)") == "łodz cafe"
    assert fold_name("O.S.A.") == "osa"
    assert fold_name("Zoë's") == fold_name("zoe")


def test_terms_are_stems_and_bigrams() -> None:
    assert terms("The bridges of 红隼桥") == ["bridg", "红隼", "隼桥"]
    assert content_terms("哪些桥梁的") == ["桥梁"]
    assert terms("G# or G++, .ORB+") == ["g#", "g++", ".orb+", "orb"]
    assert terms("頭髮與軟體") == terms("头发与软体"), "both scripts have one set of terms"


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("C# and C, 1+1", "en", ["c#", "c", "1", "1"]),
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
def test_terms_of_words_with_signs_and_apostrophes(text: str, language: str, found: list[str]) -> None:
    assert terms(text, language) == found


@pytest.mark.parametrize("name", ["G#", "K+", ".ORB", "Tidepad++", "Orla Bridge"])
def test_a_row_names_what_a_cell_holds(name: str) -> None:
    assert name in kinds(extract_offline("", f"thing: {name} | owner: Ada Korb"))


def terms_zh(text: str) -> set[str]:
    return {span.text for span in name_spans_zh(text)}


@pytest.mark.parametrize(
    ("text", "term", "found"),
    [
        # its place shows it
        ("## 潮汐修正因子\n\n下文说明如何计算。", "潮汐修正因子", True),
        ("作者引入**河床回填器**来处理泥沙。", "河床回填器", True),
        ("- 双向潮位插值：先取两端的水位。", "双向潮位插值", True),
        ("常见的做法（如分层抽样或随机抽样）各有缺点。", "随机抽样", True),
        ("面向港口的预报(Port-oriented Forecast)指的是按港口给出水位。", "面向港口的预报", True),
        # it repeats between varied neighbours
        ("潮汐闸门很旧。工程师修好了潮汐闸门，因此潮汐闸门又能开合。", "潮汐闸门", True),
        ("回填度很高。因此，回填度决定了水位。", "回填度", True),
        # a head noun with words before it
        ("团队训练泥沙沉降模型。", "泥沙沉降模型", True),
        ("Kalman定理很有名。", "Kalman定理", True),
        ("Kalman 很有名。", "Kalman", True),
        # a person by the surname
        ("南京大学王磊团队来了。", "王磊", True),
        ("《湾区周报》的记者来了。", "湾区周报", True),
        ("G#语言很新，.ORB 也是。", "G#", True),
        ("G#语言很新，.ORB 也是。", ".ORB", True),
        # phrases, calls, speeches and common words
        ("工程师修好了潮汐闸门。", "潮汐闸门", False),
        ("团队训练泥沙沉降模型。", "训练泥沙沉降模型", False),
        ("Kalman定理很有名。", "Kalman", False),
        ("他问：“今天的水位是多少”。", "今天的水位是多少", False),
        ("实验结果：水位上升。", "实验结果", False),
        ("具体来说，我们需要更多时间。", "具体来说", False),
        ("具体来说，我们需要更多时间。", "时间", False),
        ("如图 3 所示，水位上升。", "图 3", False),
        ("path.join(a) 与 G.bfs(x) 返回列表。", "path.join", False),
        ("path.join(a) 与 G.bfs(x) 返回列表。", "列表", False),
        ("这种方式的问题是结果。", "方式", False),
        ("“今天很冷，我们走吧。”他说。", "今天很冷，我们走吧。", False),
    ],
)
def test_a_chinese_term_is_shown_by_its_place_its_repetition_or_its_head(text: str, term: str, found: bool) -> None:
    assert (term in terms_zh(text)) is found
