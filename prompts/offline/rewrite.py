"""Rewriting by rules: what a question asks on its own after a conversation, its further queries, and what stays open.

Half a question ("And in 2022?", "那东湖大桥呢？") is the question before with its year, or the likest of its names,
replaced. A pronoun, "that bridge" or 该公司 stands for the last name of its sort, and "the latter" for the second name
of the last pair.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from prompts.offline.parts import parts_in
from prompts.text.amounts import MONTH, YEAR
from prompts.text.languages import names_of
from prompts.text.names import KIND_OF, NameSpan
from prompts.text.names_zh import LONGEST_PERSON, SURNAMES, is_generic, kind_of
from prompts.text.question import NOUN_KIND, ParsedQuestion, is_plural, parse_question
from prompts.text.words import CJK, is_han

READ = 16  # the last turns of a history; what was said before is no antecedent
_YEAR = re.compile(rf"(?<!\d){YEAR}(?!\d)")
_WHEN = re.compile(rf"(?:\b(?:{MONTH}|q[1-4]) )?{_YEAR.pattern}", re.I)
_QUESTION = re.compile(
    r"[?？]\s*$|^(?:and |but )?(?:who|what|when|where|why|which|how|whose|is|was|are|were|do|does|did|has|have|can|"
    r"tell me|describe|compare|list|name|give|explain|summari[sz]e|show)\b|^(?:请|介绍|比较|说明|总结|概括|列出)",
    re.I,
)
_JOINED = re.compile(r"\s*(?:,|，|、|和|与|and|&)\s*(?:the )?", re.I)
_ONE = frozenset({"place", "work", "event"})  # never "they" by itself
_NO_PERSON = frozenset({"place", "organisation", "work", "event"})


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A question or an answer of a conversation, with its names and the kind of thing that was asked for."""

    text: str
    is_question: bool
    names: tuple[NameSpan, ...] = ()


@dataclass
class Standing:
    """A question that stands on its own. `several`: what could stand for others as well, with all of them, the chosen
    one first; `missing`: what stands for something that nobody has named."""

    text: str
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def stand_alone(question: str, history: Sequence[str]) -> Standing:
    """A question with what it means by the conversation; one that stands on its own comes back as it is.

    `history` holds earlier questions and answers, oldest first; its questions are read in the light of those before.
    """
    turns: list[ConversationTurn] = []
    for message in history[-READ:]:
        text = " ".join(message.split())
        asks = _QUESTION.search(text) is not None
        turns.append(_turn(_stood(text, turns).text if asks and turns else text, asks, turns))
    return _stood(" ".join(question.split()), turns)


@lru_cache(maxsize=2_000)
def named(text: str) -> tuple[NameSpan, ...]:
    """The names in a turn of a conversation, in order."""
    if is_han(text):
        return tuple(_names_zh(text))
    return names_of(text)


def _turn(text: str, asks: bool, before: Sequence[ConversationTurn]) -> ConversationTurn:
    """What answers "who" is a person, and what answers "where" a place."""
    asked = next((turn for turn in reversed(before) if turn.is_question), None)
    wanted = "" if asks or asked is None else parse_question(asked.text).expects
    known = {name.text: name.kind for turn in before for name in turn.names}
    names = []
    for name in named(text):
        kind = known.get(name.text) or name.kind
        if name.text not in known and wanted in {"person", "place"} and kind in {"thing", "place"}:
            kind = wanted
        names.append(NameSpan(name.text, name.start, name.end, kind))
    return ConversationTurn(text, asks, tuple(names))


def _stood(text: str, turns: Sequence[ConversationTurn]) -> Standing:
    is_chinese = is_han(text) or (not any(map(str.isalpha, text)) and bool(turns) and is_han(turns[-1].text))
    rules = _CHINESE if is_chinese else _ENGLISH
    standing = Standing(rules.completed(text, turns))
    if not turns and rules.half(text):
        standing.missing.append(text)
    if not named(standing.text) or is_chinese:
        _pointed(standing, turns, rules)
    _pronouns(standing, turns, rules)
    return standing


# --- what stands for what --------------------------------------------------------------------------------------------


def _antecedents(sort: str, turns: Sequence[ConversationTurn]) -> list[NameSpan]:
    """The last names of a sort ("person", "thing", "several"), the likeliest first; empty where none was said."""
    if sort == "several":
        groups = [group for turn in reversed(turns) for group in _groups(turn)]
        if groups:
            return [_as_one(groups[0])]
    # A person for sure comes first, wherever; the answer says who it is, and the question what it is about.
    for sorts in ("person for sure", "person") if sort == "person" else (sort,):
        for exchange in _exchanges(turns):
            for turn in reversed(exchange) if sort == "person" else exchange:
                names = [name for name in turn.names if _fits(name, sorts)]
                if names:
                    return names
    return []


