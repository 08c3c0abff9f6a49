"""Claims, from the sentence to the command: where they stand, whom they are about, who reads them.

GraphRAG 3 pays for further rounds on claims and drops their answers; ours are merged and kept.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from flows.service.reading import look_up
from prompts.engine.models import ROLES, ModelChoice, Models
from prompts.extract import ExtractClaims, ExtractWithClaims, extractor
from prompts.extracted import ALIAS_PREDICATE, ClaimFound, EntityFound, Extracted, RelationFound
from prompts.tailoring import UNTAILORED
from storage.graph_records import Claim, ClaimMention, Community
from tasks.extract import to_extraction
from tasks.report import ReportContextBuilder
from tests.graphs import build_graph
from tests.models.running import Place
from tests.records import chunk_of, evidence_of
from tests.server.client import Server
from tests.workspaces import write_rows

SENTENCE = "By all who know it in the town it was said to have paid\nBen Ode in 1999."
TEXT = f"The Bank of Velin is old. {SENTENCE} Nobody knows why."
CHUNK = chunk_of(TEXT, ordinal=1, start=100)


def claim_of(**changes: object) -> ClaimFound:
    fields: dict[str, object] = {
        "subject": "Bank of Velin",
        "object": "Ben Ode",
        "kind": "accusation",
        "status": "suspected",
        "description": "It bribed someone.",
    }
    return ClaimFound.model_validate(fields | changes)


def bound(claim: ClaimFound) -> ClaimMention:
    (mention,) = to_extraction(CHUNK, Extracted(claims=[claim])).claims
    return mention


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("said to have paid Ben Ode", "said to have paid\nBen Ode"),
        ("“… SAID TO HAVE PAID Ben Ode …”", "said to have paid\nBen Ode"),
        ("it is said that money was paid to Ben Ode in 1999", SENTENCE),
    ],
)
def test_a_quote_stands_where_the_text_says_it(quote: str, words: str) -> None:
    claim = bound(claim_of(quote=quote, description="They did it."))
    assert TEXT[claim.start - 100 : claim.end - 100] == words


def test_a_claim_that_no_sentence_makes_has_an_empty_span() -> None:
    claim = bound(claim_of(quote="It sold weapons to pirates.", since="spring 1999"))
    assert (claim.start, claim.end, claim.since, claim.until) == (100, 100, "spring 1999", None)


def test_a_claim_is_about_listed_names_and_never_about_itself() -> None:
    found = Extracted(
        entities=[EntityFound(name="Bank of Velin", kind="organisation")],
        claims=[claim_of(subject="BANK OF VELIN", object="bank of velin"), claim_of(object="none")],
    )
    extraction = to_extraction(CHUNK, found)
    ends = [(claim.subject, claim.object) for claim in extraction.claims]
    assert ends == [("Bank of Velin", None)] * 2
    assert len(extraction.mentions) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "C\tKorb Ltd\tHarbour Board\tsanction\tSuspected\t2019\t\tKorb was fined.\tin 2019",
            ("Harbour Board", "suspected", "2019", "", "in 2019"),
        ),
        (
            "C\tKorb Ltd\tNONE\tsanction\tTRUE\tNone\t-\tKorb was fined.",
            ("", "true", "", "", ""),
        ),
    ],
)
def test_a_claim_is_read_and_what_is_not_said_is_empty(line: str, expected: object) -> None:
    found = ExtractWithClaims.output_format.read(ExtractClaims, f"{line}\nEND")["found"]
    assert isinstance(found, Extracted)
    (claim,) = found.claims
    assert (claim.object, claim.status, claim.since, claim.until, claim.quote) == expected


PASSAGE = "Ada Lovelace met Charles Babbage. The firm of Korb was accused of fraud in 1843."


async def test_claims_missed_at_first_are_read_and_kept(model_server: Server) -> None:
    """GraphRAG 3 asks for them and never parses the answer."""
    models = Models(
        dict.fromkeys(ROLES, ModelChoice("openai/scripted", model_server.base_url, "a key"))
    )
    once, gleaned, without = [
        (await extractor(models, rounds, UNTAILORED, claims=claims).run("T", PASSAGE))
        for rounds, claims in ((0, True), (1, True), (1, False))
    ]
    await models.aclose()
    assert (once.claims, without.claims) == ([], [])
    (claim,) = gleaned.claims
    assert (claim.subject, claim.status, claim.since) == ("Korb", "suspected", "1843")
    (place,) = to_extraction(chunk_of(PASSAGE, ordinal=1), gleaned).claims
    assert PASSAGE[place.start : place.end] == PASSAGE.partition(". ")[2]


def test_claims_follow_what_names_are_merged_into() -> None:
    one, two = "Korb Works was fined by the Board.", "KW is Korb Works. KW was fined twice."
    chunks = [chunk_of(one, "a", 1), chunk_of(two, "b", 1)]
    found = [
        Extracted(claims=[claim_of(quote=one, subject="Korb Works", object="Board")]),
        Extracted(
            relations=[RelationFound(source="KW", target="Korb Works", predicate=ALIAS_PREDICATE)],
            claims=[claim_of(quote="KW was fined twice.", subject="KW", object="Korb Works")],
        ),
    ]
    graph = build_graph(
        [to_extraction(chunk, said) for chunk, said in zip(chunks, found, strict=True)],
        {chunk.id: chunk for chunk in chunks},
    )
    names = {entity.id: entity.name for entity in graph.entities}
    # In the second claim, subject and object have become one thing.
    assert {(names[claim.subject], names.get(claim.object or "")) for claim in graph.claims} == {
        ("Korb Works", "Board"),
        ("Korb Works", None),
    }


def test_claims_stand_before_the_first_edge_of_their_subject() -> None:
    """GraphRAG, section 2.5: for each edge the source, the target, their claims, the edge."""
    evidence = evidence_of([("a", "b", "A ties B."), ("b", "c", "B ties C.")], described=True)
    (chunk,) = evidence.chunks
    said = {"b": "B was fined.", "c": "C was sued."}
    text = " ".join([chunk.text, *said.values(), "Nobody did."])
    claims = tuple(
        Claim(
            id=name,
            subject=name,
            object="d",
            kind="sanction",
            status="suspected",
            since=None,
            until=None,
            description=description,
            chunk="chk",
            start=50 + text.index(said[name]),
            end=50 + text.index(said[name]) + len(said[name]),
        )
        for name, description in (("b", "B had to pay."), ("c", said["c"]))
    )
    evidence = replace(evidence, claims=claims, chunks=(replace(chunk, text=text),))
    community = Community(id="com", level=0, parent=None, members=("a", "b", "c"))
    found = ReportContextBuilder(evidence, [community], 1000).context(community, "m")
    assert [given.text for given in found.given] == [
        "B had to pay. (suspected)",
        "A ties B.",
        "C was sued.",
        "B ties C.",
    ]
    assert found.given[0].entities == ("b",)
    assert found.places[0][0].start == 50 + len("A ties B. B ties C. ")


FINED = "Korb Works builds bridges. Korb Works was fined by the Harbour Board on 3 May 2019."
ACCUSED = "Ben Ode accused Korb Works of bribery in 2020."
DOCUMENTS = [
    {"id": "works", "text": FINED},
    {"id": "trial", "text": f"{ACCUSED} The Harbour Board met Ben Ode."},
]


async def test_claims_are_shown_exported_and_removed_with_their_text(
    tmp_path: Path, model_server: Server
) -> None:
    place = Place(tmp_path / "ws", model_server, {"claims": True})
    source = write_rows(tmp_path / "docs.jsonl", DOCUMENTS)
    assert (await place.index(source)).claims == 2
    with place.runtime().workspace.read() as generation:
        (view,) = look_up("Korb Works", generation).entities
        (accuser,) = look_up("Ben Ode", generation).entities
        assert generation.meta.counts()["claims"] == 2
    assert [
        (one.kind, one.status, one.period, one.object, one.document) for one in view.claims
    ] == [
        ("fact", "true", "2019", "Harbour Board", "works"),
        ("fact", "suspected", "2020", "Korb Works", "trial"),
    ]
    assert accuser.claims[0].quote == ACCUSED
    exported = place.graph()
    assert (len(exported["claims"]), len(exported["claim_mentions"])) == (2, 2)
    assert (await place.index(write_rows(source, DOCUMENTS[:1]))).claims == 1
    assert [row["kind"] for row in place.graph()["claim_mentions"]] == ["fact"]
