"""What does a question ask for? Its form, the kind of answer it expects, and the things it chooses between.

Rules over function words, in English and Chinese; nothing about any domain.
"""

import re
from dataclasses import dataclass
from typing import Literal

from prompts.language.words import is_han

Form = Literal["fact", "list", "yesno", "compare", "connect", "howto", "summary", "global", "about"]
Expected = Literal["person", "place", "date", "money", "number", "name", "text", "yesno"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, taken apart. `noun` is the kind of thing asked for ("bridges"), `options` what it chooses between."""

    text: str
    chinese: bool
    form: Form
    expects: Expected
    noun: str = ""
    options: tuple[str, ...] = ()
    direction: Literal["max", "min", ""] = ""
    plural: bool = False


_FORMS: tuple[tuple[Form, str], ...] = (
    ("howto", r"^how (?:do|can|should|would|must|to|does one|is \w+ to)\b(?!.*\b(?:connected|related|linked|compare)\b)|"
              r"\b(?:step[- ]by[- ]step|steps|procedure|instructions?|what to do)\b.*\b(?:for|to|when|if|of)\b|"
              r"^what (?:do|does|must|should|has|have)\b.*\b(?:have to|need to|must|supposed to|should)?\s*(?:do|be done)\b.*\b(?:when|if|to|after|before|once)\b"),
    ("connect", r"\b(?:connected|related|linked|associated)\s*(?:to each other|with each other)?\s*\?*$|\b(?:connection|relationship|link|path)s? between\b|"
                r"^(?:what|how) (?:links?|connects?|relates?|ties)\b|\bhave (?:to do with|in common)\b"),
    ("summary", r"\b(?:summar[iy][sz]?e?|summary|overview|outline|key points|main points|gist|recap)\b"),
    ("global", r"\b(?:across|throughout) (?:the|all)\b.*\b(?:collection|corpus|documents?|files|texts|sources)\b|"
               r"\b(?:themes?|trends?|recurring|recurs?|keep coming|in common|common (?:problems|themes|concerns)|overall)\b|"
               r"\b(?:main|major|biggest|key|most important) (?:topics?|problems?|challenges?|concerns?|issues?|risks?|ideas?|lessons?)\b"),
    ("about", r"^(?i:please )?(?i:tell me|describe|introduce|explain|give me (?:some )?information|what (?:can you tell|do (?:you|we) know))\b|"
              r"^(?i:who|what) (?i:is|was|are|were) (?:the )?(?:[A-Z][\w&.'’-]*)(?: (?:of|the|and|for|[A-Z0-9&][\w&.'’-]*|\([^)]*\)))*\s*\?*$"),
    ("yesno", r"^(?:did|does|do|was|were|is|are|has|have|had|can|could|will|would|should|may|might)\b(?!.*\b(?:first|later|earlier|older|younger|longer|higher|larger|smaller|more|less|better) *,? *(?:,|\bor\b).*\bor\b)"),
)  # fmt: skip
_ZH_FORMS: tuple[tuple[Form, str], ...] = (
    ("howto", r"如何|怎么(?:做|办|用|操作|处理|进行|样才)|怎样(?:做|才|操作|进行)|步骤|流程|应该做什么|需要做什么|怎么办"),
    ("connect", r"(?:有什么|什么|有何|之间的?)(?:关系|联系|关联)|如何(?:关联|联系)"),
    ("summary", r"总结|概括|概述|归纳|摘要|综述|主要内容"),
    ("global", r"(?:所有|全部|整个|这些)(?:文档|资料|文件|文集|材料)|共同(?:的)?(?:主题|问题|特点)|主题是|反复出现"),
    ("about", r"介绍(?:一下)?|^(?:什么是|何谓)|^[^，。？?]{2,24}(?:是什么|是谁)[?？]?$|讲讲|谈谈"),
    ("yesno", r"是否|是不是|有没有|能否|可否|吗[?？]?$"),
)
_SUPERLATIVES = {
    "max": "highest most largest biggest longest tallest greatest latest newest last heaviest fastest best oldest widest deepest "
    "later younger longer higher larger bigger taller greater more older heavier wider deeper richest strongest busiest",
    "min": "lowest least smallest shortest earliest fewest cheapest slowest worst youngest narrowest first lower fewer smaller "
    "shorter earlier less narrower cheaper closest nearest oldest",
}
_DIRECTION = {word: side for side, words in _SUPERLATIVES.items() for word in words.split()}
# "Oldest" means the earliest year; "youngest" the latest.
_DIRECTION |= {"oldest": "min", "older": "min", "youngest": "max", "younger": "max"}
_ZH_DIRECTION = (("max", r"最(?:高|大|多|长|晚|新|远|重|快|好|宽|深)|更(?:高|大|多|长|晚|新|重|宽|深)"),
                 ("min", r"最(?:低|小|少|短|早|旧|近|轻|慢|窄)|更(?:低|小|少|短|早|旧|轻|窄)"))  # fmt: skip
_PERSON_NOUNS = (
    "person man woman engineer director author writer composer architect designer founder president king queen actor actress "
    "singer artist owner chairman chair ceo manager chief leader mayor minister scientist painter poet player coach teacher "
    "father mother son daughter wife husband spouse brother sister child grandfather grandmother editor producer inventor "
    "brewer captain curator performer"
).split()
_PLACE_NOUNS = (
    "place city country town village region state province county district river island street location continent nation "
    "birthplace hometown nationality"
).split()
_DATE_NOUNS = "year date day month century decade time".split()
_NUMBER_NOUNS = (
    "number length height width depth weight distance population percentage share rate level speed capacity size area amount "
    "income revenue turnover cost price budget total count age temperature content volume limit duration score accuracy value "
    "sum fee salary profit loss"
).split()
_MONEY_NOUNS = "income revenue turnover cost price budget fee salary profit loss expense expenses value sum".split()
NOUN_KIND: dict[str, Expected] = (
    {noun: "person" for noun in _PERSON_NOUNS}
    | {noun: "place" for noun in _PLACE_NOUNS}
    | {noun: "date" for noun in _DATE_NOUNS}
    | {noun: "number" for noun in _NUMBER_NOUNS}
    | {noun: "money" for noun in _MONEY_NOUNS}
)  # type: ignore[assignment]
_WHICH = re.compile(r"\b(?:which|what)\s+(?:(?:is|was|are|were)\s+(?:the\s+)?(?:names? of (?:the\s+)?)?)?((?:[\w-]+\s+){0,3}?)([\w-]+)\b", re.I)
_OPTIONS = re.compile(r"(?:[,:]|\b(?:between|of|from|than)\b)\s*([^,:?]+?(?:,\s*[^,?]+?)*,?\s+(?:or|and)\s+[^,?]+)\s*\?*$", re.I)
_EITHER = re.compile(r"^(?:is|was|are|were|did|does|has|have|had)\s+(?:the\s+)?(.+?)\s+or\s+(?:the\s+)?(.+?)\s+(?=born|founded|older|younger|released|first|later|longer|larger|built|opened)", re.I)


def ask(question: str) -> Ask:
    """Take a question apart."""
    text = " ".join(question.split())
    return _ask_zh(text) if is_han(text) else _ask_en(text)


def _form(text: str, forms: tuple[tuple[Form, str], ...], flags: int) -> Form | None:
    return next((form for form, pattern in forms if re.search(pattern, text, flags)), None)


def _ask_en(text: str) -> Ask:
    form = _form(text, _FORMS[:4], re.I) or _form(text, _FORMS[4:5], 0)
    options, direction = _options(text), _direction(text)
    if form in (None, "global") and direction and (options or re.search(r"\b(?:which|who|what)\b", text, re.I)):
        form = "compare" if options or _is_superlative_question(text) else form
    if form is None:
        form = _form(text, _FORMS[5:], re.I)
    noun, plural = _noun(text)
    if form is None:
        form = "list" if plural else "fact"
    return Ask(text, False, form, _expected(text, noun, form), noun, options, direction, plural)


def _is_superlative_question(text: str) -> bool:
    """ "Which bridge is the longest?" compares; "Which was the first bridge that he built?" names one thing."""
    return re.search(r"\b(?:which|what|who)\b.*\b(?:most|highest|lowest|largest|smallest|longest|shortest|biggest|greatest|fewest|"
                     r"least|oldest|youngest|tallest|deepest|widest|heaviest|earliest|latest|fastest|cheapest)\b", text, re.I) is not None  # fmt: skip


def _direction(text: str) -> Literal["max", "min", ""]:
    for word in re.findall(r"[a-z]+", text.lower()):
        side = _DIRECTION.get(word)
        if side == "max":
            return "max"
        if side == "min":
            return "min"
    return ""


def _options(text: str) -> tuple[str, ...]:
    either = _EITHER.match(text)
    if either:
        return either.group(1).strip(), either.group(2).strip()
    match = _OPTIONS.search(text)
    if match is None or " or " not in match.group(1):
        return ()
    parts = re.split(r"\s*,\s*(?:or\s+)?|\s+or\s+", match.group(1))
    return tuple(re.sub(r"^(?:the one |the )?(?:of |the )?", "", part).strip() for part in parts if part.strip())


def _noun(text: str) -> tuple[str, bool]:
    """The noun after "which"/"what"/"how many", and whether several things are asked for."""
    many = re.search(r"\bhow many\s+((?:[\w-]+\s+)??)([\w-]+)", text, re.I)
    if many:
        return many.group(2).lower(), False
    match = re.search(r"\b(?:which|what)\s+(?:of the\s+)?((?:[\w'’-]+\s+){0,3}?)([\w-]+)\s+(?:is|was|are|were|did|does|do|has|have|had|"
                      r"can|could|will|would|that|which|who|in|of|on|at|by|from|for|[\w-]+(?:ed|es|s))\b", text, re.I)  # fmt: skip
    if match:
        noun = match.group(2).lower()
        if noun not in {"is", "was", "are", "were", "did", "does", "do", "the", "has", "had", "have"}:
            return noun, _is_plural(noun)
    named = re.search(r"\b(?:what|who|which)\s+(?:is|was|are|were)\s+(?:the\s+)?(?:[\w-]+\s+)??([\w-]+)\s+(?:of|for|in|at|on|behind|that|who)\b", text, re.I)
    if named:
        return named.group(1).lower(), re.search(r"\b(?:are|were)\b", named.group()) is not None
    listed = re.match(r"(?:please )?(?:list|name|enumerate)\s+(?:all\s+)?(?:the\s+)?([\w-]+)", text, re.I)
    if listed:
        return listed.group(1).lower(), True
    return "", False


def _is_plural(noun: str) -> bool:
    return noun in {"people", "men", "women", "children"} or (
        noun.endswith("s") and not noun.endswith(("ss", "us", "is", "series", "species"))
    )


def _expected(text: str, noun: str, form: Form) -> Expected:
    lower = text.lower()
    if form == "yesno":
        return "yesno"
    if form in {"howto", "summary", "global", "about", "connect"}:
        return "text"
    if re.search(r"\bhow much\b", lower):
        return "money" if re.search(r"\b(?:cost|pay|paid|price|spend|spent|earn|worth|money|invest)", lower) else "number"
    if re.search(r"\bwhat did .* cost\b|\bhow (?:expensive|costly)\b", lower):
        return "money"
    if re.search(r"\bhow (?:many|long|high|wide|tall|deep|far|old|heavy|large|big|fast|often)\b", lower):
        return "number"
    if re.search(r"\b(?:when|what year|which year|in what year)\b", lower.split(" when ")[0] if not lower.startswith("when") else lower):
        return "date"
    if re.match(r"(?:in |on |at |to |from )?where\b", lower):
        return "place"
    if re.match(r"(?:by |to |for |with |after )?who(?:m|se)?\b", lower):
        return "person"
    singular = noun[:-1] if _is_plural(noun) else noun
    return NOUN_KIND.get(singular, "name")


def _ask_zh(text: str) -> Ask:
    direction: Literal["max", "min", ""] = ""
    for side, pattern in _ZH_DIRECTION:
        if re.search(pattern, text):
            direction = "max" if side == "max" else "min"
    form = _form(text, _ZH_FORMS, 0)
    options = tuple(part for part in re.split(r"还是|或者|或", _zh_choice(text)) if part) if "还是" in text else ()
    if form in (None, "about") and (options or (direction and re.search(r"哪|谁", text))):
        form = "compare"
    plural = "哪些" in text or re.search(r"哪[两三四五六七八九十几]", text) is not None
    return Ask(text, True, form or ("list" if plural else "fact"), _expected_zh(text, form), "", options, direction, plural)


def _zh_choice(text: str) -> str:
    return re.split(r"[，,：:]", text.rstrip("?？"))[-1]


def _expected_zh(text: str, form: Form | None) -> Expected:
    if form == "yesno":
        return "yesno"
    if form in {"howto", "summary", "global", "about", "connect"}:
        return "text"
    rules: tuple[tuple[Expected, str], ...] = (
        ("money", r"多少(?:钱|元|美元|克朗|经费)|(?:费用|造价|价格|收入|成本|花费)(?:是|为)?多少"),
        ("date", r"什么时候|何时|哪(?:一)?年|哪(?:一)?天|几年|几月|什么时间|哪个?月|时间是"),
        ("number", r"多少|几[个位名次座艘岁口年天条种]|多[长高大宽深远重久]"),
        ("place", r"哪里|哪儿|何处|何地|什么地方|在哪|哪个(?:城市|国家|省|县|镇|地方)|位于"),
        ("person", r"谁|哪位|何人|哪个人|什么人"),
    )
    return next((kind for kind, pattern in rules if re.search(pattern, text)), "name")
