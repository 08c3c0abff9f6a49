"""What must a sentence hold to answer a question of this kind? A reason for "why", a figure for "how many".

Each pair is a pattern of questions and what the sentences that answer them tend to hold, in English and in Chinese.
"""

import re
from typing import NamedTuple

from prompts.language.words import CJK

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石"
    "廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤温康施洪"
)


class Hint(NamedTuple):
    """Questions that `asks` is found in are answered by sentences that `holds` is found in."""

    asks: re.Pattern[str]
    holds: re.Pattern[str]


def _hint(asks: str, holds: str) -> Hint:
    return Hint(re.compile(asks, re.I), re.compile(holds))


# The first hint that fits a question counts.
_HINTS = (
    _hint(
        r"为什么|为何|原因|缘由|病因|\bwhy\b|\breason\b",
        r"因|由于|为了|以便|导致|所以|使得|缘|鉴于|\b(?:[Bb]ecause|[Dd]ue to|[Ss]ince|[Ii]n order|"
        r"caused?|[Aa]s a result|[Aa]fter|for)\b",
    ),
    _hint(
        r"什么时候|何时|哪一?年|哪一?天|几年|几月|什么时间|哪个?月|时间|年代|日期|世纪|年份|^when\b|\bwhen\W*$|"
        r"\b(?:what|which) (?:year|date|day|month|century|decade)\b",
        r"\d{3,4}|\d+(?:世纪|年代|月|日)|[一二三四五六七八九十]+(?:世纪|年代|年|月)|年|\b(?:January|February|March|April|May|June|"
        r"July|August|September|October|November|December|century)\b",
    ),
    _hint(
        r"多少|几|多[长高大宽深远重久快]|\bnumber\b|\bpercent|\bpopulation\b|"
        r"\bhow (?:many|much|long|high|wide|tall|deep|far|old|heavy|large|big|fast|often)\b",
        r"\d|[一二两三四五六七八九十百千万]+(?:[^一二三四五六七八九十]|$)|\b(?:[Oo]ne|[Tt]wo|[Tt]hree|[Ff]our|[Ff]ive|[Ss]ix|"
        r"[Ss]even|[Ee]ight|[Nn]ine|[Tt]en|eleven|twelve|hundred|thousand|million|billion|dozen)\b",
    ),
    _hint(
        r"叫|称|别名|俗名|简称|译|名字|名称|\b(?:name|called|known as|nickname|term)\b",
        r"叫|称|名|译|「|“|《|\"|\b(?:called|named|known|nicknamed|titled|dubbed|as)\b",
    ),
    _hint(
        r"作品|著作|小说|书|电影|专辑|歌|节目|文章|诗|剧|\b(?:book|novel|film|movie|song|album|series|show|magazine|play)\b",
        r"《|「|“|\"|\b(?:film|novel|album|song|series|book)\b",
    ),
    _hint(
        r"哪里|哪儿|何处|何地|什么地|在哪|位于|地点|地址|哪个?(?:城市|国家|省|县|镇|地区|洲)|位置|国籍|哪国|^where\b|\bwhere\W*$|"
        r"\b(?:what|which) (?:city|country|state|town|county|place|region|province|district|village|island|continent|"
        r"nation)\b|\bplace of\b|\bnationality\b",
        r"位于|坐落|在|于|市|省|国|县|区|州|路|街|岛|\b(?:[Ii]n|at|near|from|located|situated|born)\b [A-Z]|"
        r"[A-Z][a-z]+(?:ish|ian|ese|can)\b",
    ),
    _hint(
        r"谁|何人|哪位|什么人|人物|名人|^(?:by |to |for |with )?who|\bwho(?:m|se)?\W*$",
        rf"·|[者人员家师][{CJK}]|[{_SURNAMES}]|[A-Z][a-z]+ [A-Z]",
    ),
    _hint(r"哪些|哪[两三四五六七八九几]|什么组成|包括|分为|有什么", r"、|和|及|与"),
    _hint(
        r"怎么|怎样|如何|什么方式|什么方法|^how (?:did|do|does|was|is|were)\b",
        r"通过|以|用|经|被|由|方式|方法|利用|\b(?:[Bb]y|[Tt]hrough|[Ww]ith|[Uu]sing)\b",
    ),
    _hint(r"属于|什么[科目类属种]|分类|种类|什么动物|什么植物", r"[科目类属种纲]"),
)


def hint_of(question: str) -> Hint | None:
    """What sentences that answer the question hold, if its kind tells."""
    return next((hint for hint in _HINTS if hint.asks.search(question)), None)
