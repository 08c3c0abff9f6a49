"""What does half a question ask? "And in 2022?" and "What about the Maltings Bridge?" are the one before with one part
changed."""

import re
from collections.abc import Sequence

from prompts.language.antecedents import Refers, found_for
from prompts.language.asked import NOUN_KIND, is_plural
from prompts.language.mentions import Mention, Turn, groups_of, named
from prompts.language.question import ask

_POLITE = re.compile(r"^(?:thanks|thank you|ok(?:ay)?|great|good|i see|right|hm+|yes|no|sure)\s*[.,!;]\s+", re.I)
_MARKED = re.compile(r"^(?:(?:and|but|or|so|then|ok(?:ay)?)\b[\s,]*)?(?:what|how) about\s+", re.I)
_LINKED = re.compile(r"^(?:and|but|or|so|then|ok(?:ay)?|also)\b[\s,]*(?:then\b[\s,]*)?", re.I)
_CLAUSE = re.compile(
    r"\b(?:who|whose|what|when|where|why|which|how|is|was|are|were|do|does|did|has|have|had|can|could|will|would|should|"
    r"tell|describe|compare|list|name|give|explain|summari[sz]e|show|find)\b",
    re.I,
)
_WH = (
    r"who|whom|what|when|where|why|how|since when|until when|by whom|how (?:long|much|many|high|old|far|big|wide|deep)"
)
_ONLY_WH = re.compile(
    rf"^(?P<wh>{_WH})(?:\s+(?:so|(?:was|is|did|were)\s+(?:that|this)(?:\s+(?:happen|so))?))?\s*[?.!]*$", re.I
)
_OPENS = re.compile(
    r"^(?:(?:and|but)\s+)?(?:how (?:many|much)(?: (?!is|was|did|does)\w+)?|how \w+|"
    r"(?:in |at )?(?:which|what) (?:year|city|place|country)|who|what|"
    r"when|where|why|how)\s+(?=(?:did|was|were|is|are|does|do|has|have|had|can|will)\b)",
    re.I,
)
_AUXILIARY = re.compile(r"^(?:did|was|were|is|are|does|do|has|have|had|can|will)\b", re.I)
_WHO_DID = re.compile(r"^who\s+(?P<verb>\w+ed|built|led|held|made|won|sold|bought)\s+(?P<object>[^?]+)\?*$", re.I)
_YEAR = r"(?:1[0-9]|20)\d{2}"
_WHEN = (
    rf"(?:(?:early|late|spring|summer|autumn|winter|january|february|march|april|may|june|july|august|september|october|"
    rf"november|december|q[1-4]|the)\s+(?:of\s+)?)*{_YEAR}s?"
)
_IN_TIME = re.compile(rf"^(?P<prep>(?:in|for|during|by|since|before|after|until|from)\s+)?(?P<when>{_WHEN})$", re.I)
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|q[1-4]|spring|summer|"
    r"autumn|winter)"
)
_IN_MONTH = re.compile(rf"^(?:in |for |during )?(?P<month>{_MONTH})$", re.I)
_STEP = re.compile(
    r"^(?:in |for )?the (?:(?P<back>year before|previous year|prior year)|(?:year after|next year|following year))$",
    re.I,
)
_TIME_HELD = re.compile(rf"(?P<prep>\b(?:in|for|during|by|since|before|after|until)\s+)?\b(?P<when>{_WHEN})\b", re.I)
_ATTRIBUTE = re.compile(r"^(?P<owner>its|his|her|their|the)\s+(?P<noun>(?:[a-z-]+(?:['’]s)?\s+){0,2}?[a-z-]+)$", re.I)
_HELD_OF = re.compile(r"\bthe (?P<noun>(?:[a-z-]+ ){0,2}[a-z-]+) of ", re.I)
_HELD_OWN = re.compile(r"['’]s? (?P<noun>[a-z-]+(?: [a-z-]+)?)(?=\s*\?)", re.I)
_PREPOSED = re.compile(r"^(?P<prep>in|at|on|by|for|from|to|of|with)\s+", re.I)
_UNOWNED = re.compile(r"\b(?:who|what) (?:is|was|are|were) the (?P<noun>(?:[a-z-]+ )?[a-z-]+)\s*\?*$", re.I)
_COMPARES = re.compile(r"^(?:and\s+)?(?:which|who|what)(?: one)? (?:is|was|are|were|has|had|came|opened|did)\b", re.I)
_ANOTHER = re.compile(
    r"^(?:and\s+)?who (?:is|was|were|are) the (?:previous|next|first|last|current|new|second|former) "
    r"(?P<one>ones?)\s*\?*$",
    re.I,
)
_HELD = re.compile(
    r"^who (?:is|was|are|were) the (?:(?:previous|current|first|new|present) )?(?P<thing>[\w-]+ of [^?]+)", re.I
)
_ROLES = frozenset("successor predecessor capital founder founders members purpose cause result reason date".split())


