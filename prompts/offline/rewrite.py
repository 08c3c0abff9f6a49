"""Rewriting by rules: what a question asks on its own after a conversation, its further queries, and what stays open.

A pronoun, "that bridge" or 该公司 stands for the last name of its sort, "the latter" for the second of the last two
names. Half a question ("And in 2022?", "那东湖大桥呢？") is the question before with its year, or the likest of its
names, replaced.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from prompts.offline.parts import parts_in
from prompts.text.amounts import MONTH, YEAR
from prompts.text.languages import names_of
from prompts.text.names import KIND_OF, NameSpan
from prompts.text.names_zh import LONGEST_PERSON, SURNAMES, is_generic, kind_of
from prompts.text.question import NOUN_KIND, ParsedQuestion, parse_question
from prompts.text.regex import regex
from prompts.text.words import CJK, is_han

READ = 16  # the last turns of a history; what was said before is no antecedent
_YEAR = regex(rf"(?<!\d){YEAR}(?!\d)")
_WHEN = regex(rf"(?:\b(?:{MONTH}|q[1-4]) )?{_YEAR.pattern}", re.I)
_CLAUSE = (
    r"(?:who|whose|what|when|where|why|which|how|is|was|are|were|do|does|did|has|have|had|can|could|will|would|should|"
    r"tell|describe|compare|list|name|give|explain|summari[sz]e|show|find)\b"
)
_QUESTION = regex(rf"[?？]\s*$|^(?:and |but )?{_CLAUSE}|^(?:请|介绍|比较|说明|总结|概括|列出)", re.I)
# What stands for something said before; of "the" and a noun only where a name has that noun.
_REFERENCE = regex(
    r"\b(?:(?P<person>he|him|his|she|hers|her)|(?P<thing>it|its|that one)|(?P<several>they|them|their|both of them)|"
    r"(?P<first>the (?:former|first one))|(?P<second>the (?:latter|second one))|"
    r"(?:(?P<that>this|that)|the) (?P<noun>[a-z-]+)(?! (?:of|that|who|which|whose|where|from|for|by|(?-i:[A-Z]))))\b"
    r"(?!['’]s\b)|"
    r"(?P<several_zh>[他她它]们的?|两者的?)|(?P<person_zh>[他她])|(?P<thing_zh>它|(?<=^)其(?!他|中|它))|(?P<first_zh>前者)|"
    r"(?P<second_zh>后者)|(?P<that_zh>该|[这那][座个条家部本份位所])"
    r"(?P<noun_zh>[\u4e00-\u9fff]{1,4}?)(?=的|在|有|是|成立|位于|现在|总部|什么|多|由|$)",
    re.I,
)
_LEAD = regex(
    r"^(?:(?:thanks|thank you|ok(?:ay)?|great|good|i see|yes|no)\s*[.,!;]\s+)?"
    r"((?:(?:and|but|or|so|then|also)\b[\s,]*)?(?:what|how) about\s+|(?:and|but|or|so|then|also)\b[\s,]*|"
    r"还有|那(?![座个条家部本份位所])|)",
    re.I,
)
_JOINT = regex(r"^(?:and|but|so|then|also)\b[\s,]+", re.I)
_ONLY_WH = regex(
    r"^(?:who|what|when|where|why|how|by whom|how \w+|为什么|为何|什么时候|何时|谁|在?哪里|怎么|怎样)$", re.I
)
_ASKING_ZH = regex(r"什么时候|为什么|什么|哪[一里年个位]?|谁|多少|多[长高大宽深远]|怎么样?|如何|几|吗|是否")
_UNOWNED = regex(r"\b(?:who|what) (?:is|was|are|were) the (?:[a-z-]+ )?[a-z-]+\s*\?*$", re.I)
_JOINED = regex(r"\s*(?:,|，|、|和|与|and|&)\s*(?:the )?", re.I)
_JOINS_CLAUSES = regex(r"\b(?:and|if|when|where|while|because|than|which|who)\b", re.I)
_ONE = frozenset({"place", "work", "event"})  # never "they" by itself
_NO_PERSON = _ONE | {"organisation"}
_KINDS = dict.fromkeys("company firm business 公司 企业 机构".split(), "organisation") | dict.fromkeys(
    "building place site structure city town village 城市 地方 建筑 地区".split(), "place"
)


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A question or an answer of a conversation, with its names and the kind of thing that was asked for."""

    text: str
    is_question: bool
    names: tuple[NameSpan, ...] = ()


