"""Questions that ask several things, one after another: "Which depot burned most diesel, and how do we switch …?".

A part may point back by a pronoun ("and who owns it?"): whoever asks the parts fills that in from those before
(`prompts.offline.rewrite`).
"""

import re

from prompts.text.regex import regex
from prompts.text.words import is_han

_WORD = r"(?:how|which|what|who|whom|whose|when|where|why)\b"
_TELL = (
    r"(?:list|name|compare|explain|describe|outline|give|tell|show|summari[sz]e|rank|trace|plan|draft)\b|"
    r"[请再给]*(?:总结|概括|列|介绍|说明|比较|对比|梳理|统计|解释|描述|整理|分析|说)"
)
_ASKS = regex(rf"\b{_WORD}|^(?:please )?(?:{_TELL})|哪|谁|什么|多少|几|如何|怎|为何|何时|是否|吗$", re.I)
_LEAD = r"(?:please|also|then|next|in addition|finally|另外|此外|同时|以及|还有|并且|并|再|又|然后|最后)"
_JOIN = regex(
    rf" ?[;；?？。!！.] ?(?:and )?|，|,? (?:and|then|but|plus|as well as) (?:{_LEAD},? ){{0,4}}"
    rf"(?=(?:(?:in|at|on|for|from|to|by|with) )?{_WORD}|if|{_TELL})",
    re.I,
)
_LEADING = regex(rf"^(?:{_LEAD}[，,、]?\s*)+", re.I)


def parts_in(question: str) -> list[str]:
    """The parts of a question that can be asked one by one, in order, each with its own question word or request; a
    question that is one comes back alone."""
    parts: list[str] = []
    for clause in _JOIN.split(" ".join(question.split())):
        bare = _LEADING.sub("", clause.strip(" ,，"))
        if parts and not _ASKS.search(parts[-1]):  # a scene: "If the dam leaks, …"
            parts[-1] = f"{parts[-1]}，{bare}"
        elif bare:
            parts.append(bare)
    shortest = 6 if is_han(question) else 12  # signs
    if len(parts) < 2 or any(len(part) < shortest or not _ASKS.search(part) for part in parts):
        return [question]
    return [f"{part[0].upper()}{part[1:]}{'？' if is_han(part) else '?'}" for part in parts]