def whole(question: str, turns: Sequence[Turn]) -> str:
    """The question with what it leaves out filled in from the last one; as it is where it leaves out nothing."""
    asked = next((turn for turn in reversed(turns) if turn.is_question), None)
    if asked is None:
        return question
    question = _POLITE.sub("", question)
    compared = _compared(question, asked)
    if compared:
        return compared
    marked, linked = _MARKED.match(question), _LINKED.match(question)
    rest = question[(marked or linked).end() :] if marked or linked else question  # type: ignore[union-attr]
    part = rest.strip(" ?.!,")
    only = _ONLY_WH.match(rest)
    if only:
        return _other_word(only["wh"], asked.text)
    if not part or (_CLAUSE.search(part) and not marked):
        return _owned(f"{rest[:1].upper()}{rest[1:]}" if marked or linked else question, turns)
    if not (marked or linked or named(part) or _IN_TIME.match(part) or _ATTRIBUTE.match(part)):
        return question
    return _in_time(part, asked.text) or _of_its_own(part, asked, turns) or _other_name(part, asked)


def _compared(question: str, asked: Turn) -> str:
    """ "Which is larger?" of the things compared before; "Who was the previous one?" of the same office."""
    one = _ANOTHER.search(question)
    held = _HELD.search(asked.text)
    if one and held:
        return f"{question[: one.start('one')]}{held['thing'].strip()}?"
    if named(question) or not _COMPARES.search(question) or not ask(question).direction:
        return ""
    options = ask(asked.text).options or tuple(name.text for group in groups_of(asked) for name in group)
    if len(options) < 2:
        return ""
    return f"{question.rstrip(' ?')}, {', '.join(options[:-1])} or {options[-1]}?"


def is_part(question: str) -> bool:
    """Whether a question is only a part of one, which nobody can answer without the one before."""
    marked = _MARKED.match(question) or _LINKED.match(question)
    part = question[marked.end() :] if marked else question
    return bool(_ONLY_WH.match(part)) or (marked is not None and not _CLAUSE.search(part))


def _other_word(word: str, asked: str) -> str:
    """The last question with another question word: "When did X close?", "why?" → "Why did X close?"."""
    body = asked.rstrip(" ?")
    head = word[:1].upper() + word[1:].lower()
    opens = _OPENS.match(body)
    if opens:
        return f"{head} {body[opens.end() :]}?"
    if _AUXILIARY.match(body):
        return f"{head} {body[:1].lower()}{body[1:]}?"
    done = _WHO_DID.match(body)
    if done:
        return f"{head} was {done['object'].strip()} {done['verb']}?"
    return f"{body}, and {word.lower()}?"


