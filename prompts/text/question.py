"""Questions, English and Chinese, by their function words: form and expected kind of answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from prompts.text.languages import names_of
from prompts.text.words import group_of, is_han, words_in

Form = Literal["fact", "list", "yesno", "compare", "connect", "howto", "summary", "global", "about"]
Expected = Literal["person", "place", "date", "money", "number", "name", "text", "yesno"]


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question with its form and the kind of answer that it expects."""

    text: str
    chinese: bool
    form: Form
    expects: Expected


_SCALED_WORDS = words_in("english", "scaled")
NOUN_KIND = cast(Mapping[str, Expected], group_of("english", "nouns"))


def _singular(noun: str) -> str:
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is", "series", "species"))
    return noun[:-1] if is_plural else noun


_CAPITALISED = r"(?:[A-Z][\w&.'’-]*)(?: (?:of|the|and|for|[A-Z0-9&][\w&.'’-]*|\([^)]*\)))*"
_LARGER = r"first|later|earlier|older|younger|longer|higher|larger|smaller|more|less|better"
# The first pattern that matches decides, whatever the case.
_FORMS: tuple[tuple[Form, str], ...] = (
    (
        "howto",
        r"^how (?:do|can|should|would|must|to|does one|is \w+ to)\b"
        r"(?!.*\b(?:connected|related|linked|compare)\b)",
    ),
    (
        "howto",
        r"\b(?:step[- ]by[- ]step|steps|procedure|instructions?|what to do)\b.*"
        r"\b(?:for|to|when|if|of)\b",
    ),
    (
        "howto",
        r"^what (?:do|does|must|should|has|have)\b.*\b(?:do|be done)\b.*"
        r"\b(?:when|if|to|after|before|once)\b",
    ),
    ("connect", r"\b(?:connected|related|linked|associated)(?:\s*(?:to|with) each other)?\s*\?*$"),
    ("connect", r"\b(?:connection|relationship|link|path)s? between\b"),
    ("connect", r"^how (?:is|are|was|were)\b.+\b(?:connected|related|linked|tied) (?:to|with)\b"),
    ("connect", r"^(?:what|how) (?:links?|connects?|relates?|ties)\b"),
    ("connect", r"\bhave to do with\b|^what (?:do|does|did)\b.*\b(?:have in common|share)\W*$"),
    (
        "summary",
        r"\b(?:summar[iy][sz]?e?|summary|overview|outline|key points|main points|topic|recap)\b",
    ),
    (
        "global",
        r"\b(?:themes?|trends?|recurring|recurs?|keep coming|"
        r"common (?:problems|themes|concerns)|overall)\b",
    ),
    (
        "global",
        r"\b(?:main|major|biggest|key|most important) "
        r"(?:topics?|problems?|challenges?|concerns?|issues?|risks?|ideas?|lessons?)\b",
    ),
    (
        "about",
        r"^(?:please )?(?:tell me|describe|introduce|explain|give me (?:some )?information|"
        r"what (?:can you tell|do (?:you|we) know))\b",
    ),
    ("about", rf"^(?:who|what) (?:is|was|are|were) (?:the )?(?-i:{_CAPITALISED})\s*\?*$"),
    (
        "list",
        r"^(?:please )?(?:list|name|enumerate)\b|"
        r"^(?:which|what) [\w-]+[^su\W]s (?:did|do|are|were|have|has)\b",
    ),
    (
        "yesno",
        r"^(?:did|does|do|was|were|is|are|has|have|had|can|could|will|would|should|may|might)\b"
        rf"(?!.*\b(?:{_LARGER}) *,? *(?:,|\bor\b).*\bor\b)",
    ),
)
_OPEN_FORMS = frozenset({"howto", "summary", "global", "about", "connect"})
_SUPERLATIVE = re.compile(
    r"\b(?:which|what|who)\b.*\b(?:most|highest|lowest|largest|smallest|longest|shortest|biggest|greatest|fewest|least|"
    r"oldest|youngest|tallest|deepest|widest|heaviest|earliest|latest|fastest|cheapest)\b",
    re.I,
)
# "Is it A or B", "of A and B, which …"
_CHOICE = re.compile(r"\bor\b|^(?:between|of|out of|from) .+ and .+, (?:which|who|what)\b", re.I)


