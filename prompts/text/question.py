"""Questions taken apart by their function words, in English and Chinese: the form, the kind of answer that is expected,
what is compared, and the questions inside a question."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from prompts.text.languages import names_of
from prompts.text.words import group_of, is_han, words_in

Form = Literal["fact", "list", "yesno", "compare", "connect", "howto", "summary", "global", "about"]
Expected = Literal["person", "place", "date", "money", "number", "name", "text", "yesno"]
Direction = Literal["max", "min", ""]


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, taken apart: its form, the kind of answer that it expects, and what it compares.

    `options` are the things that it chooses between, or that it says or asks something of together; `direction` is the
    end of a scale that it asks for ("the longest": max).
    """

    text: str
    chinese: bool
    form: Form
    expects: Expected
    options: tuple[str, ...] = ()
    direction: Direction = ""


# Ages are compared as years of birth: the oldest has the earliest.
DIRECTION = cast(Mapping[str, Direction], group_of("english", "direction"))
NOUN_KIND = cast(Mapping[str, Expected], group_of("english", "nouns"))


def is_plural(noun: str) -> bool:
    """Whether an English noun is in the plural."""
    return noun in {"people", "men", "women", "children"} or (
        noun.endswith("s") and not noun.endswith(("ss", "us", "is", "series", "species"))
    )


def singular(noun: str) -> str:
    """An English noun in the singular, so far as dropping an "s" makes it so."""
    return noun[:-1] if noun.endswith("s") and is_plural(noun) else noun


# Words between an open request and its name that bring in nothing new.
REQUEST_WORDS = words_in("english", "requests")

_CAPITALISED = r"(?:[A-Z][\w&.'’-]*)(?: (?:of|the|and|for|[A-Z0-9&][\w&.'’-]*|\([^)]*\)))*"
_LARGER = r"first|later|earlier|older|younger|longer|higher|larger|smaller|more|less|better"
# The first pattern that fits decides; case counts only where a pattern does not switch it off itself.
_FORMS: tuple[tuple[Form, tuple[str, ...]], ...] = (
    (
        "howto",
        (
            r"(?i)^how (?:do|can|should|would|must|to|does one|is \w+ to)\b"
            r"(?!.*\b(?:connected|related|linked|compare)\b)",
            r"(?i)\b(?:step[- ]by[- ]step|steps|procedure|instructions?|what to do)\b.*\b(?:for|to|when|if|of)\b",
            r"(?i)^what (?:do|does|must|should|has|have)\b.*\b(?:do|be done)\b.*\b(?:when|if|to|after|before|once)\b",
        ),
    ),
    (
        "connect",
        (
            r"(?i)\b(?:connected|related|linked|associated)\s*(?:(?:to|with) each other)?\s*\?*$",
            r"(?i)\b(?:connection|relationship|link|path)s? between\b",
            r"(?i)^how (?:is|are|was|were)\b.+\b(?:connected|related|linked|tied) (?:to|with)\b",
            r"(?i)^(?:what|how) (?:links?|connects?|relates?|ties)\b",
            r"(?i)\bhave to do with\b|^what (?:do|does|did)\b.*\b(?:have in common|share)\W*$",
        ),
    ),
    ("summary", (r"(?i)\b(?:summar[iy][sz]?e?|summary|overview|outline|key points|main points|gist|recap)\b",)),
    (
        "global",
        (
            r"(?i)\b(?:across|throughout) (?:the|all)\b.*\b(?:collection|corpus|documents?|files|texts|sources)\b",
            r"(?i)\b(?:themes?|trends?|recurring|recurs?|keep coming|common (?:problems|themes|concerns)|overall)\b",
            r"(?i)\b(?:main|major|biggest|key|most important) "
            r"(?:topics?|problems?|challenges?|concerns?|issues?|risks?|ideas?|lessons?)\b",
        ),
    ),
    (
        "about",
        (
            r"(?i)^(?:please )?(?:tell me|describe|introduce|explain|give me (?:some )?information|"
            r"what (?:can you tell|do (?:you|we) know))\b",
            rf"^(?i:who|what) (?i:is|was|are|were) (?:the )?{_CAPITALISED}\s*\?*$",
        ),
    ),
    (
        "list",
        (r"(?i)^(?:please )?(?:list|name|enumerate)\b|^(?:which|what) [\w-]+[^su\W]s (?:did|do|are|were|have|has)\b",),
    ),
    (
        "yesno",
        (
            r"(?i)^(?:did|does|do|was|were|is|are|has|have|had|can|could|will|would|should|may|might)\b"
            rf"(?!.*\b(?:{_LARGER}) *,? *(?:,|\bor\b).*\bor\b)",
        ),
    ),
)
_OPEN_FORMS = frozenset({"howto", "summary", "global", "about", "connect"})
_SUPERLATIVE = re.compile(
    r"\b(?:which|what|who)\b.*\b(?:most|highest|lowest|largest|smallest|longest|shortest|biggest|greatest|fewest|least|"
    r"oldest|youngest|tallest|deepest|widest|heaviest|earliest|latest|fastest|cheapest)\b",
    re.I,
)
# "…: A, B or C?", "…between A and B?"
_OPTIONS = re.compile(
    r"(?:[,:.]|\b(?:between|of|from|than)\b)\s*([^,:?]+?(?:,\s*[^,?]+?)*,?\s+(?:or|and)\s+[^,?]+)\s*\?*$", re.I
)
# "Between A and B, which …", "Of A and B, who …"
_OPENING = re.compile(
    r"^(?:between|of|out of|from)\s+(?P<one>.+?)\s+(?:and|or)\s+(?P<two>.+?)\s*,\s*(?=which|who|what)", re.I
)
# "Was A or B born first?"
_EITHER = re.compile(
    r"^(?:is|was|are|were|did|does|has|have|had)\s+(?:the\s+)?(?P<one>.+?)\s+or\s+(?:the\s+)?(?P<two>.+?)\s+"
    r"(?=born|founded|older|younger|released|first|later|longer|larger|built|opened)",
    re.I,
)
# "Are A and B both film directors?", "Are both A and B …", "Are A and B in the same country?"
_TOGETHER = re.compile(
    r"^(?:are|were|is|was|do|did|does|have|has|can)\s+(?P<lead>both\s+(?:[a-z]+,\s+)?)?(?:the\s+)?"
    r"(?P<one>[^,?]+?)\s+and\s+(?:the\s+)?(?P<two>[^?]+?)"
    r"(?P<rest>,?\s+(?-i:[a-z])[^?]*|,\s+[^,?]*)\s*\?*$",
    re.I,
)
_ARTICLE = re.compile(r"^(?:the one |both )?(?:of )?(?:the |a )?(?=[^A-Z]|[A-Z]\w* [A-Z]|[A-Z])")


