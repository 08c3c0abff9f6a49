"""What a question asks for, how much a text has to do with it, and both in further languages."""

import pytest

from prompts.offline.excerpts import OfferedPassage, best_excerpts, shown
from prompts.text.evidence import Evidence
from prompts.text.languages import language_among, language_of
from prompts.text.question import is_nested, parse_question
from prompts.text.relevance import CollectionTopic, Relevance
from prompts.text.segment import sentences


@pytest.mark.parametrize(
    ("question", "so"),
    [
        ("What are the main themes of these documents?", True),
        ("Which topics do the speakers discuss most often?", True),
        ("这些文档的主要主题是什么?", True),
        ("What are the main problems with salt?", False),
        ("Which topics does the Kestrel Bridge survey discuss?", False),
    ],
)
def test_a_question_about_everything_is_told_from_one_about_something(
    question: str, so: bool
) -> None:
    known = {"Kestrel Bridge": ()} if "Kestrel" in question else {}
    topic = CollectionTopic(Relevance(parse_question(question), {}, known))
    assert topic.of_all is so
    assert (topic.asked == {}) is so


def test_what_is_named_counts_under_its_other_names_and_in_the_title() -> None:
    relevance = Relevance(
        parse_question("What is said of Kestrel Bridge?"), {}, {"Kestrel Bridge": ("红隼桥",)}
    )
    topic = CollectionTopic(relevance)
    cables = "The cables were all replaced in the winter of that year."
    assert topic.worth(Evidence(0, "d", "", "红隼桥的钢索在去年冬天已经全部更换完毕。")) > 0.2
    assert topic.worth(Evidence(0, "d", "Kestrel Bridge", cables)) > 0.2
    assert topic.worth(Evidence(0, "d", "", cables)) == 0.0


FORMS = [
    ("Who designed the Orla Bridge?", "fact", "person"),
    ("Why was the Orla Bridge closed?", "fact", "text"),
    ("How much did the Orla Bridge cost?", "fact", "money"),
    ("In what year was the Orla Bridge opened?", "fact", "date"),
    ("Which bridges did Tomas Reyd design?", "list", "name"),
    ("Did Tomas Reyd design the Orla Bridge?", "yesno", "yesno"),
    ("Which bridge is the longest?", "compare", "name"),
    ("Between Ana Korb and Tomas Reyd, who was born first?", "compare", "name"),
    ("Was Ana Korb or Tomas Reyd born first?", "compare", "name"),
    ("How are Ana Korb and Tomas Reyd connected?", "connect", "text"),
    ("What do Ana Korb and Tomas Reyd have in common?", "connect", "text"),
    ("How do I grease the bearings?", "howto", "text"),
    ("Summarise the annual report.", "summary", "text"),
    ("What are the main themes of the documents?", "global", "text"),
    ("Tell me about Ana Korb.", "about", "text"),
    ("谁设计了奥拉桥?", "fact", "person"),
    ("奥拉桥是何时通车的?", "fact", "date"),
    ("修建奥拉桥花费是多少?", "fact", "money"),
    ("雷德是否设计了奥拉桥?", "yesno", "yesno"),
    ("奥拉桥和石桥哪座更长?", "compare", "name"),
    ("雷德和科尔布有什么关系?", "connect", "text"),
    ("如何更换轴承?", "howto", "text"),
    ("总结一下年度报告", "summary", "text"),
    ("介绍一下奥拉桥", "about", "text"),
]


@pytest.mark.parametrize(("question", "form", "expects"), FORMS, ids=[row[0] for row in FORMS])
def test_a_question_has_a_form_and_an_expected_kind(question: str, form: str, expects: str) -> None:
    parsed = parse_question(question)
    assert (parsed.form, parsed.expects) == (form, expects)


@pytest.mark.parametrize(
    ("question", "nested"),
    [
        ("Where was the engineer born who designed the Orla Bridge?", True),
        ("Who is the mother of the director of Northern Gale?", True),
        ("Where was Ana Korb's mother born?", True),
        ("Who is the director of Northern Gale?", False),
        ("Who designed the Orla Bridge?", False),
        ("What is the capital of the Orla province?", False),
    ],
)
def test_a_question_about_what_must_be_found_first_is_nested(question: str, nested: bool) -> None:
    assert is_nested(parse_question(question)) is nested


GERMAN = (
    "Die Brücke von Velin wurde am 3. März 1931 eröffnet. Die Fahrbahn ist z. B. 412 Meter lang."
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GERMAN, "de"),
        ("Le pont de Velin fut ouvert en 1931 par la mairesse.", "fr"),
        ("El puente fue inaugurado en 1931 por la alcaldesa.", "es"),
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


def test_a_text_that_tells_too_little_is_in_the_language_of_its_document() -> None:
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
        ("ما طول الجسر؟", {"de", "ar"}, "من المستندات:"),
        ("Wer baute sie?", {"en", "de"}, "Aus den Dokumenten:"),
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
        (
            "Qui a dessiné les ponts ?",
            "Le pont fut dessiné par Ada Korb.\n\nLa gare est vieille.",
            "Ada Korb",
        ),
        (
            "¿Cuándo abrieron el puente?",
            "El puente se abrió en 1931.\n\nLa estación es vieja.",
            "1931",
        ),
    ],
)
def test_a_question_gets_a_quotation_in_its_language(question: str, text: str, quote: str) -> None:
    answer = best_excerpts(question, [OfferedPassage(1, "", "", text)], lambda term: 2.0)
    assert quote in shown(answer).text