def parse_question(question: str) -> ParsedQuestion:
    """Read a question; its white space is folded."""
    text = " ".join(question.split())
    return _parsed_zh(text) if is_han(text) else _parsed_en(text)


def _parsed_en(text: str) -> ParsedQuestion:
    form = next((form for form, pattern in _FORMS if re.search(pattern, text, re.I)), None)
    scaled = not _SCALED_WORDS.isdisjoint(re.findall(r"[a-z]+", text.lower()))
    chooses = _CHOICE.search(text) or (form != "yesno" and _SUPERLATIVE.search(text))
    if scaled and chooses and form in {None, "list", "yesno", "global"}:
        form = "compare"
    form = form or "fact"
    return ParsedQuestion(text, False, form, _expected(text, form))


# The words after "which" or "what"; one is the noun that is asked for.
_ASKED_FOR = re.compile(r"\b(?:which|what)\s+((?:[\w'’-]+\s*){1,5})", re.I)
_COST = re.compile(
    r"\bhow much\b.{0,300}\b(?:cost|pay|paid|price|spend|spent|earn|worth|money|invest)|"
    r"what did .{0,300} cost\b|\bhow (?:expensive|costly)\b"
)
_EXPECTED: tuple[tuple[Expected, re.Pattern[str]], ...] = (
    ("text", re.compile(r"^why\b")),
    ("money", _COST),
    (
        "number",
        re.compile(
            r"\bhow (?:much|many|long|high|wide|tall|deep|far|old|heavy|large|big|fast|often)\b"
        ),
    ),
    (
        "date",
        re.compile(
            r"^(?:[\w ]+ )?when (?:is|was|were|are|did|does|do|will|has|have|had)\b|"
            r"\b(?:what|which) year\b|\bwhen\W*$"
        ),
    ),
    ("place", re.compile(r"^(?:in |on |at |to |from )?where\b|\bwhere\W*$")),
    (
        "person",
        re.compile(
            r"^(?:by |to |for |with |after )?who(?:m|se)?\b|\b(?:by|with|after|for) who(?:m)?\W*$"
        ),
    ),
)


def _expected(text: str, form: Form) -> Expected:
    if form == "yesno":
        return "yesno"
    if form in _OPEN_FORMS:
        return "text"
    lower = text.lower()
    for kind, pattern in _EXPECTED:
        if pattern.search(lower):
            return kind
    match = _ASKED_FOR.search(lower)
    nouns = map(_singular, match[1].split() if match else ())
    return next((NOUN_KIND[noun] for noun in nouns if noun in NOUN_KIND), "name")


# --- Chinese --------------------------------------------------------------------------------------

