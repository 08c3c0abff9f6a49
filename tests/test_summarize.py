"""Descriptions of entities: definitions first, one statement kept as it is, nothing invented."""

from dataclasses import replace

from prompts.engine.models import Models
from prompts.summarize import (
    MAX_LENGTH,
    MAX_SENTENCES,
    MOST_JOINED,
    MOST_JOINED_TOKENS,
    DescribeRelations,
    Summarize,
    summarize_offline,
)
from prompts.text.tokens import count_tokens
from storage.graph_records import Entity, Relation
from tasks.resolve.assemble import ResolvedGraph
from tasks.summarize import STATEMENTS_TOKENS, Known, summarize
from tests.query.steps import scripted, sent


def graph_of(**evidence: tuple[str, ...]) -> ResolvedGraph:
    entities = tuple(Entity(id=name, name=name, kind="thing") for name in sorted(evidence))
    return ResolvedGraph(
        entities=entities, aliases=(), entity_occurrences=(), relations=(), relation_occurrences=(), evidence=evidence
    )


def test_the_sentence_that_defines_comes_first() -> None:
    said = ("Ada met the Orla Bridge crew.", "Orla Bridge opened in 1931.", "# Orla Bridge is an arch bridge.")
    assert summarize_offline("Orla Bridge", said) == f"{said[2]} {said[1]} {said[0]}"
    assert summarize_offline("奥拉桥", ("人们喜欢奥拉桥。", "奥拉桥是一座拱桥。")).startswith("奥拉桥是")


def test_a_heading_that_is_the_name_alone_says_nothing() -> None:
    said = ("# Ada Wren", "Ada Wren left the firm in 2018.")
    assert summarize_offline("Ada Wren (engineer)", said) == said[1]
    assert summarize_offline("Ada Wren", said[:1]) == said[0], "where nothing else is said it stays"


def test_it_stays_short_and_never_empty() -> None:
    long = "x" * (MAX_LENGTH + 1)
    assert summarize_offline("A", (long, "A is.")) == "A is."
    assert summarize_offline("B", (long,)) == long
    assert summarize_offline("C", tuple(f"s{n}." for n in range(9))).count(".") == MAX_SENTENCES


async def test_one_statement_is_kept_and_none_stays_empty() -> None:
    found = (
        await summarize(graph_of(a=("One.",), b=(), c=("Two.", "c is three.")), Summarize(Models.offline()))
    ).graph.entities
    assert [entity.description for entity in found] == ["One.", "", "c is three. Two."]


async def test_a_model_is_asked_only_where_there_is_something_to_summarise() -> None:
    summarizer = scripted(Summarize, "All.", "Long.")
    many = tuple(f"Statement {number}." for number in range(MOST_JOINED + 1))
    long = ("First " + "word " * MOST_JOINED_TOKENS, "Second.")
    graph = graph_of(a=("One.",), b=("Two.", "b is three."), c=many, d=long, e=())
    found = (await summarize(graph, summarizer)).graph.entities
    assert [entity.description for entity in found] == ["One.", "b is three. Two.", "All.", "Long.", ""]
    assert len(sent(summarizer)) == 2


async def test_more_statements_than_fit_are_summarised_in_groups_and_the_summaries_again() -> None:
    summarizer = scripted(Summarize, *(f"Part {n}." for n in range(20)))
    said = tuple(f"Statement {n} says " + "so much more " * 100 for n in range(30))
    (found,) = (await summarize(graph_of(a=said), summarizer)).graph.entities
    *parts, last = asked = sent(summarizer)
    assert 1 < len(parts) < 20
    assert all(count <= 1.1 * STATEMENTS_TOKENS for count in count_tokens(asked))
    assert all(sum(f"Statement {n} says" in text for text in parts) == 1 for n in range(30))
    assert all(f"Part {n}." in last for n in range(len(parts)))
    assert found.description == f"Part {len(parts)}."


# --- relations -------------------------------------------------------------------------------------------------------

LONG = "a long statement " * 40


def tied(*statements: tuple[str, ...], keys: tuple[str, ...] = ()) -> ResolvedGraph:
    """One relation for each group of statements."""
    relations = tuple(
        Relation(id=f"rel_{n}", source="a", target="b", predicate=f"p{n}", description=min(said, key=len), keys=keys)
        for n, said in enumerate(statements)
    )
    several = {f"rel_{n}": said for n, said in enumerate(statements) if len(said) > 1}
    return replace(graph_of(a=("A.",), b=("B.",)), relations=relations, statements=several)


def relating(*answers: list[dict[str, object]]) -> DescribeRelations:
    return scripted(DescribeRelations, *({"relations": answer} for answer in answers))


def described(number: int, text: str, *keys: str) -> dict[str, object]:
    return {"relation": number, "description": text, "keys": list(keys)}


async def test_relations_with_much_to_say_are_described_together_with_their_keys() -> None:
    relater = relating([described(1, "In other words, B.", "k"), described(0, "In other words, A.", "x", "y")])
    graph = tied(
        (f"One. {LONG}", "Two."), ("Only this.",), (f"Three. {LONG}", "Four."), ("Short.", "Brief."), keys=("e",)
    )
    found = (await summarize(graph, Summarize(Models.offline()), relater)).graph.relations
    assert len(sent(relater)) == 1
    assert [one.description for one in found] == [
        "In other words, A.", "Only this.", "In other words, B.", "Short. Brief.",
    ]  # fmt: skip
    assert [one.keys for one in found] == [("x", "y"), ("e",), ("k",), ("e",)]


async def test_what_a_model_has_described_is_not_asked_again_until_its_prompt_or_the_statements_change() -> None:
    relater = relating([described(0, "As told.", "k")], [described(0, "Anew.", "k")])
    graph = tied((f"One. {LONG}", "Two."))
    first = await summarize(graph, Summarize(Models.offline()), relater)
    known = {"rel_0": Known(inputs=first.inputs["rel_0"], text="As told.", keys=("k",))}
    again = await summarize(graph, Summarize(Models.offline()), relater, known)
    assert (again.graph, again.inputs) == (first.graph, first.inputs)
    assert len(sent(relater)) == 1
    more = tied((f"One. {LONG}", "Two.", "Three."))
    assert (await summarize(more, Summarize(Models.offline()), relater, known)).graph.relations[
        0
    ].description == "Anew."


async def test_offline_a_relation_keeps_its_statement() -> None:
    graph = tied((f"One. {LONG}", "Two."))
    found = await summarize(graph, Summarize(Models.offline()), DescribeRelations(Models.offline()))
    assert (list(found.graph.relations), found.inputs) == (list(graph.relations), {})


async def test_a_relation_that_a_model_leaves_out_keeps_all_its_statements() -> None:
    relater = relating([described(1, "B.", "k")], [described(1, "B.", "k")])  # told once what is missing
    found = (
        await summarize(tied((LONG, "Two."), (LONG, "Four.")), Summarize(Models.offline()), relater)
    ).graph.relations
    assert [one.description for one in found] == [f"{LONG} Two.", "B."]
