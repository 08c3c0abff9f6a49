"""Does a question ask several things, one after another? "Which depot burned most diesel, and how do we switch …?"

A part may point back by a pronoun ("and who owns it?"); whoever asks the parts fills that in from those before
(`prompts.language.conversation`). What is a mere clause, or goes on where the other stopped, is no part.
"""

import re

from prompts.language.words import is_han

# --- English ---------------------------------------------------------------------------------------------------------
_PREPOSITION = r"in|at|on|for|from|to|by|with|through|under|until|since|of|into|after|before|about|via|within"
_ASKING = (
    rf"(?:(?:(?:{_PREPOSITION}) )?(?:how|which|what|whom|whose|when|where)|who|why|is|are|was|were|do|does|did|has|"
    rf"have|"
    r"can|could|should|will|would|must)"
)
_TELLING = (
    r"(?:summari[sz]e|list|rank|name|compare|contrast|explain|describe|outline|give|tell|show|trace|plan|draw|draft|"
    r"sum up|find|count|sort|classify|group|walk me|recap|condense|set out|work out|write|state|identify|calculate|"
    r"compute|suggest|prepare|say|retell|sketch|specify|present|review|provide|analy[sz]e|evaluate|determine|design|"
    r"create|propose|recommend|map|extract|order|arrange|discuss|tabulate|add up|make|help)"
)
_LEAD = (
    r"(?:(?:please|also|then|next|secondly|second|separately|"
    r"besides(?: that| this)?|aside from that|on top of that|in addition|additionally|further(?:more)?|"
    r"moreover|"
    r"meanwhile|finally|lastly|likewise|apart from that|on another note|by the way|at the same time|after that|"
    r"(?:i|we)(?:'d| would)?(?: also)? (?:like|want|need)(?: you)?(?: to know| to understand| to see| to)?|"
    r"(?:can|could|would) you (?:also |please )*(?=[a-z]+ (?:me|us|how|which|what|who|the|an?)\b)),? )*"
)
# A clause that sets the scene may stand before what a part asks: "…, and if a bus stalls, what should the driver do?"
_SCENE = (
    r"(?:(?:if|when|once|in case|for|in|on|at|after|before|during|according to|based on|among|of) [^,;.?]{3,60}, )?"
)
_AHEAD = rf"(?={_LEAD}{_SCENE}(?:{_ASKING}|{_TELLING})\b)"
# What may stand between parts, the strongest first: "A, and B and C" is A and "B and C".
_BETWEEN = (
    r"\s*[;?.!]\s+(?:and |also,? |or )?|\s+[–—]\s+(?:and )?",
    r",\s+(?:and|but|then|while|whereas|as well as|along with|plus)(?: also| then)?,?\s+",
    r"\s+(?:and|as well as|along with|plus)(?: also| then)?,?\s+",
)
_JOINS = tuple(re.compile(rf"(?:{'|'.join(_BETWEEN[:count])}){_AHEAD}", re.I) for count in (1, 2, 3))
_OPENS = re.compile(rf"^{_LEAD}{_SCENE}(?:{_ASKING}|{_TELLING})\b", re.I)
_TELLS = re.compile(rf"^{_LEAD}{_SCENE}(?:{_TELLING})\b", re.I)
_INSIDE = re.compile(r"\b(?:how|which|what|who|whom|whose|when|where|why)\b", re.I)
_LEADING = re.compile(rf"^{_LEAD}", re.I)
# What goes on with the part before it instead of asking something of its own.
_BACK = re.compile(
    r"\b(?:instead|thereby|(?:do|does|did|is|was|are|were|can|will|would) (?:this|these|those))\b|"
    r"^which (?:is|was|has|had|are|were|one|of them)\b",
    re.I,
)
_SHORTEST, _SHORTEST_REQUEST = 4, 3

