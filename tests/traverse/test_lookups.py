"""Without a model only what an imported triple says word for word is supported."""

from collections.abc import Iterator

import pytest

from flows.session import Session, open_session
from tests.workspaces import asked, indexed, opened

TRIPLES = (
    ("Ilse Marrand", "designed", "Teal Bridge"),
    ("Ilse Marrand", "designed", "Ovane Bridge"),
    ("Tobias Wren", "designed", "Hask Lock"),
    ("Tobias Wren", "taught", "Ilse Marrand"),
    ("Ilse Marrand", "place of birth", "Dunmarrow"),
    ("Teal Bridge", "owner", "Hask County"),
    ("陆明远", "设计", "石门大桥"),
)
SAID = {
    "What did Ilse Marrand design?": {"Teal Bridge", "Ovane Bridge"},
    "Which bridge did Ilse Marrand design?": {"Teal Bridge", "Ovane Bridge"},
    "Who designed the Teal Bridge?": {"Ilse Marrand"},
    "Who was the Teal Bridge designed by?": {"Ilse Marrand"},
    "What is the place of birth of Ilse Marrand?": {"Dunmarrow"},
    "Who is the owner of the Teal Bridge?": {"Hask County"},
    "石门大桥是谁设计的？": {"陆明远"},
}
READ_INTO = (
    "Who taught Tobias Wren?",  # he taught, nobody is said to have taught him
    "What did Ilse Marrand not design?",
    "Which bridges other than the Teal Bridge did Ilse Marrand design?",
    "Which locks did Ilse Marrand design?",
    "What did Ilse Marrand design before 1950?",
    "How many bridges did Ilse Marrand design?",
    "Who designed the Teal Bridge and who owns it?",
    "What did Ilse Marrand and Tobias Wren design?",
    "When was the Teal Bridge designed?",
    "Did Ilse Marrand design the Hask Lock?",
    "石门大桥不是谁设计的？",
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    rows = [dict(zip("spo", triple, strict=True)) for triple in TRIPLES]
    with open_session(opened(indexed(tmp_path_factory.mktemp("triples"), rows))) as session:
        yield session


@pytest.mark.parametrize("question", SAID)
async def test_a_triple_says_it_word_for_word(question: str, session: Session) -> None:
    answer = await asked(question, session)
    assert (answer.trace.mode, answer.fallback) == ("traverse", "none")
    assert set(answer.values) == SAID[question]
    assert all(citation.verified for citation in answer.citations)


@pytest.mark.parametrize("mode", ["auto", "traverse"])
@pytest.mark.parametrize("question", READ_INTO)
async def test_what_is_read_into_a_triple_is_not_supported(
    question: str, mode: str, session: Session
) -> None:
    answer = await asked(question, session, mode=mode)
    assert answer.fallback != "none"
    assert all(row.supported is None for row in answer.grounding)
