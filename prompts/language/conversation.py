"""What does a question ask on its own, after a conversation? Pronouns, "that bridge" and half questions filled in."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language.ellipsis import is_part, whole
from prompts.language.mentions import Turn, turn_of
from prompts.language.refer import Resolved, resolve
from prompts.language.refer_time import in_year
from prompts.language.refer_zh import is_part_zh, resolve_zh, whole_zh
from prompts.language.words import HAN_RUN, is_han

READ = 16  # the last turns of a history; what was said before is no antecedent


@dataclass(frozen=True, slots=True)
class Standing:
    """A question that stands on its own. `several`: what could stand for others as well, with all of them, the chosen
    one first; `missing`: what stands for something that nobody has named."""

    text: str
    several: tuple[tuple[str, tuple[str, ...]], ...] = ()
    missing: tuple[str, ...] = ()


def stand_alone(question: str, history: Sequence[str]) -> Standing:
    """A question with what it means by the conversation; one that stands on its own comes back as it is.

    `history` holds earlier questions and answers, oldest first; its questions are read in the light of those before.
    """
    text = " ".join(question.split())
    turns: list[Turn] = []
    for said in history[-READ:]:
        folded = " ".join(said.split())
        turn = turn_of(folded, turns)
        turns.append(turn_of(_stood(folded, turns).text, turns) if turn.is_question and turns else turn)
    found = _stood(text, turns)
    missing = list(found.missing)
    if not turns and (is_part_zh(text) if is_han(text) else is_part(text)):
        missing.append(text)
    return Standing(found.text, tuple(found.several.items()), tuple(missing))


def _stood(text: str, turns: Sequence[Turn]) -> Resolved:
    chinese = is_han(text) or (not any(c.isalpha() for c in text) and _last_is_chinese(turns))
    if chinese:
        return resolve_zh(in_year(whole_zh(text, turns), turns), turns)
    return resolve(in_year(whole(text, turns), turns), turns)


def _last_is_chinese(turns: Sequence[Turn]) -> bool:
    return bool(turns) and HAN_RUN.search(turns[-1].text) is not None