def _in_time(part: str, asked: str) -> str:
    """The last question at another time."""
    body = asked.rstrip(" ?.")
    held = list(_TIME_HELD.finditer(body))
    step = _STEP.match(part)
    if step and held:
        year = re.search(_YEAR, held[-1]["when"])
        if year:
            other = str(int(year.group()) + (-1 if step["back"] else 1))
            return f"{body[: held[-1].start('when')]}{other}{body[held[-1].end('when') :]}?"
    month, old = _IN_MONTH.match(part), re.search(rf"\b{_MONTH}\b", body, re.I)
    if month and old:
        return f"{body[: old.start()]}{month['month']}{body[old.end() :]}?"
    found = _IN_TIME.match(part)
    if found is None:
        return ""
    if not held:
        return f"{body} {found['prep'] or 'in '}{found['when']}?"
    start = held[-1].start("prep") if found["prep"] and held[-1]["prep"] else held[-1].start("when")
    said = found.group() if start == held[-1].start("prep") else found["when"]
    return f"{body[:start]}{said}{body[held[-1].end() :]}?"


def _of_its_own(part: str, asked: Turn, turns: Sequence[Turn]) -> str:
    """Another thing asked of what the last question was about: "And its area?", "And the width?"."""
    found = _ATTRIBUTE.match(part)
    if found is None or named(part):
        return ""
    noun, body = found["noun"].lower(), asked.text.rstrip(" ?.")
    held = _HELD_OF.search(body) or _HELD_OWN.search(f"{body}?")
    owner = found["owner"].lower()
    same = held is not None and _is_who(noun) == _is_who(held["noun"])
    if held and same and asked.names and owner in {"its", "the"}:
        return f"{body[: held.start('noun')]}{noun}{body[held.end('noun') :]}?"
    refers: Refers = "person" if owner in {"his", "her"} else "several" if owner == "their" else "thing"
    names = found_for(refers, part, turns)
    if not names:
        return ""
    asks = "Who" if _is_who(noun) else "What"
    if re.search(r"['’]s\b", noun):
        return f"{asks} is {names[0].text}'s {noun}?"
    return f"{asks} {'are' if is_plural(noun.split()[-1]) else 'is'} the {noun} of {names[0].text}?"


def _is_who(noun: str) -> bool:
    return NOUN_KIND.get(noun.lower().rpartition(" ")[2]) == "person"


def _other_name(part: str, asked: Turn) -> str:
    """The last question of another thing: in the place of the name that is most like it."""
    body = asked.text.rstrip(" ?.")
    names = named(part)
    if not names or not asked.names:
        return f"{body} {part}?" if _PREPOSED.match(part) else f"{body}: {part}?" if asked.names else f"{part}?"
    preposed = _PREPOSED.match(part)
    new = part[preposed.end() :] if preposed else part
    old = _likest(names[-1].text, names[-1].kind, asked.names)
    start = old.start
    if preposed and not re.search(rf"\b{preposed['prep']} (?:the )?$", body[:start], re.I):
        return f"{body} {part}?"
    if re.search(r"\bthe $", body[:start], re.I):
        article = re.match(r"the ", new, re.I) is not None
        if not article and names[-1].kind == "thing" and not _ends_alike(names[-1].text, old.text):
            return f"{body}: {new}?"  # "the Kestrel Bridge" and "Tobias Wren" are no two of a kind
        start = start - 4 if article else start
    return f"{body[:start]}{new}{body[old.end :]}?"


def _likest(name: str, kind: str, names: Sequence[Mention]) -> Mention:
    """The name of a question that another takes the place of: same last word, same kind, else the first."""

    def unlike(old: Mention) -> tuple[bool, bool]:
        return not _ends_alike(old.text, name), (old.kind or "thing") != kind

    return min(names, key=unlike)


def _ends_alike(one: str, two: str) -> bool:
    return one.lower().rsplit(maxsplit=1)[-1] == two.lower().rsplit(maxsplit=1)[-1]


def _owned(question: str, turns: Sequence[Turn]) -> str:
    """ "Who was the founder?" of what the conversation is about; another question as it is."""
    found = _UNOWNED.search(question)
    if found is None or named(question):
        return question
    noun = found["noun"].split()[-1].lower()
    if noun not in _ROLES and noun not in NOUN_KIND:
        return question
    names = found_for("thing", question, turns)
    return f"{question.rstrip(' ?')} of {names[0].text}?" if names else question
