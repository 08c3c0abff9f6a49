"""Passages to judge, without an index: each text is a passage of its own document."""

from prompts.language.question import ask
from prompts.reading.conflict import Conflict, Told, conflicts
from prompts.reading.entail import Candidate
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Chunk, Passage
from tasks.evidence import Pool, pool_of


def relevance_of(question: str, *names: str) -> Relevance:
    """The judge of a question of which the graph knows these names."""
    return Relevance(ask(question), {}, dict.fromkeys(names, ()))


def candidates_of(*texts: str, together: tuple[float, ...] = ()) -> list[Candidate]:
    """Passages of one sentence each; `together` are their shares in the graph, if it says any."""
    shares: tuple[float | None, ...] = together or (None,) * len(texts)
    return [
        Candidate((Evidence(place, f"d{place}", "", text),), text, "", share)
        for place, (text, share) in enumerate(zip(texts, shares, strict=True))
    ]


def conflicts_of(
    relevance: Relevance, *texts: str, titles: tuple[str, ...] = (), trusted: tuple[int, ...] = (), single: bool = False
) -> list[Conflict]:
    """What is in conflict among texts, in documents of these titles."""
    told = [
        Told(place, title, text, (Evidence(place, f"d{place}", title, text),))
        for place, (text, title) in enumerate(zip(texts, titles or ("",) * len(texts), strict=True))
    ]
    return conflicts(relevance, told, trusted, single)


def retrieved(*texts: str) -> tuple[list[Passage], Pool]:
    """Passages with the pool of their units."""
    chunks = [
        Chunk(
            id=f"chk_{place}", document=f"d{place}", ordinal=0, start=0, end=len(text), text=text, tokens=9,
            language="en", title="",
        )
        for place, text in enumerate(texts)
    ]  # fmt: skip
    passages = [
        Passage(document=chunk.document, title="", chunk=chunk.id, score=1 / (place + 1), text=chunk.text)
        for place, chunk in enumerate(chunks)
    ]
    return passages, pool_of(chunks)
