"""What is each part of the search worth? The same questions with one part left out.

Two measures: which passages are found, and, where the answers are known, whether the answer stands in what a mode lays
before the answering step. The second is LightRAG's ablation (arXiv 2410.05779) without a model.
"""

import re
from collections.abc import Iterator, Sequence

from benchmarks.questions import Question
from flows.asking_view import AskOptions, View
from flows.by_levels import LEVELS as MODES_OF_LEVELS
from flows.by_levels import levels_of
from flows.session import Session
from prompts.answer import EVIDENCE_TOKENS
from prompts.engine.models import Models
from prompts.language.tokens import count_tokens
from prompts.language.words import fold
from storage.records import Mode, Passage, Record
from tasks.retrieve.levels import Found
from tasks.retrieve.switches import Switches
from tasks.retrieve.tables import Shares, best_rows, entity_row, relation_row
from tasks.route import depth

WITHOUT: dict[str, Switches] = {
    "-words": Switches(words=False),
    "-meaning": Switches(meaning=False),
    "-PageRank": Switches(walk=False),
    "-bridges": Switches(bridges=False),
    "-sets": Switches(sets=False),
}
# LightRAG's levels, each by itself and both, without the search by words and walk.
LEVELS: dict[str, Mode] = {"-High": "low", "-Low": "high", "hybrid": "hybrid"}
# Rows of the second measure: the modes, and whether the texts of the passages are left out.
CONTEXTS: dict[str, tuple[Mode, bool]] = {
    "auto": ("auto", False),
    "naive": ("naive", False),
    "mix": ("mix", False),
    "hybrid": ("hybrid", False),
    "-High": ("low", False),
    "-Low": ("high", False),
    "-Origin": ("hybrid", True),
}
# Without texts the tables have all the room, shared as they share theirs beside texts.
ALONE = Shares(entities=EVIDENCE_TOKENS * 2 // 5, relations=EVIDENCE_TOKENS * 3 // 5)
_WORD = re.compile(r"\w+")


class Standing(Record):
    """For each context the share of the questions whose answer stands in it."""

    questions: int
    shares: dict[str, float]

    def lines(self) -> list[str]:
        return [
            f"  the answer stands in the context ({self.questions} questions, {EVIDENCE_TOKENS} tokens)",
            *(f"    {name:9}{share:.3f}" for name, share in self.shares.items()),
        ]


async def standing(questions: Sequence[Question], session: Session) -> Standing:
    """How often the answer stands in each context. Questions that hold an answer themselves, as one to choose from, and
    those of yes or no are left out."""
    asked = [question for question in questions if _tells(question)]
    found = dict.fromkeys(CONTEXTS, 0)
    for question in asked:
        for name, (mode, tables_alone) in CONTEXTS.items():
            found[name] += stands(question.answers, await context(question.text, mode, session, tables_alone))
    return Standing(
        questions=len(asked), shares={name: round(count / max(len(asked), 1), 4) for name, count in found.items()}
    )


async def context(question: str, mode: Mode, session: Session, tables_alone: bool = False) -> str:
    """What a mode lays before the answering step, in EVIDENCE_TOKENS: its tables, and in the room that they leave the
    sentences of its passages that are nearest to the question."""
    view = View(session, AskOptions(mode=mode), question, session.runtime.embedder)
    k = depth(view.taken, view.options.k)
    if mode in MODES_OF_LEVELS:
        levelled = await levels_of(view, [question], Models.offline(), k)
        rows, passages = _rows(levelled.found, session, ALONE if tables_alone else Shares()), levelled.passages
    else:
        rows, passages = [], await view.search([question], k)
    texts = [] if tables_alone else _texts(view, passages)
    return "\n".join(_within([*rows, *texts], EVIDENCE_TOKENS))


def stands(answers: Sequence[str], text: str) -> bool:
    """Whether one of the answers stands in a text, word for word; case, accents and punctuation do not count."""
    within = _plain(text)
    return any(_plain(answer) in within for answer in answers)


def _plain(text: str) -> str:
    words = " ".join(_WORD.findall(fold(text)))
    return f" {words} "


def _tells(question: Question) -> bool:
    yes_or_no = {"yes", "no"} & {answer.lower() for answer in question.answers}
    return bool(question.answers) and not yes_or_no and not stands(question.answers, question.text)


def _rows(found: Found, session: Session, shares: Shares) -> list[str]:
    entities, relations = best_rows(found, session.index.entities, session.facts, shares)
    return [*map(entity_row, entities), *(relation_row(relation, session.facts) for relation in relations)]


def _texts(view: View, passages: Sequence[Passage]) -> list[str]:
    ranked = sorted(view.pool(passages).evidence, key=lambda piece: (-view.relevance.judge(piece).score, piece.number))
    return [f"{piece.title}: {piece.text}" for piece in ranked]


def _within(lines: Sequence[str], room: int) -> Iterator[str]:
    for line, tokens in zip(lines, count_tokens([f"{line}\n" for line in lines]), strict=True):
        room -= tokens
        if room < 0:
            return
        yield line