def _fits(name: NameSpan, sort: str) -> bool:
    if sort == "person for sure":
        return name.kind == "person"
    if sort == "person":
        return name.kind not in _NO_PERSON
    return name.kind not in _ONE if sort == "several" else name.kind != "person"


def _exchanges(turns: Sequence[ConversationTurn]) -> Iterator[list[ConversationTurn]]:
    """Each question with its answers, the latest first."""
    end = len(turns)
    for start in range(len(turns) - 1, -1, -1):
        if turns[start].is_question or not start:
            yield list(turns[start:end])
            end = start


def _groups(turn: ConversationTurn) -> list[list[NameSpan]]:
    """Names that a turn joins by "and" or commas: two or more that may be meant together."""
    groups: list[list[NameSpan]] = []
    for name in turn.names:
        if groups and _JOINED.fullmatch(turn.text[groups[-1][-1].end : name.start]):
            groups[-1].append(name)
        else:
            groups.append([name])
    return [group for group in groups if len(group) > 1]


def _as_one(group: Sequence[NameSpan]) -> NameSpan:
    texts = [name.text for name in group]
    text = "和".join(texts) if is_han(texts[0]) else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return NameSpan(text, group[0].start, group[-1].end, group[0].kind)


def _pair(turns: Sequence[ConversationTurn]) -> list[str]:
    """The names of the last question with two of them."""
    pairs = (list(dict.fromkeys(name.text for name in turn.names)) for turn in reversed(turns) if turn.is_question)
    return next((pair for pair in pairs if len(pair) > 1), [])


def _pronouns(standing: Standing, turns: Sequence[ConversationTurn], rules: "_Rules") -> None:
    """Names in the places of pronouns that the question itself does not explain."""
    for match in reversed(list(rules.pronoun.finditer(standing.text))):
        sort = match.lastgroup or "thing"
        if rules.explained(standing.text, match, spoken=bool(turns)):
            continue
        pair = _pair(turns) if sort in {"first", "second"} else []
        names = pair[:1] if sort == "first" else pair[1:2]
        if sort not in {"first", "second"}:
            names = [name.text for name in _antecedents(sort, turns)]
        if not names:
            standing.missing.insert(0, match.group())
            continue
        if len(set(names)) > 1 and sort == "person":
            standing.several[match.group()] = tuple(dict.fromkeys(names))
        standing.text = (
            f"{standing.text[: match.start()]}{rules.written(match, names[0])}{standing.text[match.end() :]}"
        )


def _pointed(standing: Standing, turns: Sequence[ConversationTurn], rules: "_Rules") -> None:
    """ "That bridge", 该公司: the last name that has the noun in it, else the last thing."""
    match = rules.pointed.search(standing.text)
    if match is None or (is_han(standing.text) and named(standing.text[: match.start()])):
        return
    noun = match["noun"].lower()
    if noun in standing.text[: match.start()].lower():
        return  # "There was a country … that country"
    names = [name for exchange in _exchanges(turns) for turn in exchange for name in turn.names]
    called = next((name for name in names if noun in (name.text.lower().split()[-1], name.text[-len(noun) :])), None)
    kind = KIND_OF.get(noun) or NOUN_KIND.get(noun) or _KINDS.get(noun, "")
    if called is None and kind and (match["that"] or noun in _KINDS):
        called = next((name for name in names if name.kind == kind), None)
        called = called or next(iter(_antecedents("thing", turns)), None)
    if called is not None:
        standing.text = f"{standing.text[: match.start()]}{called.text}{standing.text[match.end() :]}"
    elif kind and match["that"] and not turns:
        standing.missing.append(match.group())


# --- half questions --------------------------------------------------------------------------------------------------


def _last(turns: Sequence[ConversationTurn]) -> ConversationTurn | None:
    return next((turn for turn in reversed(turns) if turn.is_question), None)


