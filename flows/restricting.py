"""Which documents may a question look into? Those that the caller names and that meet the filters."""

from dataclasses import replace

from flows.asking_view import AskOptions
from flows.session import Session
from storage.errors import NothingMatches


def restricted(options: AskOptions, session: Session) -> AskOptions:
    """The options with `where` and `documents` as one set of documents, each of which exists; None stays all.

    Raises UnknownDocument, FilterError, or NothingMatches: what leaves nothing is never taken for everything.
    """
    documents = options.documents
    strange = [name for name in documents or () if name not in session.index.documents]
    if strange:
        session.generation.documents.documents(strange)
    for expression in options.where:
        meeting = session.generation.filters.matching(expression)
        documents = tuple(meeting) if documents is None else tuple(sorted(set(meeting) & set(documents)))
        if not documents:
            raise NothingMatches(expression, of=" of those that the question is restricted to")
    return replace(options, documents=documents)
