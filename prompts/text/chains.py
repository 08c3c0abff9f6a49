"""Questions inside a question: "Where was the engineer born who designed X?" is two in a row.

The innermost description becomes the first question; what it finds takes its place ({1}, {2}, …) in the next.
"""

import re
from collections.abc import Mapping

MAX_LINKS = 4
_PLACEHOLDER = re.compile(r"\{(\d)\}")
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
    """The questions to ask one after another, the given one last; a plain question comes back alone.

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


def needs(question: str) -> list[int]:
    """The numbers of the answers that a question waits for."""
    return [int(number) for number in _PLACEHOLDER.findall(question)]


def fill(question: str, answers: Mapping[int, str]) -> str:
    """Put answers in their places; `{n}` without an answer stays."""
    return _PLACEHOLDER.sub(lambda match: answers.get(int(match[1]), match[0]), question)