def _with_other(part: str, asked: ConversationTurn) -> str:
    """The last question with its year, or the name that is most like the part's, replaced by the part; or empty."""
    body = asked.text.rstrip(" ?？.。")
    year, held = _WHEN.search(part), list(_WHEN.finditer(body))
    if year and held:
        return f"{body[: held[-1].start()]}{year.group()}{body[held[-1].end() :]}"
    names = named(part)
    if year or not names or not asked.names:
        return ""
    new = names[-1]

    def unlike(old: NameSpan) -> tuple[bool, bool]:
        return _last_word(old.text) != _last_word(new.text), old.kind != new.kind

    old = min(asked.names, key=unlike)
    bare = body[: old.start].endswith("the ") and not part.lower().startswith("the ")
    # "the Kestrel Bridge" and "Tobias Wren" are no two of a kind.
    return "" if bare and all(unlike(old)) else f"{body[: old.start]}{new.text}{body[old.end :]}"


def _last_word(name: str) -> str:
    return name[-1] if is_han(name) else name.lower().split()[-1]


_MARKED = re.compile(
    r"^(?:(?:thanks|thank you|ok(?:ay)?|great|good|i see|yes|no)\s*[.,!;]\s+)?"
    r"((?:(?:and|but|or|so|then|also)\b[\s,]*)?(?:what|how) about\s+|(?:and|but|or|so|then|also)\b[\s,]*|)",
    re.I,
)
_CLAUSE = re.compile(
    r"\b(?:who|whose|what|when|where|why|which|how|is|was|are|were|do|does|did|has|have|had|can|could|will|would|should|"
    r"tell|describe|compare|list|name|give|explain|summari[sz]e|show|find)\b",
    re.I,
)
_ONLY_WH = re.compile(r"^(?:who|what|when|where|why|how|by whom|how \w+)$", re.I)
_UNOWNED = re.compile(r"\b(?:who|what) (?:is|was|are|were) the (?P<noun>(?:[a-z-]+ )?[a-z-]+)\s*\?*$", re.I)


def _half(text: str) -> bool:
    part = _MARKED.sub("", text, count=1).rstrip(" ?.!")
    return bool(_ONLY_WH.match(part)) or (part != text.rstrip(" ?.!") and not _CLAUSE.search(part))


def _completed(text: str, turns: Sequence[ConversationTurn]) -> str:
    asked = _last(turns)
    if asked is None:
        return text
    marked = _MARKED.sub("", text, count=1)
    part, body = marked.rstrip(" ?.!"), asked.text.rstrip(" ?.")
    if _ONLY_WH.match(part):
        return f"{body}, and {part.lower()}?"
    if _CLAUSE.search(part) or not (_half(text) or named(part) or _YEAR.search(part)):
        return _owned(text if marked == text else f"{marked[:1].upper()}{marked[1:]}", turns)
    return f"{_with_other(part, asked) or f'{body}, {part}'}?"


def _owned(question: str, turns: Sequence[ConversationTurn]) -> str:
    """ "Who was the founder?" of what the conversation is about; another question as it is."""
    match = None if named(question) else _UNOWNED.search(question)
    names = _antecedents("thing", turns) if match else []
    return f"{question.rstrip(' ?')} of {names[0].text}?" if names else question


_PRONOUN = re.compile(
    r"\b(?:(?P<person>he|him|his|she|hers|her)|(?P<thing>it|its|that one)|(?P<several>they|them|their|both of them)|"
    r"(?P<first>the first one|the former(?=\W*$|\s+(?:and|or|in|was|is|has|did|\w+ed|built|born)\b))|"
    r"(?P<second>the (?:latter|second one)))\b(?!['’]s\b)",
    re.I,
)


_EMPTY_IT = re.compile(
    r"\bit (?:(?:is|was) )?(?:true|possible|likely|necessary|important|common|legal)\b|"
    r"\b(?:is|was) it \w+ (?:that|to)\b|"
    r"\b(?:does|did|will|would) it (?:take|cost|mean) (?:to|for|that)\b",
    re.I,
)
_JOINS_CLAUSES = re.compile(r"\b(?:and|if|when|where|while|because|than|which|who)\b", re.I)


def _explained(text: str, match: re.Match[str], *, spoken: bool) -> bool:
    """Whether the question itself says what a pronoun means, or it means nothing: a name, a plural or another clause
    stands before it."""
    at = match.start()
    before = text[:at]
    if (at and match.group()[0].isupper()) or any(it.start() <= at < it.end() for it in _EMPTY_IT.finditer(text)):
        return True
    if match.lastgroup in {"first", "second"}:
        return len(named(text)) > 1
    if any(name.start < at and (name.kind != "person" or match.lastgroup != "thing") for name in named(text)):
        return True
    plural = any(map(is_plural, re.findall(r"[a-z-]{4,}", before.lower())))
    clause = _JOINS_CLAUSES.search(before, 1) is not None
    if spoken:
        return (plural and match.group().lower() == "their") or (clause and match.lastgroup != "person")
    return plural or clause