@dataclass
class StandaloneQuestion:
    """A question that stands on its own. `several`: what could stand for others as well, with all of them, the chosen
    one first; `missing`: what stands for something that nobody has named."""

    text: str
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def stand_alone(question: str, history: Sequence[str]) -> StandaloneQuestion:
    """A question with what it means by the conversation; one that stands on its own comes back as it is.

    `history` holds earlier questions and answers, oldest first; its questions are read in the light of those before.
    """
    turns: list[ConversationTurn] = []
    for message in history[-READ:]:
        text = " ".join(message.split())
        asks = _QUESTION.search(text) is not None
        turns.append(_turn(_stood(text, turns).text if asks and turns else text, asks, turns))
    standing = _stood(" ".join(question.split()), turns)
    text = _JOINT.sub("", standing.text) if turns else standing.text  # "And where was he born?" stands alone now
    return replace(standing, text=text[:1].upper() + text[1:]) if text != standing.text else standing


def _turn(text: str, asks: bool, before: Sequence[ConversationTurn]) -> ConversationTurn:
    """What answers "who" is a person, and what answers "where" a place."""
    asked = _last(before)
    wanted = "" if asks or asked is None else parse_question(asked.text).expects
    known = {name.text: name.kind for turn in before for name in turn.names}
    names = []
    for name in named(text):
        kind = known.get(name.text) or name.kind
        if name.text not in known and wanted in {"person", "place"} and kind in {"thing", "place"}:
            kind = wanted
        names.append(NameSpan(name.text, name.start, name.end, kind))
    return ConversationTurn(text, asks, tuple(names))


def _last(turns: Sequence[ConversationTurn]) -> ConversationTurn | None:
    return next((turn for turn in reversed(turns) if turn.is_question), None)


# --- what stands for what --------------------------------------------------------------------------------------------


def _stood(question: str, turns: Sequence[ConversationTurn]) -> StandaloneQuestion:
    standing = StandaloneQuestion(_completed(question, turns))
    if not turns and _half(question):
        standing.missing.append(question)
    for match in reversed(list(_REFERENCE.finditer(standing.text))):
        sort = (match.lastgroup or "").partition("_")[0]
        if _explained(standing.text, match, sort):
            continue
        names = _named_by(match, turns) if sort == "noun" else _antecedents(sort, turns)
        if names:
            if len(set(names)) > 1 and sort == "person":
                standing.several[match.group()] = tuple(dict.fromkeys(names))
            whole = f"{standing.text[: match.start()]}{_written(match, names[0])}{standing.text[match.end() :]}"
            standing.text = whole
        elif sort != "noun" or (not turns and _kind(match) and match["that"]):
            standing.missing.insert(0, match.group())
    return standing


def _antecedents(sort: str, turns: Sequence[ConversationTurn]) -> list[str]:
    """The last names of a sort, the likeliest first; empty where none was said."""
    if sort in {"first", "second"}:
        pairs = [list(dict.fromkeys(name.text for name in turn.names)) for turn in turns if turn.is_question]
        pair = next((pair for pair in reversed(pairs) if len(pair) > 1), [])
        return pair[sort == "second" :]
    groups = [group for turn in reversed(turns) for group in _groups(turn)] if sort == "several" else []
    if groups:
        return [_as_one(groups[0])]
    # A person for sure comes first, wherever; the answer says who it is, and the question what it is about.
    for kinds in (
        (lambda kind: kind == "person", lambda kind: kind not in _NO_PERSON)
        if sort == "person"
        else ((lambda kind: kind not in _ONE) if sort == "several" else (lambda kind: kind != "person"),)
    ):
        for exchange in _exchanges(turns):
            for turn in reversed(exchange) if sort == "person" else exchange:
                if names := [name.text for name in turn.names if kinds(name.kind)]:
                    return names
    return []


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


def _as_one(group: Sequence[NameSpan]) -> str:
    texts = [name.text for name in group]
    return "和".join(texts) if is_han(texts[0]) else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _kind(match: re.Match[str]) -> str:
    noun = (match["noun"] or match["noun_zh"]).lower()
    return KIND_OF.get(noun) or NOUN_KIND.get(noun) or _KINDS.get(noun, "")


def _named_by(match: re.Match[str], turns: Sequence[ConversationTurn]) -> list[str]:
    """ "That bridge", 该公司: the last name that has the noun in it, else the last thing of its kind."""
    noun, kind = (match["noun"] or match["noun_zh"]).lower(), _kind(match)
    names = [name for exchange in _exchanges(turns) for turn in exchange for name in turn.names]
    called = [name.text for name in names if noun in (name.text.lower().split()[-1], name.text[-len(noun) :])]
    if not called and kind and (match["that"] or match["that_zh"] or noun in _KINDS):
        called = [name.text for name in names if name.kind == kind] or _antecedents("thing", turns)
    return called


def _explained(text: str, match: re.Match[str], sort: str) -> bool:
    """Whether the question itself says what is meant: a name, or another clause that is about no person, stands before
    it."""
    at, before = match.start(), text[: match.start()]
    if sort == "noun":
        noun = (match["noun"] or match["noun_zh"]).lower()
        return bool(named(before if is_han(text) else text)) or noun in before.lower()
    if sort in {"first", "second"}:
        return len(named(text)) > 1
    if sort == "thing" and any(name.kind != "person" for name in named(text)):
        return True
    named_before = any(name.start < at and (name.kind != "person" or sort != "thing") for name in named(text))
    capital = at > 0 and match.group()[0].isupper()  # "Let It Be"
    return named_before or capital or (sort != "person" and _JOINS_CLAUSES.search(before, 1) is not None)


