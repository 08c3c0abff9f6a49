"""Twenty pairs of names that look alike and mean two things, each as two documents say it: they stay apart."""

from dataclasses import dataclass

import pytest

from storage.graph_records import Extraction, Mention
from storage.records import Chunk
from tasks.dedupe import ResolvedGraph, build_graph


@dataclass(frozen=True)
class Said:
    """A document that names one thing in a sentence, beside others."""

    name: str
    kind: str
    sentence: str
    beside: tuple[str, ...] = ()


PAIRS: tuple[tuple[Said, Said], ...] = (
    # one name, two kinds of thing
    (
        Said("Mercury", "place", "Mercury is the smallest planet and orbits the Sun in 88 days.", ("Sun", "Venus")),
        Said("Mercury", "thing", "Mercury is a metal that is liquid at room temperature.", ("Cinnabar", "Almadén")),
    ),
    (
        Said("Paris", "place", "Paris is the capital and largest city of France.", ("France", "Seine")),
        Said("Paris", "person", "Paris was a prince of Troy who carried off Helen.", ("Troy", "Helen")),
    ),
    (
        Said("Amazon", "place", "Amazon is a river in South America that flows to the Atlantic.", ("Peru", "Manaus")),
        Said("Amazon", "organisation", "Amazon is an American company that sells books.", ("Seattle", "Jeff Bezos")),
    ),
    (
        Said("Java", "place", "Java is an island of Indonesia.", ("Indonesia", "Jakarta")),
        Said("Java", "thing", "Java is a programming language made at Sun Microsystems.", ("James Gosling",)),
    ),
    (
        Said("Jaguar", "organisation", "Jaguar is a British maker of cars in Coventry.", ("Coventry", "William Lyons")),
        Said("Jaguar", "thing", "Jaguar is a large cat native to the Americas.", ("Pantanal", "Panthera")),
    ),
    (
        Said("Ellen Thorne", "person", "Ellen Thorne was an English novelist.", ("Leeds",)),
        Said("Ellen Thorne", "work", "Ellen Thorne is a 1987 film about a mining strike.", ("Durham", "Mark Vey")),
    ),
    (
        Said("长江", "place", "长江是亚洲最长的河流，发源于青藏高原。", ("青藏高原", "上海")),
        Said("长江", "work", "长江是一本文学杂志，创刊于1957年。", ("武汉作协",)),
    ),
    # one name, one kind, two lives or two places
    (
        Said("John Harlow", "person", "John Harlow (1805–1872) was an English surveyor.", ("Kent",)),
        Said("John Harlow", "person", "John Harlow (born 1931) is an American jazz singer.", ("Detroit",)),
    ),
    (
        Said("Anna Reuter", "person", "Anna Reuter (12 May 1880 – 3 June 1951) was a German chemist.", ("Kassel",)),
        Said("Anna Reuter", "person", "Anna Reuter, born in 1974, is an Austrian rower.", ("Linz",)),
    ),
    (
        Said("李明", "person", "李明（1921年－1998年）是中国诗人。", ("杭州",)),
        Said("李明", "person", "李明（1975年出生）是中国足球运动员。", ("大连",)),
    ),
    (
        Said("Springfield", "place", "Springfield is a town in Ohio on the Mad River.", ("Ohio", "Mad River")),
        Said("Springfield", "place", "Springfield is a town in Maine with 300 people.", ("Maine", "Penobscot County")),
    ),
    (
        Said("The Crossing", "work", "The Crossing is a 1998 film directed by Ida Holm.", ("Ida Holm",)),
        Said("The Crossing", "work", "The Crossing is a 1954 novel by Peter Brandt.", ("Peter Brandt",)),
    ),
    # names that differ in what tells them apart
    (
        Said("Apollo 11", "event", "Apollo 11 landed two people on the Moon.", ("Moon", "NASA")),
        Said("Apollo 12", "event", "Apollo 12 was the second flight to land on the Moon.", ("Moon", "NASA")),
    ),
    (
        Said("Henry IV of Orlen", "person", "Henry IV of Orlen ruled from 1301.", ("Orlen", "House of Dask")),
        Said("Henry VI of Orlen", "person", "Henry VI of Orlen ruled from 1377.", ("Orlen", "House of Dask")),
    ),
    (
        Said("Edmund Vale Sr.", "person", "Edmund Vale Sr. founded the mill at Tarnow.", ("Tarnow", "Vale Mill")),
        Said("Edmund Vale Jr.", "person", "Edmund Vale Jr. sold the mill at Tarnow.", ("Tarnow", "Vale Mill")),
    ),
    (
        Said("Mr. Tarn", "person", "Mr. Tarn carved the goose.", ("Martha", "Peter")),
        Said("Mrs. Tarn", "person", "Mrs. Tarn made the gravy.", ("Martha", "Peter")),
    ),
    (
        Said("Robert Castellan", "person", "Robert Castellan led the survey of the coast.", ("Coast Survey",)),
        Said("Ruth Castellan", "person", "Ruth Castellan drew the maps of the coast.", ("Coast Survey",)),
    ),
    (
        Said("Erik Olsen", "person", "Erik Olsen was a Norwegian skier.", ("Lillehammer",)),
        Said("Erik Olson", "person", "Erik Olson was an American senator.", ("Minnesota",)),
    ),
    (
        Said("North Harbour School", "organisation", "North Harbour School has 400 pupils.", ("Hask", "Ada Korb")),
        Said("South Harbour School", "organisation", "South Harbour School has 250 pupils.", ("Hask", "Ada Korb")),
    ),
    (
        Said("Orlen Museum of Art", "organisation", "Orlen Museum of Art opened in 1911.", ("Orlen",)),
        Said("Orlen Museum of Modern Art", "organisation", "Orlen Museum of Modern Art opened in 1963.", ("Orlen",)),
    ),
)


def graph_of(*documents: Said) -> tuple[ResolvedGraph, list[str]]:
    """The graph of the documents, and for each the entity that its thing went to."""
    chunks: dict[str, Chunk] = {}
    extractions = []
    for number, said in enumerate(documents):
        chunk = Chunk(
            id=f"chk_{number}", document=f"d{number}", ordinal=0, start=0, end=999, text=said.sentence, tokens=9,
            language="en", title=f"note {number}",
        )  # fmt: skip
        named = [(said.name, said.kind, said.sentence), *((name, "thing", "") for name in said.beside)]
        mentions = tuple(
            Mention(chunk=chunk.id, name=name, kind=kind, start=place, end=place + 1, description=sentence)
            for place, (name, kind, sentence) in enumerate(named)
        )
        chunks[chunk.id] = chunk
        extractions.append(Extraction(chunk=chunk.id, mentions=mentions))
    graph = build_graph(extractions, chunks)
    where = {(place.chunk, place.start): place.item for place in graph.entity_occurrences}
    return graph, [where[f"chk_{number}", 0] for number in range(len(documents))]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a.name}/{b.name}" for a, b in PAIRS])
def test_two_things_stay_apart(first: Said, second: Said) -> None:
    """The peers merge by the exact string: homonyms mix there."""
    graph, (one, other) = graph_of(first, second)
    assert one != other
    assert graph_of(second, first)[0].entities == graph.entities


def test_there_are_twenty_pairs() -> None:
    assert len(PAIRS) == 20
