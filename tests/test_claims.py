"""Claims from the sentence to the command: what is one, where it stands, whom it is about, who
reads of it.

GraphRAG 3 pays for further rounds on claims and throws their answers away; ours are read, merged
and kept.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from flows.service.reading import look_up
from prompts.engine.models import ROLES, ModelChoice, Models
from prompts.extract import (
    ALIAS_PREDICATE,
    ClaimFound,
    EntityFound,
    ExtractClaims,
    Extracted,
    ExtractWithClaims,
    RelationFound,
    extractor,
)
from prompts.tailoring import UNTAILORED
from storage.graph_records import Claim, Community
from tasks.extract import to_extraction
from tasks.report import ReportContext, ReportContextBuilder
from tests.graphs import build_graph
from tests.models.running import Place
from tests.records import chunk_of, evidence_of
from tests.server.client import Server
from tests.workspaces import write_rows

SENTENCE = "By all who know it in the town it was said to have paid\nBen Ode in 1999."
TEXT = f"The Bank of Velin is old. {SENTENCE} Nobody knows why."
CHUNK = chunk_of(TEXT, ordinal=1, start=100)


def claim_of(
    quote: str = "", description: str = "It bribed someone.", **changes: object
) -> ClaimFound:
    fields: dict[str, object] = {
        "subject": "Bank of Velin",
        "object": "Ben Ode",
        "kind": "accusation",
        "status": "suspected",
        "description": description,
        "quote": quote,
    }
    return ClaimFound.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("said to have paid Ben Ode", "said to have paid\nBen Ode"),
        ("“… SAID TO HAVE PAID Ben Ode …”", "said to have paid\nBen Ode"),
        ("it was said to have paid Ben Ode in 1999.", "it was said to have paid\nBen Ode in 1999."),
        ("it is said that money was paid to Ben Ode in 1999", SENTENCE),
    ],
)
def test_a_quote_stands_where_the_text_says_it(quote: str, words: str) -> None:
    (claim,) = to_extraction(
        CHUNK, Extracted(claims=[claim_of(quote, description="They did it.")])
    ).claims
    assert TEXT[claim.start - 100 : claim.end - 100] == words


def test_a_claim_that_no_sentence_makes_is_kept_with_an_empty_span() -> None:
    bound = to_extraction(
        CHUNK, Extracted(claims=[claim_of("It sold weapons to pirates.", since="spring 1999")])
    )
    (claim,) = bound.claims
    assert (claim.start, claim.end, claim.since, claim.until) == (100, 100, "spring 1999", None)
    assert {mention.name: mention.kind for mention in bound.mentions} == {
        "Bank of Velin": "thing",
        "Ben Ode": "thing",
    }


def test_a_claim_is_about_the_listed_form_of_a_name_and_never_about_itself() -> None:
    found = Extracted(
        entities=[EntityFound(name="Bank of Velin", kind="organisation")],
        claims=[claim_of(subject="BANK OF VELIN", object="bank of velin"), claim_of(object="none")],
    )
    bound = to_extraction(CHUNK, found)
    assert [(claim.subject, claim.object) for claim in bound.claims] == [
        ("Bank of Velin", None)
    ] * 2
    assert len(bound.mentions) == 1


CLAIM = (
    "C\tKorb Ltd\tHarbour Board\tsanction\t{status}\t2019\t\tKorb was fined.\tfined in 2019\nEND"
)
PASSAGE = "Ada Lovelace met Charles Babbage. The firm of Korb was accused of fraud in 1843."


def read(answer: str) -> Extracted:
    found = ExtractWithClaims.output_format.read(ExtractClaims, answer)["found"]
    assert isinstance(found, Extracted)
    return found


def test_a_claim_is_read_with_its_status_and_what_is_not_said_is_empty() -> None:
    (claim,) = read(CLAIM.format(status="Suspected")).claims
    assert (claim.subject, claim.status, claim.since, claim.until) == (
        "Korb Ltd",
        "suspected",
        "2019",
        "",
    )
    (bare,) = read("C\tKorb Ltd\tNONE\tsanction\tTRUE\tNone\t-\tKorb was fined.\nEND").claims
    assert (bare.object, bare.since, bare.until, bare.quote) == ("", "", "", "")


async def test_claims_missed_at_first_are_read_and_kept(model_server: Server) -> None:
    """GraphRAG 3 asks for them and never parses the answer."""
    models = Models(
        dict.fromkeys(ROLES, ModelChoice("openai/scripted", model_server.base_url, "a key"))
    )
    once = await extractor(models, 0, UNTAILORED, claims=True).run("T", PASSAGE)
    gleaned = await extractor(models, 1, UNTAILORED, claims=True).run("T", PASSAGE)
    without = await extractor(models, 1, UNTAILORED, claims=False).run("T", PASSAGE)
    await models.aclose()
    assert (once.claims, without.claims) == ([], [])
    assert [(claim.subject, claim.status, claim.since) for claim in gleaned.claims] == [
        ("Korb", "suspected", "1843")
    ]
    bound = to_extraction(chunk_of(PASSAGE, ordinal=1, start=100), gleaned)
    assert [PASSAGE[c.start - 100 : c.end - 100] for c in bound.claims] == [
        PASSAGE.partition(". ")[2]
    ]


def test_claims_follow_what_names_are_merged_into() -> None:
    texts = {
        "a": "Korb Works was fined by the Board.",
        "b": "KW is Korb Works. KW was fined twice.",
    }
    chunks = {name: chunk_of(text, name, 1) for name, text in texts.items()}
    fined = {"kind": "sanction", "status": "true"}
    found = [
        Extracted(claims=[claim_of(texts["a"], subject="Korb Works", object="Board", **fined)]),
        Extracted(
            relations=[RelationFound(source="KW", target="Korb Works", predicate=ALIAS_PREDICATE)],
            claims=[claim_of("KW was fined twice.", subject="KW", object="Korb Works", **fined)],
        ),
    ]
    graph = build_graph(
        [to_extraction(chunks[name], one) for name, one in zip("ab", found, strict=True)],
        {chunk.id: chunk for chunk in chunks.values()},
    )
    names = {entity.id: entity.name for entity in graph.entities}
    # Of the second, subject and object have become one thing.
    assert {(names[claim.subject], names.get(claim.object or "")) for claim in graph.claims} == {
        ("Korb Works", "Board"),
        ("Korb Works", None),
    }


STATED = [("a", "b", "A ties B."), ("b", "c", "B ties C.")]
CLAIMED = {"b": "B was fined.", "c": "C was sued."}


def context(limit: int = 1000, members: str = "abc") -> ReportContext:
    evidence = evidence_of(STATED, described=True)
    (chunk,) = evidence.chunks
    text = " ".join([chunk.text, *CLAIMED.values(), "Nobody did."])
    claims = tuple(
        Claim(
            id=one,
            subject=one,
            object="d",
            kind="sanction",
            status="suspected",
            since=None,
            until=None,
            description=description,
            chunk="chk",
            start=50 + text.index(CLAIMED[one]),
            end=50 + text.index(CLAIMED[one]) + len(CLAIMED[one]),
        )
        for one, description in (("b", "B had to pay."), ("c", CLAIMED["c"]))
    )
    evidence = replace(evidence, claims=claims, chunks=(replace(chunk, text=text),))
    community = Community(id="com", level=0, parent=None, members=tuple(members))
    return ReportContextBuilder(evidence, [community], limit).context(community, "m")


def test_claims_stand_before_the_first_edge_of_their_subject() -> None:
    """GraphRAG, section 2.5: for each edge the source, the target, their claims, the edge."""
    found = context()
    assert [given.text for given in found.given] == [
        "B had to pay. (suspected)",
        "A ties B.",
        "C was sued.",
        "B ties C.",
    ]
    assert found.given[0].entities == ("b",)
    assert found.places[0][0].start == 50 + len("A ties B. B ties C. ")


DOCUMENTS = [
    {
        "id": "works",
        "text": (
            "Korb Works builds bridges. Korb Works was fined by the Harbour Board on 3 May 2019."
        ),
    },
    {
        "id": "trial",
        "text": "Ben Ode accused Korb Works of bribery in 2020. The Harbour Board met Ben Ode.",
    },
]


async def test_claims_are_counted_exported_shown_and_go_with_their_document(
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
    assert accuser.claims[0].quote == DOCUMENTS[1]["text"].partition(" The")[0]
    exported = place.graph()
    assert (len(exported["claims"]), len(exported["claim_mentions"])) == (2, 2)
    assert (await place.index(write_rows(source, DOCUMENTS[:1]))).claims == 1
    assert [row["kind"] for row in place.graph()["claim_mentions"]] == ["fact"]