def parse_question(question: str) -> ParsedQuestion:
    """The one parser of questions; white space is folded."""
    text = " ".join(question.split())
    return _parsed_zh(text) if is_han(text) else _parsed_en(text)


def _parsed_en(text: str) -> ParsedQuestion:
    form = _form(text)
    direction = _direction(text)
    options = _options(text) if form in {None, "list", "yesno", "global", "about"} and direction else ()
    either = form == "yesno" and options and _EITHER.match(text)
    if either or (direction and form in {None, "list", "global"} and (options or _SUPERLATIVE.search(text))):
        form = "compare"
    elif form == "yesno":
        options = _pair(text)
    elif form != "compare":
        options = ()
    form = form or "fact"
    return ParsedQuestion(text, False, form, _expected(text, form), options, direction)


def _form(text: str) -> Form | None:
    return next((form for form, patterns in _FORMS if any(re.search(pattern, text) for pattern in patterns)), None)


def _direction(text: str) -> Direction:
    return next((DIRECTION[word] for word in re.findall(r"[a-z]+", text.lower()) if word in DIRECTION), "")


def _options(text: str) -> tuple[str, ...]:
    """What a question chooses between; nothing where it chooses among all there is."""
    pair = _EITHER.match(text) or _OPENING.match(text)
    listed = _OPTIONS.search(text)
    if pair is not None:
        parts = [pair["one"], pair["two"]]
    elif listed is not None and " or " in listed.group(1):
        parts = re.split(r"\s*,\s*(?:or\s+)?|\s+or\s+", listed.group(1))
    else:
        return ()
    return tuple(_ARTICLE.sub("", part.strip(' "“”')).strip() for part in parts if part.strip())


def _pair(text: str) -> tuple[str, ...]:
    """The two things that a question says something of together ("both", "each", "the same")."""
    found = _TOGETHER.match(text)
    if found is None or not (found["lead"] or re.search(r"\b(?:both|each|same)\b", found["rest"], re.I)):
        return ()
    return found["one"].strip(" ,"), found["two"].strip(" ,")


