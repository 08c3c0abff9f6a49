"""Chinese terms: what place, repetition and head nouns show, and what is left out."""

import pytest

from prompts.text.names_zh import name_spans_zh


def names(text: str) -> set[str]:
    return {span.text for span in name_spans_zh(text)}


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("## 潮汐修正因子\n\n下文说明如何计算。", "潮汐修正因子"),
        ("作者引入**河床回填器**来处理泥沙。", "河床回填器"),
        ("- 双向潮位插值：先取两端的水位。", "双向潮位插值"),
        ("常见的做法（如分层抽样或随机抽样）各有缺点。", "随机抽样"),
        ("面向港口的预报(Port-oriented Forecast)指的是按港口给出水位。", "面向港口的预报"),
    ],
)
def test_the_place_of_a_term_shows_it(text: str, term: str) -> None:
    assert term in names(text)


def test_what_repeats_between_varied_neighbours_is_a_term() -> None:
    text = "潮汐闸门很旧。工程师修好了潮汐闸门，因此潮汐闸门又能开合。"
    assert "潮汐闸门" in names(text)
    assert "潮汐闸门" not in names("工程师修好了潮汐闸门。")


def test_a_head_noun_with_words_before_it_is_a_term_and_the_verb_before_is_not_part_of_it() -> None:
    assert "泥沙沉降模型" in names("团队训练泥沙沉降模型。")
    assert "训练泥沙沉降模型" not in names("团队训练泥沙沉降模型。")


def test_the_suffix_of_an_unknown_word_is_not_cut_off() -> None:
    assert "回填度" in names("回填度很高。因此，回填度决定了水位。")


def test_latin_and_its_head_are_one_term_where_nothing_stands_between() -> None:
    assert {"Kalman定理"} == names("Kalman定理很有名。")
    assert "Kalman" in names("Kalman 很有名。")


@pytest.mark.parametrize(
    "text",
    [
        "他问：“今天的水位是多少”。",
        "实验结果：水位上升。",
        "具体来说，我们需要更多时间。",
        "如图 3 所示，水位上升。",
        "path.join(a) 与 G.bfs(x) 返回列表。",
    ],
)
def test_phrases_calls_and_common_words_are_none(text: str) -> None:
    assert (
        names(text)
        & {
            "今天的水位是多少",
            "实验结果",
            "时间",
            "具体来说",
            "图 3",
            "path.join",
            "G.bfs",
            "列表",
        }
        == set()
    )


def test_a_person_needs_a_surname_or_repetition() -> None:
    assert "王磊" in names("南京大学王磊团队来了。")
    assert "南京大学" in names("南京大学王磊团队来了。")