# --- Chinese ---------------------------------------------------------------------------------------------------------
_ASKING_ZH = re.compile(
    r"哪|谁|什么|多少|几[个天年点名家位座次岁度月号时]|多[长高大宽深远重久]|如何|怎么|怎样|为何|为什么|何时|何地|"
    r"是否|是不是|还是|[能会有可要]不[能会可要]|有没有|吗$|吗[?？]"
)
_TELLING_ZH = re.compile(
    r"^(?:请|帮我|给我)*(?:总结|概括|概述|归纳|列出|列举|介绍|说明|比较|对比|制定|拟定|规划|安排|梳理|统计|排列|"
    r"按|写出|给出|解释|描述|追溯|整理|讲讲|谈谈|说说|聊聊|复述|勾勒|演示|标出|指明|计算|告诉|综述|分析|设计|找出|"
    r"指出|推荐|评估|推算|简述|汇总|盘点|绘制|"
    r"拟|画出|查|看看|把|将|给|(?:为|就|根据|按照|结合|针对|用|以|从|对|围绕|替)[^，。]{1,16}(?:制定|制订|拟|规划|"
    r"设计|总结|概括|"
    r"归纳|列出|介绍|说明|安排|写|整理|梳理|评估|推荐|分析|比较))"
)
_THEN_ZH = "总结|概括|概述|说明|列出|介绍|比较|对比|给出|告诉|解释|梳理|归纳|制定|描述|统计|整理|请|简述"
_LEAD_ZH = (
    r"(?:另外|此外|同时|以及|还有|并且|而且|其次|再者|然后|那么|接着|顺便|最后|请问|另请|另|请再|"
    r"再(?=请|说|告|介|总|概|列|给|解|比|讲|谈|梳|写)|一是|二是|其一|其二|第一(?=[，、])|第二(?=[，、])|首先|并|又|"
    r"而|也)"
)
_BETWEEN_ZH = (
    r"[；;?？。！]\s*",
    rf"[,，]\s*(?={_LEAD_ZH})|(?<=[^，,；;?？。])(?=以及|并且|并(?={_THEN_ZH})|同时(?={_THEN_ZH})|另外|此外)",
    r"[,，]\s*",
)
_JOINS_ZH = tuple(re.compile("|".join(_BETWEEN_ZH[:count])) for count in (1, 2, 3))
_LEADING_ZH = re.compile(rf"^(?:{_LEAD_ZH}[，,、]?)+")
_BACK_ZH = re.compile(
    r"^先|^再(?!请|说|告|介|总|概|列|给|解|比|讲|谈|梳|写)|^各自|^分别|每[类种个项]的|各类的|^中间|"
    r"^哪(?:一)?[个家种位者些](?:最|更|高于|低于|超过|比|是|有|会|能|可以|应该|需)"
)
_SHORTEST_ZH = 6


def parts_in(question: str) -> list[str]:
    """The parts of a question that can be asked one by one, in order; a question that is one comes back alone.

    Each part has its own question word or its own request.
    """
    text = " ".join(question.split())
    joins, parts_of = (_JOINS_ZH, _parts_zh) if is_han(text) else (_JOINS, _parts_en)
    for join in joins:
        parts = parts_of(text, join)
        if len(parts) > 1:
            return parts
    return [question]


def _parts_en(text: str, join: re.Pattern[str]) -> list[str]:
    """The parts between these joints, or nothing where one of them asks for nothing or goes on with the one before."""
    pieces, at = list[str](), 0
    for found in join.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
    parts = [_LEADING.sub("", piece.strip(" ,;.?!"), count=1) for piece in (*pieces, text[at:])]
    if len(parts) > 2 and not _is_request(parts[0]):  # "Two questions. …" sets the scene of the first
        parts = [f"{parts[0]}. {parts[1]}", *parts[2:]]
    if not all(map(_is_request, parts)):
        return []
    if any(map(_BACK.search, parts[1:])):
        return []
    return [f"{part[:1].upper()}{part[1:]}{'.' if _TELLS.match(part) else '?'}" for part in parts]


def _is_request(part: str) -> bool:
    if _TELLS.match(part):
        return len(part.split()) >= _SHORTEST_REQUEST
    return (_OPENS.match(part) or _INSIDE.search(part)) is not None and len(part.split()) >= _SHORTEST


def _parts_zh(text: str, join: re.Pattern[str]) -> list[str]:
    """The same; a clause that asks nothing sets the scene of the next part."""
    clauses = [bare for clause in join.split(text) if (bare := _LEADING_ZH.sub("", clause.strip()))]
    parts: list[str] = []
    scene = ""
    for clause in clauses:
        if _asks_zh(clause):
            parts.append(f"{scene}{clause}")
            scene = ""
        else:
            scene += f"{clause}，"
    if scene or len(parts) < 2 or any(len(part) < _SHORTEST_ZH for part in parts):
        return []
    if any(map(_BACK_ZH.search, parts[1:])):
        return []
    return [f"{part}{'？' if _ASKING_ZH.search(part) else '。'}" for part in parts]


def _asks_zh(clause: str) -> bool:
    return _ASKING_ZH.search(clause) is not None or _TELLING_ZH.match(clause) is not None