def _written(match: re.Match[str], name: str) -> str:
    pronoun, after = match.group().lower(), match.string[match.end() :]
    owns = pronoun in {"his", "its", "their"} or (
        pronoun == "her" and re.match(r" (?!(?:and|or|in|at|on|to|by|with|for|from|when|where)\b)\w", after) is not None
    )
    return (f"{name}'" if name.endswith("s") else f"{name}'s") if owns and " and " not in name else name


_POINTED = re.compile(
    r"\b(?:(?P<that>this|that)|the)\s+(?P<noun>[a-z][a-z-]+)\b(?!\s+(?:of|that|who|which|whose|where|from|for|by|[A-Z])\b)"
)
_KINDS = dict.fromkeys("company firm business 公司 企业 机构".split(), "organisation") | dict.fromkeys(
    "building place site structure city town village 城市 地方 建筑 地区".split(), "place"
)

# --- Chinese ---------------------------------------------------------------------------------------------------------

_PRONOUN_ZH = re.compile(
    r"(?P<several>[他她它]们|两者)(?P<own>的)?|(?P<person>[他她])|(?P<thing>它|(?<=^)其(?!他|中|它))|(?P<first>前者)|(?P<second>后者)"
)
_POINTED_ZH = re.compile(
    r"(?P<that>该|[这那](?:[座个条家部本份位所]))(?P<noun>[\u4e00-\u9fff]{1,4}?)(?=的|在|有|是|成立|位于|现在|总部|什么|多|由|$)"
)
_WHY = re.compile(r"^(?:为什么|为何|什么时候|何时|谁|在?哪里|怎么|怎样)$")
_ASKING = re.compile(r"什么时候|为什么|什么|哪[一里年个位]?|谁|多少|多[长高大宽深远]|怎么样?|如何|几|吗|是否")


_WHO = re.compile(r"人$|者$|长$|师$|任$|总裁|经理|作者|老师|父亲|母亲|妻子|丈夫")


def _half_zh(text: str) -> bool:
    part = text.partition("呢")[0].strip("，, ？?")
    return bool(_WHY.match(part)) or ("呢" in text and _ASKING.search(part) is None)


def _completed_zh(text: str, turns: Sequence[ConversationTurn]) -> str:
    asked = _last(turns)
    if asked is None:
        return text
    if not _half_zh(text):
        return text
    head, _, more = text.partition("呢")
    part, more = head.strip("，, ？?"), more.strip("，,？?。 ")
    if more:  # "他呢？在哪里出生？": what is asked stands after it
        return f"{part}{more}？"
    body = asked.text.rstrip("？?。 ")
    if _WHY.match(part):
        return f"{_ASKING.sub(part, body, count=1)}？"
    ends = {name.text[-1] for name in asked.names}
    names = [name for name in named(part) if name.kind != "thing" or name.text[-1] in ends]
    if names or _YEAR.search(part):
        return f"{_with_other(part, asked) or body + part}？"
    noun, about = part.rpartition("的")[2], _antecedents("thing", turns)
    return f"{about[0].text if about else ''}的{noun}是{'谁' if _WHO.search(noun) else '多少'}？"


_CUT = re.compile(
    rf"[^{CJK}A-Za-z·]+|(?<=\d)[年月日号]|第[一二三四五六七八九十]{{1,2}}[次届个座]|什么时候|什么|为什么|为何|何[时地处人]|怎样|如何|"
    r"怎么|多少|多[长高大宽深远重久]|哪一?[年个座家里位条些]|哪|谁|现在|目前|当时|如今|介绍一下|介绍|请问|请|告诉我|比较|"
    r"是否|是不是|有没有|曾经|曾|已经|全长|横跨|位于|坐落于?|出生于?|成立于?|"
    r"设计|建造|修建|创办|创立|举办|主持|开放|建成|生产|担任|当上|毕业|去世|结婚|属于|来自|"
    r"[长高宽深重](?=\d)|[写画作拍办](?=[的了过])|过(?![^过])|[他她它](?:们)?|[这那该此其](?!里)|"
    r"[是由的在有和与跟及于从被为了把对向吗呢吧还都也更最就]|[之以](?=[前后间])|会(?=[不在有是被去来把给])"
)
_LONGEST_NAME = 14  # characters


