"""What do the two levels of the graph give: names, themes, neighbours, and tables that fit and can be cited?"""

import numpy as np
import pytest

from storage.records import Chunk
from tasks.retrieve.dual_levels import (
    Levels,
    LevelScores,
    best_rows,
    graph_notes,
    stating_sources,
)
from tasks.sources import source_of
from tests.retrieve.corpus import NAMES, STATED, TEXTS, graph, passage

INDEX, FACTS, LEVELS = graph()
QUESTION = "Where was the designer of Orla Bridge born?"
HIGH = ["designer", "born"]


def low(question: str = QUESTION, documents: list[str] | None = None) -> LevelScores:
    return LEVELS.low(LEVELS.link(question, []), HIGH, LEVELS.near(question, {}, documents))


def high(*keys: str, documents: list[str] | None = None) -> LevelScores:
    text = " ".join(keys)
    return LEVELS.high(keys, LEVELS.near(text, {}, documents))


def found(level: LevelScores, levels: Levels = LEVELS) -> list[str]:
    return [passage.document for passage in levels.best(level, 5)]


def named(level: LevelScores) -> set[str]:
    return {NAMES[place] for place in level.entities.nonzero()[0]}


def stated(level: LevelScores) -> list[str]:
    return [LEVELS.relations[place].id for place in level.relations.nonzero()[0]]


def test_the_low_level_gives_what_is_named_and_one_hop_on() -> None:
    level = low()
    assert found(level) == ["bridge", "reyd"]
    assert named(level) == {"Orla Bridge", "Tomas Reyd"}
    assert stated(level) == ["rel_0"]


def test_the_low_level_is_silent_where_nothing_is_named() -> None:
    level = low("Who invented the telescope?")
    assert found(level) == []
    assert not named(level)


def test_a_low_key_that_the_question_does_not_hold_is_linked_too() -> None:
    links = LEVELS.link("Who restored it?", ["Fenn Mill", "Fenn Mil"])
    assert [NAMES[link.entity] for link in links] == ["Fenn Mill"]


def test_the_high_level_needs_no_name() -> None:
    level = high("restored")
    assert stated(level) == ["rel_3"]
    assert named(level) == {"Fenn Mill", "Ilka Dorn"}
    assert found(level) == ["mill"]


def test_a_relation_is_found_by_its_further_keys() -> None:
    theme = "monuments"
    near = LEVELS.near("Fenn Mill", {})
    assert stated(LEVELS.high([theme], near)) == ["rel_3"]
    assert stated(LEVELS.high(["zebra"], near)) == []


def test_both_levels_together_hold_what_each_holds() -> None:
    joined = low().with_high(high("restored"))
    assert found(joined)[:2] == ["bridge", "reyd"]
    assert "mill" in found(joined)
    assert set(stated(joined)) == {"rel_0", "rel_3"}


def test_a_table_stops_at_its_tokens() -> None:
    both = low().with_high(high("restored"))
    none, short, whole = (best_rows(both, LEVELS, tokens)[0] for tokens in (0, 300, 10_000))
    assert len(none) == 1 < len(short) < len(whole) == len(named(both))


def test_every_relation_has_the_source_that_states_it() -> None:
    def stating(relation: str) -> list[Chunk]:
        return [passage(STATED[int(relation[-1])][3])]

    joined = low().with_high(high("restored"))
    entities, relations = best_rows(joined, LEVELS, 4_000)
    sources, numbers = stating_sources(relations, FACTS, stating, [source_of(passage("bridge"))])
    shown = {note.label: note.text for note in graph_notes(entities, relations, FACTS, numbers)}
    assert "| Orla Bridge | thing | Orla Bridge. |" in shown["Entities"]
    assert "| Orla Bridge | designed by | Tomas Reyd |" in shown["Relations"]
    # Stated by a passage that was not retrieved: its sentence joins as a source of its own.
    restored = next(one for one in relations if one.predicate == "restored by")
    source = sources[numbers[restored.id] - 1]
    assert (source.document, source.text) == ("mill", TEXTS["mill"][1][source.start : source.end])
    assert f"[{numbers[restored.id]}]" in shown["Relations"]


@pytest.mark.parametrize("cosine", [0.9, -0.5])
def test_nearness_counts_words_and_meaning_alike(cosine: float) -> None:
    near = LEVELS.near("zebra", {"chk_mill": cosine})
    assert near[INDEX.position["chk_mill"]] == (0.5 if cosine > 0 else 0.0)


def test_a_relation_is_found_by_the_meaning_of_its_keys_and_description() -> None:
    vectors = {"rel_3": np.array([0.0, 1.0], np.float32), "rel_0": np.array([1.0, 0.0], np.float32)}
    levels = graph(vectors)[2]
    nearly = np.array([[0.2, 0.98]], np.float32)
    near = levels.near("conservation of heritage", {})
    level = levels.high(["conservation of heritage"], near, levels.alike(nearly))
    assert stated(level) == ["rel_3"], "no word of the keys stands in it"
    assert found(level, levels) == ["mill"]
    elsewhere = levels.near("conservation of heritage", {}, ["bridge"])
    assert not stated(levels.high(["conservation"], elsewhere, levels.alike(nearly)))
    far = levels.alike(np.array([[-0.7, -0.7]], np.float32))
    assert not stated(levels.high(["conservation"], near, far))
    assert not LEVELS.has_vectors, "offline nothing has keys of a model, and nothing changes"
