"""Each prompt as its model reads it, beside what is filled into it (golden/prompts.json).

An instruction file that several prompts share stands in full in the golden file of one of them; the others have
`{its name}` in its place, so that a changed instruction is one changed golden file.
"""

import json
import re
from pathlib import Path

import pytest

from prompts.engine.models import Models
from prompts.engine.output_formats import unwrapped
from prompts.engine.step import Step, instruction
from prompts.registry import steps
from prompts.structurize import Structurize
from prompts.tailored_step import TailoredStep
from prompts.tailoring import UNTAILORED, Tailoring

INSTRUCTIONS = Path(__file__).parent.parent / "prompts" / "instructions"
GOLDEN = Path(__file__).parent / "golden"
SHOWN = json.loads((GOLDEN / "prompts.json").read_text(encoding="utf-8"))
BUILT = [step(Models.offline()) for kinds in steps().values() for step in kinds if step is not Structurize]
BUILT += [Structurize(Models.offline(), structure) for structure in Structurize.forms]
# Each shared instruction file, with the signature whose golden file holds it in full.
IN_FULL = {
    "extract": "ExtractGraph",
    "extract_entities": "ExtractGraph",
    "extract_relations": "ExtractGraph",
    "extract_hard": "ExtractGraph",
    "extract_claims": "ExtractClaims",
    "glean": "GleanGraph",
}


def rendered(step: Step, tailoring: Tailoring = UNTAILORED) -> str:
    """The prompt as a model reads it; an instruction that another golden file holds as `{its name}`, and what a
    tailored step makes of it as `{its name in German}`."""
    messages = step.module.messages(SHOWN[name_of(step)])
    text = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    for name in sorted(path.stem for path in INSTRUCTIONS.glob("*.md")):
        words = unwrapped(instruction(name))
        if isinstance(step, TailoredStep) and tailoring.language and step.own_language in words:
            in_language = words.replace(step.own_language, tailoring.language)
            text = text.replace(in_language, f"{{{name} in {tailoring.language}}}")
        if tailoring != UNTAILORED or IN_FULL.get(name, name_of(step)) != name_of(step):
            text = text.replace(words, f"{{{name}}}")
    return text


def name_of(step: Step) -> str:
    """The name of a prompt's signature: those of the structures are forms of one step."""
    task = Structurize.forms[step.structure] if isinstance(step, Structurize) else step.task
    return task.__name__


@pytest.mark.parametrize("step", BUILT, ids=name_of)
def test_a_prompt_has_an_example_in_english_and_one_in_chinese(step: Step) -> None:
    told = step.module.prompt[0].content
    assert re.search(r"Example|Two findings as they should be", told)
    assert re.search(r"[\u4e00-\u9fff]{4}", told)


@pytest.mark.parametrize("step", BUILT, ids=name_of)
def test_a_prompt_reads_like_the_golden_one(step: Step) -> None:
    assert rendered(step) == (GOLDEN / f"prompt_{name_of(step)}.txt").read_text(encoding="utf-8")