def _written(match: re.Match[str], name: str) -> str:
    pronoun, after = match.group().lower(), match.string[match.end() :]
    if is_han(pronoun):
        return f"{name}的" if pronoun.endswith(("的", "其")) else name
    owns = pronoun in {"his", "its", "their"} or (
        pronoun == "her" and re.match(r" (?!(?:and|or|in|at|on|to|by|with|for|from|when|where)\b)\w", after) is not None
    )
    return (f"{name}'" if name.endswith("s") else f"{name}'s") if owns and " and " not in name else name


# --- half questions --------------------------------------------------------------------------------------------------


def _part(text: str) -> str:
    """What a text says without the words that lead it in."""
    return _LEAD.sub("", text, count=1).partition("呢")[0].strip(" ?.!？。，,")


def _half(text: str) -> bool:
    """Whether a text is a question word alone, or is led in ("and …", …呢) and has no clause."""
    part = _part(text)
    clause = _ASKING_ZH if is_han(text) else re.compile(rf"\b{_CLAUSE}", re.I)
    led = "呢" in text if is_han(text) else part != text.rstrip(" ?.!")
    return bool(_ONLY_WH.match(part)) or (led and clause.search(part) is None)


def _completed(text: str, turns: Sequence[ConversationTurn]) -> str:
    asked, about = _last(turns), _antecedents("thing", turns)
    if asked is not None and _half(text):
        return (_completed_zh if is_han(text + asked.text) else _completed_en)(text, asked, about)
    if about and _UNOWNED.search(text) and not named(text):
        return f"{text.rstrip(' ?')} of {about[0]}?"  # "Who was the founder?"
    return text


def _completed_en(text: str, asked: ConversationTurn, about: Sequence[str]) -> str:
    part, body = _part(text), asked.text.rstrip(" ?.")
    if _ONLY_WH.match(part):
        return f"{body}, and {part.lower()}?"
    return f"{_with_other(part, asked) or f'{body}, {part}'}?"


def _completed_zh(text: str, asked: ConversationTurn, about: Sequence[str]) -> str:
    part, body = _part(text), asked.text.rstrip("？?。 ")
    if more := text.partition("呢")[2].strip("，,？?。 "):
        return f"{part}{more}？"  # "他呢？在哪里出生？": what is asked stands after it
    if _ONLY_WH.match(part):
        return f"{_ASKING_ZH.sub(part, body, count=1)}？"
    ends = {name.text[-1] for name in asked.names}
    if _YEAR.search(part) or any(name.kind != "thing" or name.text[-1] in ends for name in named(part)):
        return f"{_with_other(part, asked) or body + part}？"
    return f"{about[0] if about else ''}的{part.rpartition('的')[2]}是什么？"


def _with_other(part: str, asked: ConversationTurn) -> str:
    """The last question with its year, or the name that is most like the part's, replaced by the part; or empty."""
    body = asked.text.rstrip(" ?？.。")
    year, held, names = _WHEN.search(part), list(_WHEN.finditer(body)), named(part)
    if year and held:
        return f"{body[: held[-1].start()]}{year.group()}{body[held[-1].end() :]}"
    if year or not names or not asked.names:
        return ""
    new = names[-1]
    old = min(asked.names, key=lambda old: (_last_word(old.text) != _last_word(new.text), old.kind != new.kind))
    bare = body[: old.start].endswith("the ") and not part.lower().startswith("the ")
    if bare and old.kind != new.kind:
        return ""  # "the Kestrel Bridge" and "Tobias Wren" are no two of a kind
    return f"{body[: old.start]}{new.text}{body[old.end :]}"


def _last_word(name: str) -> str:
    return name[-1] if is_han(name) else name.lower().split()[-1]


# --- names -----------------------------------------------------------------------------------------------------------

_CUT = regex(
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


@lru_cache(maxsize=2_000)
def named(text: str) -> tuple[NameSpan, ...]:
    """The names in a turn of a conversation, in order."""
    return tuple(_names_zh(text)) if is_han(text) else names_of(text)


# --- what stays open -------------------------------------------------------------------------------------------------


def doubts(standing: StandaloneQuestion) -> dict[str, tuple[str, ...]]:
    """What is open in a question that was read by its conversation: its pronouns.

    Each stretch with how it may be read, the reading taken first; none where nothing is known that it may stand for.
    What the graph knows as several things is told elsewhere (`tasks/rewrite.py`), since only an index knows it.
    """
    result = standing.several | {text: () for text in standing.missing if text not in standing.several}
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
