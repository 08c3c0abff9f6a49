"""Questions, the relevance of texts to them, and both in further languages."""

import pytest

from prompts.offline.excerpts import OfferedPassage, best_excerpts, shown
from prompts.text.evidence import Evidence
from prompts.text.languages import language_among, language_of
from prompts.text.question import is_nested, parse_question
from prompts.text.relevance import CollectionTopic, Relevance
from prompts.text.segment import sentences


@pytest.mark.parametrize(
    ("question", "asks_all"),
    [
        ("What are the main themes of these documents?", True),
        ("Which topics do the speakers discuss most often?", True),
        ("这些文档的主要主题是什么?", True),
        ("What are the main problems with salt?", False),
        ("Which topics does the Kestrel Bridge survey discuss?", False),
    ],
)
def test_a_question_about_everything_has_no_topic(question: str, asks_all: bool) -> None:
    known = {"Kestrel Bridge": ()} if "Kestrel" in question else {}
    topic = CollectionTopic(Relevance(parse_question(question), {}, known))
    assert (topic.of_all, topic.asked == {}) == (asks_all, asks_all)


def test_a_name_counts_under_an_alias_and_in_the_title() -> None:
    question = parse_question("What is said of Kestrel Bridge?")
    topic = CollectionTopic(Relevance(question, {}, {"Kestrel Bridge": ("红隼桥",)}))
    cables = "The cables were all replaced in the winter of that year."
    assert topic.worth(Evidence(0, "d", "", "红隼桥的钢索在去年冬天已经全部更换完毕。")) > 0.2
    assert topic.worth(Evidence(0, "d", "Kestrel Bridge", cables)) > 0.2
    assert topic.worth(Evidence(0, "d", "", cables)) == 0.0


FORMS = [
    ("Who designed the Orla Bridge?", "fact", "person"),
    ("Why was the Orla Bridge closed?", "fact", "text"),
    ("How much did the Orla Bridge cost?", "fact", "money"),
    ("Which bridges did Tomas Reyd design?", "list", "name"),
    ("Did Tomas Reyd design the Orla Bridge?", "yesno", "yesno"),
    ("Which bridge is the longest?", "compare", "name"),
    ("Was Ana Korb or Tomas Reyd born first?", "compare", "name"),
    ("How are Ana Korb and Tomas Reyd connected?", "connect", "text"),
    ("How do I grease the bearings?", "howto", "text"),
    ("Summarise the annual report.", "summary", "text"),
    ("What are the main themes of the documents?", "global", "text"),
    ("Tell me about Ana Korb.", "about", "text"),
    ("谁设计了奥拉桥?", "fact", "person"),
    ("奥拉桥是何时通车的?", "fact", "date"),
    ("雷德是否设计了奥拉桥?", "yesno", "yesno"),
    ("奥拉桥和石桥哪座更长?", "compare", "name"),
    ("雷德和科尔布有什么关系?", "connect", "text"),
    ("总结一下年度报告", "summary", "text"),
]


@pytest.mark.parametrize(("question", "form", "expects"), FORMS)
def test_a_question_has_a_form_and_an_expected_kind(question: str, form: str, expects: str) -> None:
    parsed = parse_question(question)
    assert (parsed.form, parsed.expects) == (form, expects)


@pytest.mark.parametrize(
    ("question", "nested"),
    [
        ("Where was the engineer born who designed the Orla Bridge?", True),
        ("Who is the mother of the director of Northern Gale?", True),
        ("Who is the director of Northern Gale?", False),
        ("What is the capital of the Orla province?", False),
    ],
)
def test_a_question_about_an_unknown_thing_is_nested(question: str, nested: bool) -> None:
    assert is_nested(parse_question(question)) is nested


GERMAN = (
    "Die Brücke von Velin wurde am 3. März 1931 eröffnet. Die Fahrbahn ist z. B. 412 Meter lang."
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GERMAN, "de"),
        ("Le pont de Velin fut ouvert en 1931 par la mairesse.", "fr"),
        ("Мост был открыт в 1931 году.", "ru"),
        ("The bridge was opened in 1931.", "en"),
        ("桥于1931年开放。", "zh"),
        ("橋は1931年に開通しました。", "ja"),
        ("다리가 길다", "ko"),
        ("Kestrel Bridge | Tobias Wren | 412", "en"),
        ("1931", "und"),
    ],
)
def test_a_text_tells_its_language(text: str, code: str) -> None:
    assert language_of(text) == code


def test_a_text_of_names_is_in_the_language_around_it() -> None:
    assert language_of("Tobias Wren, Velin", "de") == "de"
    assert language_of("Tobias Wren, Velin", "zh") == "en"


@pytest.mark.parametrize(
    ("question", "codes", "code"),
    [
        ("Wie lang ist die Fahrbahn?", {"de", "en"}, "de"),
        ("How long is the deck?", {"de", "en"}, "en"),
        ("Quel est le nom ?", {"de", "en", "fr"}, "fr"),
        ("Velin?", {"de"}, "de"),
        ("Velin?", {"zh", "und"}, "en"),
        ("桥有多长？", {"de", "zh"}, "zh"),
    ],
)
def test_a_question_is_in_a_language_of_the_index(
    question: str, codes: set[str], code: str
) -> None:
    assert language_among(question, frozenset(codes)).code == code


@pytest.mark.parametrize(
    ("question", "codes", "label"),
    [
        ("Ai xây cầu Sông Xanh?", {"de", "vi"}, "Trích từ tài liệu:"),
        ("北の灯台を設計したのは誰ですか？", {"zh", "ja"}, "文書より："),
        ("Köprüyü kim yaptı?", {"en", "tr"}, "Belgelerden:"),
        ("Who built it?", {"de"}, "From the documents:"),
        ("Velin?", {"de"}, "Aus den Dokumenten:"),
        ("谁建的？", {"de"}, "文档摘录："),
    ],
)
def test_excerpts_are_headed_in_the_language_of_the_question(
    question: str, codes: set[str], label: str
) -> None:
    assert language_among(question, frozenset(codes)).label == label


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (GERMAN, [GERMAN[:52], GERMAN[53:]]),
        (
            "Er sagte: „Fertig ist sie.“ Danach ging er.",
            ["Er sagte: „Fertig ist sie.“", "Danach ging er."],
        ),
        ("Abrió en 1931. ¿Cuándo cerró?", ["Abrió en 1931.", "¿Cuándo cerró?"]),
        ("Мост построил А. С. Ким. Он длинный.", ["Мост построил А. С. Ким.", "Он длинный."]),
    ],
)
def test_sentences_end_where_they_do_in_each_language(text: str, cut: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == cut


@pytest.mark.parametrize(
    ("question", "text", "quote"),
    [
        ("Wie lang ist die Fahrbahn?", GERMAN, "412 Meter"),
        ("Когда открыли мост?", "Мост был открыт в 1931 году. Рядом стоит старый маяк.", "1931"),
        ("Qui a dessiné les ponts ?", "Le pont fut dessiné par Ada Korb.", "Ada Korb"),
    ],
)
def test_a_question_gets_an_excerpt_in_its_language(question: str, text: str, quote: str) -> None:
    answer = best_excerpts(question, [OfferedPassage(1, "", "", text)], lambda _: 2.0)
    assert quote in shown(answer).text
