"""Of two structures of the same evidence, is the one kept that supports the question better?"""

from dataclasses import replace

from prompts.engine.models import Models
from prompts.language.question import ask
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structurize import Structurize
from storage.records import RouteDecision, StructureType
from tasks.better_supported import NOTHING, better, support_of
from tasks.evidence import Place, Pool
from tasks.structurize.step import Structured, structurize

QUESTION = "How long is the Orla Bridge?"
PIECES = (
    Evidence(0, "bridge", "Orla Bridge", "Orla Bridge was designed by Tomas Reyd."),
    Evidence(1, "bridge", "Orla Bridge", "The Orla Bridge is 412 metres long."),
    Evidence(2, "reyd", "Tomas Reyd", "Tomas Reyd was born in Velin."),
)
POOL = Pool(
    PIECES, tuple(Place(document=p.document, title=p.title, chunk=p.document, start=0, end=len(p.text)) for p in PIECES)
)
RELEVANCE = Relevance(ask(QUESTION), {}, {"Orla Bridge": ()})


def made(kind: StructureType, *elements: Evidence) -> Structured:
    return Structured(kind, elements, (), POOL)


def route(first: StructureType, second: StructureType | None, margin: float = 0.05) -> RouteDecision:
    return RouteDecision(type=first, confidence=0.4, margin=margin, reason="a hunch", second=second)


CELL = replace(PIECES[1], label="Orla Bridge", attribute="long", value="412 metres")
TRIPLE = replace(PIECES[2], label="Tomas Reyd", attribute="born in", value="Velin")


def test_the_structure_that_holds_what_is_asked_is_kept_whichever_came_first() -> None:
    table, graph = made("table", CELL), made("graph", TRIPLE)
    kept, told = better(graph, table, route("graph", "table"), RELEVANCE)
    assert (kept, told.type) == (table, "graph"), "the decision stays the router's"
    assert told.kept.startswith("table kept: support ")
    kept, told = better(table, graph, route("table", "graph"), RELEVANCE)
    assert kept == table
    assert told.kept.startswith("table kept: support ")


def test_an_equal_one_does_not_take_the_first_ones_place() -> None:
    first, second = made("graph", CELL), made("table", CELL)
    assert better(first, second, route("graph", "table", margin=0.0), RELEVANCE)[0] == first


def test_the_surer_the_router_the_more_it_takes_to_overrule_it() -> None:
    table, graph = made("table", CELL), made("graph", TRIPLE)
    lead = support_of(table, RELEVANCE).score - support_of(graph, RELEVANCE).score
    assert better(graph, table, route("graph", "table", margin=lead - 0.01), RELEVANCE)[0] == table
    assert better(graph, table, route("graph", "table", margin=lead + 0.01), RELEVANCE)[0] == graph


def test_one_that_fits_no_document_gives_way() -> None:
    fell_back, table = made("chunk", *PIECES), made("table", CELL)
    kept, told = better(fell_back, table, route("algorithm", "table"), RELEVANCE)
    assert (kept, told.kept) == (table, "table kept: algorithm fits no document")
    kept, told = better(table, fell_back, route("table", "algorithm"), RELEVANCE)
    assert (kept, told.kept) == (table, "table kept: algorithm fits no document")


def test_without_a_second_choice_nothing_is_compared() -> None:
    graph, decision = made("graph", TRIPLE), route("graph", None)
    assert better(graph, made("table", CELL), decision, RELEVANCE) == (graph, decision)


def test_support_counts_words_names_a_value_and_documents() -> None:
    found = support_of(made("table", CELL), RELEVANCE)
    assert (found.names, found.value, found.documents) == (1.0, 1.0, 0.5)
    assert 0 < support_of(made("graph", TRIPLE), RELEVANCE).score < found.score <= 1
    assert support_of(made("graph"), RELEVANCE) == NOTHING


def test_the_sentence_behind_an_element_does_not_speak_for_it() -> None:
    bare = replace(PIECES[1], title="", label="A", attribute="is", value="B")
    assert support_of(made("graph", bare), RELEVANCE).words < support_of(made("chunk", PIECES[1]), RELEVANCE).words


async def test_real_structures_of_the_same_evidence_are_compared() -> None:
    builder, decision = Structurize(Models.offline()), route("algorithm", "table")
    first = await structurize(decision, POOL, RELEVANCE, builder)
    second = await structurize(decision.model_copy(update={"type": "table"}), POOL, RELEVANCE, builder)
    kept, told = better(first, second, decision, RELEVANCE)
    assert (kept.type, told.kept) == ("table", "table kept: algorithm fits no document")
    assert "412 metres" in {element.value for element in kept.elements}
