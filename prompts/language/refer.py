"""What does an English question mean by "she", "its length", "that bridge" or "the latter"? Names in their places."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts.language.antecedents import Refers, distinct, found_for, latest
from prompts.language.asked import NOUN_KIND
from prompts.language.kinds import KIND_OF
from prompts.language.mentions import Mention, Turn, named
from prompts.language.self_said import is_quoted, says_itself, stands_for_nothing

_PRONOUN = re.compile(
    r"\b(?:(?P<person>he|him|his|she|hers|her)|(?P<thing>it|its|that one|this one)|"
    r"(?P<several>they|them|theirs?|both of them|the two(?!\s+\w)))\b(?!['’]s\b)",
    re.I,
)
_OWNING = frozenset({"his", "its", "their"})
_HERS = re.compile(
    r"\s+(?!(?:and|or|in|at|on|to|by|with|for|from|when|where|as|after|before|during|into|of)\b)\w", re.I
)
# "It" that stands for nothing.
# "The former" stands by itself, or before a verb; "the former mayor" is another thing.
_ORDERED = re.compile(
    r"\bthe (?:(?P<first>first one|former)|(?P<second>second one|latter)|(?P<other>other one|other))\b"
    r"(?:(?<=one)|(?!\s+[a-z])|(?=\s+(?:and|or|in|at|on|to|by|with|for|from|when|where|than|as|is|was|has|had|did|does|"
    r"\w+ed|built|born|made|dug|held|won|sold)\b))",
    re.I,
)
_POINTED = re.compile(
    r"\b(?P<point>this|that|the said|the(?! same)|these|those)\s+(?P<noun>[a-z][a-z-]+)\b(?P<own>['’]s)?", re.I
)
_BOUND_AFTER = re.compile(r"\s+(?:of|that|who|which|whose|where|in which|from|for|between|by)\b", re.I)
_KIND_NOUN = {
    **{word: kind for word, kind in KIND_OF.items() if len(word) > 3},
    "firm": "organisation", "business": "organisation", "organisation": "organisation", "organization": "organisation",
    "institution": "organisation", "band": "organisation", "place": "place", "country": "place", "state": "place",
    "building": "place", "region": "place", "structure": "place", "dam": "place", "movie": "work", "painting": "work",
    "series": "work", "event": "event",
}  # fmt: skip
# What may be called so whatever its own name says it is.
_GENERIC = frozenset(
    "company firm business organisation organization institution place building structure site event work".split()
)
# A brewery is a building too; a name of no known kind may be anything.
_MAY_BE = {"place": {"", "organisation"}, "organisation": {""}, "event": {""}, "work": {""}}
_SUBJECT_BEFORE = re.compile(r"\b(?:did|does|do|is|was|are|were|has|had|have|can|will|would) $", re.I)
_GOES_ON = re.compile(
    r"\s*(?:[?.,;!]|$|\b(?:in|at|on|by|with|during|after|before|when|since|until|to|is|was|are|were|did|does|do|has|have|today|now|"
    r"had|and)\b)",
    re.I,
)
_NO_NOUN = frozenset("is was are were did does do has had have one time year day way case same most".split())


@dataclass
class Resolved:
    """A question with names in the places of what stood for them. `several`: what could stand for others as well;
    `missing`: what has no antecedent."""

    text: str
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def resolve(question: str, turns: Sequence[Turn]) -> Resolved:
    """The question by the conversation; as it is where it points to nothing outside itself."""
    found = Resolved(question)
    _former(found, turns)
    _pointed(found, turns)
    _pronouns(found, turns)
    return found


def _former(found: Resolved, turns: Sequence[Turn]) -> None:
    """ "The former", "the latter", "the other": of the last two things named together."""
    match = _ORDERED.search(found.text)
    if match is None or len(named(found.text)) > 1:
        return
    pair = pair_of(turns)
    if len(pair) < 2:
        if match["first"] in {"former"} or match["second"] in {"latter"}:
            found.missing.append(match.group())
        return
    if match["other"]:
        said = {name.text for name in turns[-1].names} if turns else set()
        name = next((one for one in pair if one.text not in said), pair[1])
    else:
        name = pair[0] if match["first"] else pair[1]
    found.text = f"{found.text[: match.start()]}{name.text}{found.text[match.end() :]}"


def pair_of(turns: Sequence[Turn]) -> list[Mention]:
    """The names of the last question with two of them, else of the last turn that has two; empty where none has."""
    # The answer to a comparison may turn them round: the question's order is the one that was read last as a list.
    for turn in reversed(turns):
        names = list({name.text: name for name in turn.names}.values())
        if len(names) > 1 and (turn.is_question or len(names) == 2):
            asked = next((one for one in reversed(turns) if one.is_question), None)
            if asked is not None and not turn.is_question:
                both = [name for name in asked.names if name.text in {one.text for one in names}]
                return both if len(both) > 1 else names
            return names
    return []


def _pointed(found: Resolved, turns: Sequence[Turn]) -> None:
    """ "That bridge", "the company": the last name whose own last word it is, or which is of that kind."""
    for match in reversed(list(_POINTED.finditer(found.text))):
        noun, point = match["noun"].lower(), match["point"].lower()
        if noun in _NO_NOUN or _BOUND_AFTER.match(found.text, match.end()) or is_quoted(found.text, match.start()):
            continue
        if _introduced(noun, found.text[: match.start()]) or (point == "the" and not _may_point(found.text, match)):
            continue
        name = _called(noun, turns, loosely=point != "the")
        if name is None:
            if point in {"this", "that"} and (noun in _KIND_NOUN or noun in NOUN_KIND):
                found.missing.append(match.group())
            continue
        owner = f"{name.text}{match['own'] or ''}"
        article = "the " if name.kind == "place" and name.text.lower().endswith(noun) else ""
        found.text = f"{found.text[: match.start()]}{article}{owner}{found.text[match.end() :]}"


def _introduced(noun: str, before: str) -> bool:
    """Whether the question itself has spoken of such a thing: "there is a country … that country"."""
    return re.search(rf"\b(?:an?|the|which|what) (?:[\w-]+ ){{0,2}}{noun}\b", before, re.I) is not None


def _may_point(text: str, match: re.Match[str]) -> bool:
    """Whether "the …" may mean something said before: the question has no name, and the noun stands by itself, as a
    subject after its auxiliary, or before what goes on with the sentence."""
    if named(text) or re.match(r"\s+[A-Z]", text[match.end() :]):
        return False
    return bool(_SUBJECT_BEFORE.search(text[: match.start()]) or _GOES_ON.match(text, match.end()))


def _called(noun: str, turns: Sequence[Turn], *, loosely: bool) -> Mention | None:
    """The last thing that bears the noun in its name; else, after "that" and for kinds of things, of its kind."""
    names = sorted(distinct(turns), key=lambda name: (latest(turns) - name.turn, not name.asked))
    for name in names:
        words = name.text.lower().split()
        if len(words) > 1 and noun.rstrip("s") in {words[-1].rstrip("s"), words[0]}:
            return name
    kind = _KIND_NOUN.get(noun) or (NOUN_KIND.get(noun, "") if loosely or noun in {"city", "town", "village"} else "")
    if noun in _GENERIC:
        return next((name for name in names if name.kind == kind), None) or next(
            (name for name in names if name.kind in _MAY_BE.get(kind or "", ()) and name.asked), None
        )
    fitting = (name for name in names if name.kind == kind and not _other_sort(name.text, noun))
    return next(fitting, None) if kind else None


def _other_sort(name: str, noun: str) -> bool:
    """Whether a name's last word says that it is something else: no bridge is a city."""
    last = name.lower().rpartition(" ")[2]
    return last != noun and last in KIND_OF


def _pronouns(found: Resolved, turns: Sequence[Turn]) -> None:
    own = named(found.text)
    for match in reversed(list(_PRONOUN.finditer(found.text))):
        refers: Refers = "person" if match["person"] else "thing" if match["thing"] else "several"
        if stands_for_nothing(found.text, match) or says_itself(found.text, match, spoken=bool(turns)):
            continue
        names = found_for(refers, found.text, turns)
        if not names:
            found.missing.insert(0, match.group())
            continue
        if not names[0].kind and match["person"] and own:
            continue  # a name that nothing shows to be a person's, in a question that may mean one of its own
        if len(names) > 1:
            found.several[match.group()] = tuple(name.text for name in names)
        found.text = f"{found.text[: match.start()]}{_written(match, names[0].text)}{found.text[match.end() :]}"


def _written(match: re.Match[str], name: str) -> str:
    pronoun = match.group().lower()
    owns = pronoun in _OWNING or (pronoun == "her" and _HERS.match(match.string, match.end()) is not None)
    return f"{name}'" if owns and " and " not in name and name.endswith("s") else f"{name}'s" if owns else name