_FORMS_ZH: tuple[tuple[Form, str], ...] = (
    (
        "connect",
        r"(?:有什么|什么|有何|有哪些|之间的?)(?:关系|联系|关联|共同|相同)|(?:如何|怎样)(?:关联|联系)",
    ),
    ("summary", r"总结|概括|概述|归纳|摘要|综述|主要内容|讲了什么|主要讲"),
    ("howto", r"如何|怎样|怎么(?!样|评价|看)|步骤|流程|应该做什么|需要做什么"),
    (
        "global",
        r"(?:所有|全部|整个|这些)(?:文档|资料|文件|文集|材料)|共同的?(?:主题|问题|特点)|主题是|反复出现",
    ),
    (
        "about",
        r"介绍(?:一下)?|^(?:什么是|何谓)|^[^，。？?的]{2,24}(?:是什么|是谁)[?？]?$|讲讲|谈谈",
    ),
    ("yesno", r"是否|是不是|有没有|能否|可否|吗[?？]?$"),
)
_SCALED = re.compile(
    r"[最更](?:高|大|多|长|晚|新|远|重|快|好|宽|深|低|小|少|短|早|旧|近|轻|慢|窄)|最先|谁先|哪个先"
)
_EXPECTED_ZH: tuple[tuple[Expected, str], ...] = (
    ("text", r"为什么|为何|什么原因|原因是什么"),
    ("money", r"多少(?:钱|元|美元|克朗|经费)|(?:费用|造价|价格|收入|成本|花费)(?:是|为|有)?多少"),
    (
        "date",
        r"什么时候|何时|哪(?:一)?年|哪(?:一)?天|几年|几月|什么时间|哪个?月|时间是|哪个?(?:年代|世纪)",
    ),
    ("number", r"多少|几[个位名次座艘岁口年天条种]|多[长高大宽深远重久]"),
    ("place", r"哪里|哪儿|何处|何地|什么地方|在哪|哪些?个?(?:城市|国家|省|县|镇|地方|地区)|位于"),
    ("person", r"谁|哪位|何人|哪个人|什么人"),
)
_SEVERAL = re.compile(r"哪些|哪[两三四五六七八九十几]|几种|有什么(?!用|意义)")


def _parsed_zh(text: str) -> ParsedQuestion:
    scaled = _SCALED.search(text) is not None
    form = next((form for form, pattern in _FORMS_ZH if re.search(pattern, text)), None)
    if form in {None, "about"} and ("还是" in text or (scaled and re.search(r"哪|谁", text))):
        form = "compare"
    form = form or ("list" if _SEVERAL.search(text) else "fact")
    return ParsedQuestion(text, True, form, _expected_zh(text, form))


def _expected_zh(text: str, form: Form) -> Expected:
    if form == "yesno":
        return "yesno"
    if form in _OPEN_FORMS:
        return "text"
    return next((kind for kind, pattern in _EXPECTED_ZH if re.search(pattern, text)), "name")


# --- nested questions -----------------------------------------------------------------------------

# Something described, not named: "the engineer who designed X", "the director of X", "X's mother".
_DESCRIBED = re.compile(
    r"\b(?:the|an?) (?:[\w-]+ ){1,3}?(?:who|whom|that|which|whose|where)\b"
    r"(?! (?:is|was|are|were|did|does|do) the\b)"
    r"|\bthe (?:[\w-]+ )?(?P<role>[\w-]+) of\b|['’]s (?P<own>[\w-]+)",
    re.I,
)
_COPULA = re.compile(r"(?:who|what|which) (?:is|was|are|were) ", re.I)


def is_nested(question: ParsedQuestion) -> bool:
    """Whether an English question asks about something that must be found first.

    "Where was the designer of X born?" does; "Who is the designer of X?" does not.
    """
    if question.chinese:
        return False
    described = [
        match.start()
        for match in _DESCRIBED.finditer(question.text)
        if (noun := match["role"] or match["own"]) is None
        or NOUN_KIND.get(noun.lower()) == "person"
    ]
    asked = _COPULA.match(question.text)
    return len(described) > bool(asked and asked.end() in described)


# --- plain questions ------------------------------------------------------------------------------

MOST_WORDS = 14
_SIMPLE = frozenset({"fact", "list", "yesno"})
# Words of questions that compare or join in other forms than those above.
_JOINING = frozenset("and or both same first last than between either".split())


def is_plain(question: ParsedQuestion) -> bool:
    """Whether a question asks one short thing about one name, so that some calls can be spared."""
    if question.form not in _SIMPLE or question.expects == "text" or is_nested(question):
        return False
    if question.chinese:
        return question.text.count("的") < 2 and not any(
            word in question.text for word in ("和", "与", "还是", "都")
        )
    words = question.text.lower().strip(" ?").split()
    named = sum(name.start > 0 for name in names_of(question.text))
    return len(words) <= MOST_WORDS and named == 1 and not _JOINING & set(words)
