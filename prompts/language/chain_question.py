"""Does a question ask for the end, or for all, of a chain of one relation? "Who ultimately owns X?"

What is owned by what is owned: the number of links is not known beforehand, so such a question does not fall into a
fixed list of sub-questions.
"""

import re

from pydantic import BaseModel, ConfigDict, Field

from prompts.language.table_wording import cleaned
from prompts.language.words import is_han


class ChainPlan(BaseModel):
    """A relation, followed from `start` link by link.

    up: from what is owned to its owner; down: the other way. `ends` asks for the ends of the chain alone, else all that
    it passes. `relation` is one of those that `relation_of` knows.
    """

    model_config = ConfigDict(frozen=True)

    start: str = Field(min_length=1)
    relation: str = Field(min_length=1)
    up: bool = True
    ends: bool = True


# The relation by its words; the second pattern says it the other way round: "A owned by B", "A's parent: B".
RELATIONS: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "owns": (
        re.compile(r"\b(?:owns?|controls?|holds?|acquired?|bought|parent (?:company )?of|owner of|subsidiar(?:y|ies)$)|"
                   r"持有|控股|拥有|控制|收购|子公司$", re.I),
        re.compile(r"\b(?:(?:owned|controlled|held|acquired|bought) by|subsidiary of|belongs? to|unit of|division of|"
                   r"owner$|parent(?: company)?$|holding company$)|"
                   r"隶属|属于|被.*(?:持有|控股|收购)|控股股东|实际控制人|母公司|所有者", re.I),
    ),
    "leads": (
        re.compile(r"\b(?:leads?|heads?|manages?|supervises?|manager of|head of)|领导|管理|主管", re.I),
        re.compile(r"\b(?:reports? to|(?:led|managed|supervised|headed) by|manager$|supervisor$|boss$)|"
                   r"汇报|上级|下属于", re.I),
    ),
    "contains": (
        re.compile(r"\b(?:contains?|includes?|consists? of|comprises?)|包含|包括|下辖", re.I),
        re.compile(r"\b(?:part of|located in|lies in|in the (?:district|county|province) of)|位于|组成部分", re.I),
    ),
}  # fmt: skip
_VERBS = {
    "own": "owns",
    "control": "owns",
    "hold": "owns",
    "lead": "leads",
    "head": "leads",
    "manage": "leads",
    "contain": "contains",
}
_UP = (
    r"\bwho (?:ultimately|finally|in the end) (?P<verb>own|control|hold|lead|head|manage)s? (?P<start>.+?)\s*\??$",
    r"\bultimate (?P<noun>owner|parent|holder|controller|head)(?: company)? of (?P<start>.+?)\s*\??$",
    r"\b(?P<all>ownership|control|reporting) (?:chain|line|hierarchy) (?:of|above|from) (?P<start>.+?)\s*\??$",
)
_DOWN = (
    r"\b(?:which|what) (?:\w+ ){1,2}?does (?P<start>.+?) "
    r"(?:(?:directly (?:and|or) indirectly|indirectly|ultimately) )"
    r"(?P<verb>own|control|hold|lead|manage|contain)\s*\??$",
    r"\b(?:which|what) (?:\w+ ){1,2}?does (?P<start>.+?) (?P<verb>own|control|hold|lead|manage|contain) "
    r"(?:directly (?:and|or) indirectly|indirectly|in the end)\s*\??$",
    r"\bdirect and indirect (?P<noun>subsidiar)(?:y|ies) of (?P<start>.+?)\s*\??$",
)
_UP_ZH = (
    r"^(?:请问)?(?P<start>.+?)的最终(?:控制人|控股股东|所有者|所有人|母公司|股东)(?:是谁|是哪.*|是什么)?$",
    r"^(?:请问)?谁最终(?:控制|持有|拥有|控股)了?(?P<start>.+?)$",
    r"^(?:请问)?(?P<start>.+?)的(?P<all>股权|控制|所有权|控股)(?:链|链条|关系链)(?:是什么|是怎样的|如何)?$",
)
_DOWN_ZH = (
    r"^(?:请问)?(?P<start>.+?)(?:直接(?:和|或|或者|及)?间接|间接)(?:持有|控制|拥有|控股)(?:了)?(?:哪些.*|的.*)$",
)


def chain_plan_of(question: str) -> ChainPlan | None:
    """The chain that a question asks for, or None."""
    text = " ".join(question.split()).rstrip(" ?？。.")
    ways = ((_UP_ZH, True), (_DOWN_ZH, False)) if is_han(text) else ((_UP, True), (_DOWN, False))
    for patterns, up in ways:
        for pattern in patterns:
            match = re.search(pattern, text, re.I)
            if match is None:
                continue
            said = match.groupdict()
            relation = _VERBS.get((said.get("verb") or "").lower(), "owns")
            if (said.get("all") or "").lower() == "reporting" or said.get("noun") == "head":
                relation = "leads"
            return ChainPlan(start=cleaned(match["start"]), relation=relation, up=up, ends=up and not said.get("all"))
    return None


def relation_of(predicate: str) -> tuple[str, bool] | None:
    """(relation, turned): which relation a predicate states, and whether from its object to its subject."""
    for relation, (straight, turned) in RELATIONS.items():
        if turned.search(predicate):
            return relation, True
        if straight.search(predicate):
            return relation, False
    return None