# The words after "which" or "what", among which stands the noun that is asked for.
_ASKED_FOR = re.compile(r"\b(?:which|what)\s+((?:[\w'’-]+\s*){1,5})", re.I)
_COST = re.compile(
    r"\bhow much\b.*\b(?:cost|pay|paid|price|spend|spent|earn|worth|money|invest)|what did .* cost\b|"
    r"\bhow (?:expensive|costly)\b"
)
_EXPECTED: tuple[tuple[Expected, re.Pattern[str]], ...] = (
    ("text", re.compile(r"^why\b")),
    ("money", _COST),
    ("number", re.compile(r"\bhow (?:much|many|long|high|wide|tall|deep|far|old|heavy|large|big|fast|often)\b")),
    (
        "date",
        re.compile(
            r"^(?:[\w ]+ )?when (?:is|was|were|are|did|does|do|will|has|have|had)\b|\b(?:what|which) year\b|\bwhen\W*$"
        ),
    ),
    ("place", re.compile(r"^(?:in |on |at |to |from )?where\b|\bwhere\W*$")),
    ("person", re.compile(r"^(?:by |to |for |with |after )?who(?:m|se)?\b|\b(?:by|with|after|for) who(?:m)?\W*$")),
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
    found = _ASKED_FOR.search(lower)
    nouns = map(singular, found[1].split() if found else ())
    return next((NOUN_KIND[noun] for noun in nouns if noun in NOUN_KIND), "name")


# --- Chinese ---------------------------------------------------------------------------------------------------------

_FORMS_ZH: tuple[tuple[Form, str], ...] = (
    ("connect", r"(?:有什么|什么|有何|有哪些|之间的?)(?:关系|联系|关联|共同|相同)|(?:如何|怎样)(?:关联|联系)"),
    ("summary", r"总结|概括|概述|归纳|摘要|综述|主要内容|讲了什么|主要讲"),
    ("howto", r"如何|怎样|怎么(?!样|评价|看)|步骤|流程|应该做什么|需要做什么"),
    ("global", r"(?:所有|全部|整个|这些)(?:文档|资料|文件|文集|材料)|共同的?(?:主题|问题|特点)|主题是|反复出现"),
    ("about", r"介绍(?:一下)?|^(?:什么是|何谓)|^[^，。？?的]{2,24}(?:是什么|是谁)[?？]?$|讲讲|谈谈"),
    ("yesno", r"是否|是不是|有没有|能否|可否|吗[?？]?$"),
)
_DIRECTIONS: tuple[tuple[Direction, str], ...] = (
    ("max", r"最(?:高|大|多|长|晚|新|远|重|快|好|宽|深)|更(?:高|大|多|长|晚|新|远|重|快|好|宽|深)"),
    ("min", r"最(?:低|小|少|短|早|旧|近|轻|慢|窄|先)|更(?:低|小|少|短|早|旧|近|轻|慢|窄)|谁先|哪个先"),
)
_EXPECTED_ZH: tuple[tuple[Expected, str], ...] = (
    ("text", r"为什么|为何|什么原因|原因是什么"),
    ("money", r"多少(?:钱|元|美元|克朗|经费)|(?:费用|造价|价格|收入|成本|花费)(?:是|为|有)?多少"),
    ("date", r"什么时候|何时|哪(?:一)?年|哪(?:一)?天|几年|几月|什么时间|哪个?月|时间是|哪个?(?:年代|世纪)"),
    ("number", r"多少|几[个位名次座艘岁口年天条种]|多[长高大宽深远重久]"),
    ("place", r"哪里|哪儿|何处|何地|什么地方|在哪|哪些?个?(?:城市|国家|省|县|镇|地方|地区)|位于"),
    ("person", r"谁|哪位|何人|哪个人|什么人"),
)
_SEVERAL = re.compile(r"哪些|哪[两三四五六七八九十几]|几种|有什么(?!用|意义)")
_ASKED_OF = re.compile(r"(?:，|,)?(?:相比|之间|两者|二者|中|里)?(?:，|,)?(?:谁|哪一?[个座家条艘部种所]).*$")
_TOGETHER_ZH = re.compile(
    r"^(?P<one>[^，。？?]{2,20}?)(?:和|与|跟)(?P<two>[^，。？?]{2,20}?)(?:是否都|是不是都|都是|都在|都有|是否同|是同一)"
)
_SHARED = re.compile(r"^(?P<one>[^，。？?]{2,20}?)(?:和|与|跟)(?P<two>[^，。？?]{2,20}?)(?:之间)?(?:有|的)")


def _parsed_zh(text: str) -> ParsedQuestion:
    direction: Direction = next((side for side, pattern in _DIRECTIONS if re.search(pattern, text)), "")
    form = next((form for form, pattern in _FORMS_ZH if re.search(pattern, text)), None)
    options = _choice(text, direction)
    if form in {None, "about"} and (options or (direction and re.search(r"哪|谁", text))):
        form = "compare"
    if form in {"yesno", "connect"}:
        options = _pair_zh(text, form)
    form = form or ("list" if _SEVERAL.search(text) else "fact")
    return ParsedQuestion(text, True, form, _expected_zh(text, form), options, direction)


def _choice(text: str, direction: Direction) -> tuple[str, ...]:
    """The things to choose between: "…还是…" anywhere, "…和…哪个…" where something is compared."""
    bare = text.rstrip("?？")
    if "还是" in bare:
        # Of several clauses the one that chooses: "…，是甲、乙还是丙".
        clause = next(part for part in re.split(r"[，,：:]", bare) if "还是" in part)
        return tuple(re.sub(r"^是|更.$", "", part) for part in re.split(r"还是|、", clause) if part)
    if not direction or not _ASKED_OF.search(bare):
        return ()
    named = _ASKED_OF.sub("", bare)
    parts = [part for part in re.split(r"和|与|跟|、|或者?", named) if part]
    return tuple(parts) if len(parts) > 1 and all(len(part) <= 20 for part in parts) else ()


def _pair_zh(text: str, form: Form) -> tuple[str, ...]:
    """The two things that are said or asked something of together."""
    found = (_TOGETHER_ZH if form == "yesno" else _SHARED).search(text)
    return (found["one"], found["two"]) if found else ()


def _expected_zh(text: str, form: Form) -> Expected:
    if form == "yesno":
        return "yesno"
    if form in {"howto", "summary", "global", "about", "connect"}:
        return "text"
    return next((kind for kind, pattern in _EXPECTED_ZH if re.search(pattern, text)), "name")


# --- questions inside a question -------------------------------------------------------------------------------------

MAX_LINKS = 4
_RELATIVE = re.compile(
    r"\b(?:(?P<prep>after|in|by|for|to|from|of|with|on|at|near|under) )?"
    r"(?P<pronoun>whom|which|who|that|where|whose)\b",
    re.I,
)
_PARTICIPLE = "born|located|situated|based|made|called|died|founded|built|opened|released|published|established"
_ANTECEDENT = re.compile(
    rf"\b(?:the|a|an) (?P<noun>(?!(?:{_PARTICIPLE})\b)[\w-]+(?: (?!(?:{_PARTICIPLE})\b)[\w-]+)?)"
    rf"(?P<rest>(?: (?:{_PARTICIPLE}))?)\s*,?\s*$",
    re.I,
)
_THINGS = frozenset(
    "successor predecessor owner developer publisher manufacturer partner capital birthplace hometown".split()
)
_RELATIONAL = (
    "director|composer|author|writer|founder|architect|designer|performer|singer|producer|editor|inventor|painter|owner|"
    "successor|predecessor|capital|president|king|queen|ceo|chairman|head|leader|mayor|publisher|developer|manufacturer|"
    "father|mother|spouse|husband|wife|son|daughter|child|brother|sister|sibling|grandfather|grandmother|"
    "paternal grandfather|maternal grandfather|paternal grandmother|maternal grandmother|stepmother|stepfather|"
    "father-in-law|mother-in-law|uncle|aunt|partner|teacher|coach|star|narrator|creator|birthplace|hometown"
)
_GOES_ON = (
    "is|was|were|are|did|do|does|had|has|have|die|died|born|work|works|study|studied|from|located|named|live|lived|come|"
    "comes|graduate|graduated|receive|received|win|won|attend|attended"
)
_OF = re.compile(
    rf"\bthe (?P<role>(?:[\w-]+ )?(?:{_RELATIONAL})) of (?:the )?"
    r"(?P<thing>(?:film |song |book |movie |album |novel |ferry |ship |company |city |town )?"
    rf"(?:\{{\d\}}|(?-i:[A-Z0-9«\"“])[^?,]*?))(?=\s*(?:\?|$| (?:{_GOES_ON})\b))",
    re.I,
)
_POSSESSIVE = re.compile(
    r"(?P<thing>(?:\{\d\}|[A-Z][\w.’'-]*(?: (?:of|the|de|von|van|[A-Z0-9][\w.’'-]*|\([^)]*\)))*))(?:'s|’s|'|’) "
    rf"(?P<role>{_RELATIONAL})\b(?!-)"
)
_COPULA = re.compile(r"^(?:who|what|which) (?:is|was|are|were)\s*(?:the)?\s*\??$", re.I)


def chain(question: str) -> list[str]:
    """The questions inside a question, to be asked one after another, the given one last; a plain one comes back alone.

    "Where was the engineer born who designed X?" is two: the innermost description is the first question, and what it
    finds takes its place ({1}, {2}, …) in the next.

    `{n}` stands for the answer of the n-th question.
    """
    text = question.strip().rstrip("?").strip()
    steps: list[str] = []
    while len(steps) < MAX_LINKS:
        cut = _relative(text, len(steps) + 1) or _described(text, len(steps) + 1)
        if cut is None:
            break
        inner, text = cut
        steps.append(inner + "?")
    return [*steps, text + "?"]


def _relative(text: str, number: int) -> tuple[str, str] | None:
    """Cut the last relative clause that describes a noun: (its question, the text with a placeholder)."""
    for match in reversed(list(_RELATIVE.finditer(text))):
        before, clause = text[: match.start()].rstrip(), text[match.end() :].strip()
        antecedent = _ANTECEDENT.search(before)
        if antecedent is None or not clause or not re.search(r"[A-Z{]", clause):
            continue
        described = _described(clause, number)
        if described is not None and not _is_whole(described[1]):
            inner, rest = described
            return inner, f"{text[: match.end()]} {rest}"
        noun, rest = antecedent["noun"].strip(), antecedent["rest"]
        outer = f"{before[: antecedent.start()]}{{{number}}}{rest}".strip()
        if not re.search(r"[A-Za-z]", before[: antecedent.start()]):
            continue
        return _clause_question(noun, match["prep"], match["pronoun"].lower(), clause), outer
    return None


def _clause_question(noun: str, preposition: str | None, pronoun: str, clause: str) -> str:
    if preposition:
        return f"Which {noun} {clause} {preposition.lower()}"
    if pronoun == "where":
        return f"Which {noun} is where {clause}"
    if pronoun == "whose":
        return f"Which {noun} has the {clause}"
    return f"Which {noun} {clause}"


def _described(text: str, number: int) -> tuple[str, str] | None:
    """Cut "the director of X" or "X's mother" where the question asks for more than just that."""
    for pattern in (_OF, _POSSESSIVE):
        for match in reversed(list(pattern.finditer(text))):
            outer = f"{text[: match.start()]}{{{number}}}{text[match.end() :]}".strip()
            if _is_whole(outer):
                continue
            role, thing = match["role"], match["thing"].strip()
            asks = "What" if role.split()[-1].lower() in _THINGS else "Who"
            return f"{asks} is the {role} of {thing}", outer
    return None


def _is_whole(outer: str) -> bool:
    """Whether nothing but "who is" is left around the placeholder: then the description was the whole question."""
    bare = re.sub(r"\{\d\}\s*$", "", outer).strip()
    return _COPULA.match(bare) is not None or re.fullmatch(r"\W*\{\d\}\W*", outer) is not None


# --- plain questions -------------------------------------------------------------------------------------------------

MOST_WORDS = 14
_SIMPLE = frozenset({"fact", "list", "yesno"})
# Words of a question that compares or joins without the forms that the rules know.
_JOINING = frozenset("and or both same first last than between either".split())


def is_plain(question: ParsedQuestion) -> bool:
    """Whether a question asks one short thing of one named thing, so that some calls can be spared."""
    if question.form not in _SIMPLE or question.expects == "text" or question.options:
        return False
    if question.chinese:
        return question.text.count("的") < 2 and not any(word in question.text for word in ("和", "与", "还是", "都"))
    words = question.text.lower().strip(" ?").split()
    named = sum(name.start > 0 for name in names_of(question.text))
    return len(words) <= MOST_WORDS and named == 1 and not _JOINING & set(words)