def _names_zh(text: str) -> Iterator[NameSpan]:
    """The stretches of a turn between function words, in order; the kind is "thing" where their endings tell none."""
    start = 0
    for end, after in [*(cut.span() for cut in _CUT.finditer(text)), (len(text), 0)]:
        name, place = text[start:end], start
        start = after
        if 1 < len(name) <= _LONGEST_NAME and not is_generic(name):
            # "孙玉山" is no mountain.
            person = len(name) <= LONGEST_PERSON and name[0] in SURNAMES and kind_of(name) == "place"
            yield NameSpan(name, place, end, "thing" if person else kind_of(name))


def _explained_zh(text: str, match: re.Match[str], *, spoken: bool) -> bool:
    return any(name.kind != "person" or match.lastgroup != "thing" for name in named(text[: match.start()]))


def _written_zh(match: re.Match[str], name: str) -> str:
    return f"{name}的" if match.group().endswith(("的", "其")) else name


@dataclass(frozen=True)
class _Rules:
    """What differs by language: the words, whether a text is half a question, what completes it, whether the question
    itself explains a pronoun, and how a name is written in its place."""

    pronoun: re.Pattern[str]
    pointed: re.Pattern[str]
    half: Callable[[str], bool]
    completed: Callable[[str, Sequence[ConversationTurn]], str]
    explained: Callable[..., bool]
    written: Callable[[re.Match[str], str], str]


_ENGLISH = _Rules(_PRONOUN, _POINTED, _half, _completed, _explained, _written)
_CHINESE = _Rules(_PRONOUN_ZH, _POINTED_ZH, _half_zh, _completed_zh, _explained_zh, _written_zh)

# --- what stays open -------------------------------------------------------------------------------------------------

_RELATIVE = re.compile(
    r"\b(?:(?:last|next|this) (?:year|month|week|quarter|season|decade|century)(?!\s+(?-i:[A-Z]))|yesterday|tomorrow|"
    r"(?:\w+|\d+) (?:years?|months?|weeks?|days?) ago)\b|去年|今年|明年|前年|上个?月|本月|昨天|明天",
    re.I,
)
# A relative date counts from one of these.
_COUNTED = ("counted from the date of the documents", "counted from today")
_COUNTED_ZH = ("从文档的日期算起", "从今天算起")


def doubts(standing: Standing) -> dict[str, tuple[str, ...]]:
    """What is open in a question that was read by its conversation: pronouns, and dates that count from another one.

    Each stretch with how it may be read, the reading taken first; none where nothing is known that it may stand for.
    What the graph knows as several things is told elsewhere (`tasks/rewrite.py`), since only an index knows it.
    """
    result = standing.several | {text: () for text in standing.missing if text not in standing.several}
    relative = None if _YEAR.search(standing.text) else _RELATIVE.search(standing.text)
    if relative is not None:
        result.setdefault(relative.group(), _COUNTED_ZH if is_han(standing.text) else _COUNTED)
    first = {text.lower(): text for text in reversed(result)}
    return {text: readings for text, readings in result.items() if first[text.lower()] == text}


# --- further queries --------------------------------------------------------------------------------------------------


def aspects(question: ParsedQuestion) -> list[str]:
    """Further queries: the things compared, or the questions of one that asks several things, each with what it means
    by those before it; empty for a question that one search answers."""
    if question.form == "compare" and len(compared := named(question.text)) > 1:
        return [name.text for name in compared]
    parts = parts_in(question.text)
    if len(parts) < 2:
        return []
    questions = [parts[0]]
    for place, part in enumerate(parts[1:], 1):
        whole = stand_alone(part, parts[:place]).text
        about = named(parts[0])
        if question.chinese and about and not named(whole):
            whole = f"{about[0].text}{whole}"  # the subject is left out where it stays the same
        questions.append(whole)
    return questions


MAX_QUERIES = 4


@dataclass(frozen=True)
class RuleRewriting:
    """A question that stands on its own, its queries (itself first), and what in it is ambiguous with its readings."""

    question: str
    queries: list[str]
    ambiguities: dict[str, tuple[str, ...]]


def rewrite_offline(question: str, history: Sequence[str] = ()) -> RuleRewriting:
    """White space folded; pronouns, "that bridge", "the latter" and half questions filled in from the history; one
    further query for each thing compared and each part."""
    standing = stand_alone(question, history)
    queries = [standing.text, *aspects(parse_question(standing.text))]
    return RuleRewriting(standing.text, list(dict.fromkeys(queries))[:MAX_QUERIES], doubts(standing))
