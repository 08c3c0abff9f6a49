"""Questions that ask several things, one after another: "Which depot burned most diesel, and how do we switch …?".

A question is cut at the ends of sentences, and where a conjunction or a comma stands before a question word or a
request; every part must ask for something. A part may point back by a pronoun ("and who owns it?"): whoever asks the
parts fills that in from those before (`prompts.offline.rewrite`).
"""

import re

from prompts.text.words import is_han

_ASKING = (
    r"(?:(?:(?:in|at|on|for|from|to|by|with|through|until|since|of) )?(?:how|which|what|whom|whose|when|where)|who|why|"
    r"is|are|was|were|do|does|did|has|have|can|could|should|will|would|must)"
)
_TELLING = (
    r"(?:summari[sz]e|list|rank|name|compare|contrast|explain|describe|outline|give|tell|show|trace|plan|draw|draft|find|"
    r"count|sort|classify|recap|work out|write|state|calculate|suggest|prepare|sketch|review|provide|analy[sz]e|"
    r"evaluate|determine|recommend|say|retell|walk me)"
)
_LEAD = (
    r"(?:(?:please|also|then|next|second(?:ly)?|besides(?: that)?|in addition|additionally|furthermore|moreover|"
    r"meanwhile|finally|lastly|(?:i|we)(?:'d| would)?(?: also)? (?:like|want|need)(?: to know| to see)?|"
    r"(?:can|could|would) you(?: please)?(?= [a-z]+ (?:me|us|how|which|what|who|the|an?)\b)),? )*"
)
_SCENE = r"(?:(?:if|when|once|in case|for|in|at|after|before|during|according to|based on) [^,;.?]{3,60}, )?"
_REQUEST = re.compile(rf"{_LEAD}{_SCENE}(?:{_ASKING}|{_TELLING})\b", re.I)
_TELLS = re.compile(rf"{_LEAD}{_SCENE}{_TELLING}\b", re.I)
_JOINS = re.compile(
    rf"(?:\s*[;?.!]\s+(?:and |also,? )?|\s+[–—]\s+(?:and )?|"
    rf",?\s+(?:and|but|then|while|as well as|plus)(?: also)?,?\s+)(?={_REQUEST.pattern})",
    re.I,
)
_LEADING = re.compile(f"^{_LEAD}", re.I)
_INSIDE = re.compile(r"\b(?:how|which|what|who|whom|whose|when|where|why)\b", re.I)
# What goes on with the part before it instead of asking something of its own.
_BACK = re.compile(
    r"\b(?:instead|thereby)\b|^which (?:is|was|has|had|are|were|one|of them)\b|^(?:by )?how much\W*$", re.I
)
_SHORTEST = 3  # words

_ASKING_ZH = re.compile(
    r"哪|还是|谁|什么|多少|几[个天年点名家位座次]|多[长高大宽深远重久]|如何|怎么|怎样|为何|何时|何地|是否|是不是|有没有|吗$"
)
_TELLING_ZH = re.compile(
    r"^(?:请|再|帮我|给我)*(?:说说|总结|概括|概述|归纳|列出|列举|介绍|说明|比较|对比|制定|规划|梳理|统计|给出|解释|描述|整理|告诉|分析|"
    r"找出|推荐|评估|简述|汇总|拟|查|(?:为|就|根据|按照?|结合|用|给|对|围绕|把|将)[^，。]{1,16}(?:排|总结|列出|介绍|说明|写|整理|"
    r"评估|分析|比较|制定))"
)
_LEADING_ZH = re.compile(
    r"^(?:(?:另外|此外|同时|以及|还有|并且|而且|其次|然后|最后|请问|一是|二是|首先|并|又|也|再(?=[请说告比概]))[，,、]?)+"
)
_JOINS_ZH = re.compile(r"[；;?？。！]\s*|[,，]\s*|(?<=[^，,；;?？。])(?=以及|并且|另外|此外|还有)")
_BACK_ZH = re.compile(
    r"^先|^再(?![请说告比概])|^各自|^分别|^每[类种个项]的|^哪(?:一)?[个家种位者些](?:最|更|高于|低于|超过|比)|^还要"
)
_SHORTEST_ZH = 6  # characters


def parts_in(question: str) -> list[str]:
    """The parts of a question that can be asked one by one, in order; a question that is one comes back alone.

    Each part has its own question word or its own request.
    """
    text = " ".join(question.split())
    return (_parts_zh(text) if is_han(text) else _parts_en(text)) or [question]


def _parts_en(text: str) -> list[str]:
    parts = [_LEADING.sub("", piece.strip(" ,;.?!"), count=1) for piece in _JOINS.split(text)]
    if len(parts) < 2 or any(len(part.split()) < _SHORTEST for part in parts) or any(map(_BACK.search, parts[1:])):
        return []
    if not all(_REQUEST.match(part) or _INSIDE.search(part) for part in parts):
        return []
    return [f"{part[:1].upper()}{part[1:]}{'.' if _TELLS.match(part) else '?'}" for part in parts]


def _parts_zh(text: str) -> list[str]:
    """A clause that asks nothing sets the scene of the next part; one that goes on belongs to the part before it."""
    parts: list[str] = []
    scene = ""
    for clause in _JOINS_ZH.split(text):
        bare = _LEADING_ZH.sub("", clause.strip())
        if not bare:
            continue
        if _BACK_ZH.search(bare) and parts:
            parts[-1] += f"，{clause.strip()}"
        elif _ASKING_ZH.search(bare) or _TELLING_ZH.match(bare):
            parts.append(f"{scene}{bare}")
            scene = ""
        else:
            scene += f"{bare}，"
    if scene or len(parts) < 2 or any(len(part) < _SHORTEST_ZH for part in parts):
        return []
    return [f"{part}{'？' if _ASKING_ZH.search(part) else '。'}" for part in parts]
