"""What does a sentence claim of a name in it: who is accused, punished, denies, decides, announces, begins or ends?

Precision first. A claim needs a verb that tells of one, in a form that states (no question, no "if", no "would"), and a
name that is clearly its subject. The status is that of the matter: true where the sentence states it, suspected where
it tells of a suspicion, false where it tells that the matter is untrue or did not come about.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from prompts.language.names import NameSpan
from prompts.language.periods import Period, period_at
from prompts.language.relations import PRONOUN
from prompts.language.words import is_han
from prompts.reading.found import ClaimFound, Status

Kind = Literal["accusation", "denial", "judgement", "sanction", "decision", "announcement", "event"]


@dataclass(frozen=True, slots=True)
class _Cue:
    """Verbs that tell of a claim. `of_patient`: the claim is about whom it is done to, not about who does it."""

    kind: Kind
    status: Status
    of_patient: bool
    english: str
    chinese: str


_CUES = (
    _Cue(
        "accusation", "suspected", True,
        r"accuse[sd]|suspected|charged with|indicted|sued|under investigation|investigated for",
        "指控|被控|涉嫌|起诉|举报",
    ),
    _Cue(
        "accusation", "suspected", False,
        r"allege[sd]?|allegedly|reportedly|purportedly|supposedly|rumou?red",
        "据称|据传|传闻|疑似|声称",
    ),
    _Cue("denial", "false", False, r"den(?:ies|ied)|refuted|disproved|debunked|retracted", "否认|驳斥|辟谣"),
    _Cue("judgement", "false", True, r"acquitted|exonerated|cleared of|found not guilty", "无罪释放|撤销指控"),
    _Cue(
        "sanction", "true", True,
        r"fined|convicted|sentenced|found guilty|penali[sz]ed|disqualified|impeached|expelled|arrested|imprisoned|"
        r"jailed|reprimanded|prosecuted|extradited",
        "罚款|处罚|判处|判刑|逮捕|查处|开除|通报批评",
    ),
    _Cue(
        "decision", "true", False,
        r"approve[sd]?|authori[sz]e[sd]?|ratified|vetoed|overturned|revoked|ruled that|voted (?:to|for|against)|"
        r"decided (?:to|that|against)|forbade|banned|prohibited|legali[sz]ed|abolished",
        "批准|否决|决定|授权|裁定|核准|废除|禁止",
    ),
    _Cue("decision", "false", False, r"reject(?:s|ed)|turned down|refused to|declined to", "驳回|拒绝"),
    _Cue(
        "announcement", "true", False,
        r"announce[sd]?|unveiled|declared (?:that|its|war|independence|bankruptcy)|pledged|vowed|"
        r"confirmed that|warned that|admitted that|conceded that",
        "宣布|宣告|公布|承诺|警告|承认",
    ),
    # A claim only where the sentence also says when.
    _Cue(
        "event", "true", False,
        r"founded|established|opened|reopened|closed|launched|appointed|elected|re-elected|resigned|dismissed|"
        r"retired (?=from|in|as|at|on|after)|"
        r"acquired|merged|inaugurated|dissolved|demolished|commissioned|decommissioned|destroyed|collapsed|completed|"
        r"discontinued|renamed|promoted|awarded|signed",
        "成立|创立|创办|通车|开业|关闭|收购|上市|任命|当选|辞职|签署|竣工|落成|建成|启用|开通|投产|投入使用|倒闭|合并|更名",
    ),
)  # fmt: skip
# With capitals as written: at a sentence's start no verb has a subject before it.
_ENGLISH = re.compile(rf"\b(?:{'|'.join(f'({cue.english})' for cue in _CUES)})\b")
_NOT_A_VERB_HAN = "是否|性|因素|书|权|者|率|的|公司|后|以来|前|时"
_CHINESE = re.compile(f"(?:{'|'.join(f'({cue.chinese})' for cue in _CUES)})(?!{_NOT_A_VERB_HAN})")

# What stands before a verb that states nothing, or states the contrary.
_NOT = re.compile(
    r"(?:\b(?:not|never|neither|nor)|n['’]t)(?:\s+\w+){0,2}\s*$|(?:[没沒][有曾]?|未[曾能]?|不[曾会再]?)$", re.I
)
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|would|should|could|can|cannot|may|might|must|will|shall|to|need|ought)(?:\s+\w+){0,3}\s*$|"
    r"(?:如果|若|假如|是否|将|可能|应该?|可以?|能否|能够?|需要?|会|等待|拟|用于|用来|以便|来|去|如何|要)[^，。；]{0,4}$",
    re.I,
)
_NOUN = re.compile(
    r"\b(?:the|a|an|its|their|his|her|our|newly|recently|of|all|any|more|most|by)\s+$|(?:否认|驳斥|撤销|面临|有关|的)了?$",
    re.I,
)
_PASSIVE = re.compile(
    r"\b(?:was|were|is|are|been|be|being|got)(?:\s+(?:\w+ly|also|later|then|once|first|again))*\s*$", re.I
)
_LACKS_OBJECT = re.compile(r"\s*(?:of|by|for|in|on|over|to|as|and|with|[.,;])(?:\s|$)", re.I)

# What may stand between a subject and its verb.
_GOES_ON = re.compile(
    r"\s*(?:$|,|\(|(?:was|were|is|are|has|have|had|did|does|do|been|also|later|then|soon|once|again|first|finally|who|which|that|and|"
    r"of|in|at|on|for|from|\w+ly)\b)",
    re.I,
)
_CLAUSE = re.compile(
    r"[;:!?]|\b(?:he|she|it|they|while|whereas|although|though|because|when|where|but|if|after|before|as)\b", re.I
)
_ASIDE = re.compile(
    r"(?:\b(?:in|at|on|of|for|by|with|from|to|near|under|over|into|between|through|across|against|during|than|as|about|"
    r"after|before|within|behind)(?:\s+(?:the|a|an|its|his|her|their)(?:\s+(?:[a-z]+|\d+\w\w))?)?|[在于对向为与和及从给由被将把用按以随依因])[\s\"“‘]*$",
    re.I,
)
_AND = re.compile(r"(?:,|\b)\s*(?:and|then)\b(?!.*\b(?:he|she|it|they)\b)[^,]{0,30}$", re.I)
_POSSESSIVE = frozenset({"his", "her", "its", "their"})
_AGENT = re.compile(r"\bby\s+(?:the\s+|an?\s+)?$", re.I)
_TIME = re.compile(
    r"[于在]?\d+[年月日号]|[于在]?\d{4}|今年|去年|上个?月|近日|日前|当天|随后|已经?|正式|共同|联合|最终|后来|首次|再次|一度"
)
_REACH, _REACH_HAN = 90, 6  # characters between a verb and its subject or object
_BY_HAN = ("被", "由", "遭")
_NO_SUBJECT_HAN = ("的", "、", "》", "”", "》的")
_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）")
_LONGEST = 600  # characters: what is longer is no sentence


@dataclass(frozen=True, slots=True)
class _Verb:
    cue: _Cue
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Sentence:
    """`text[start:end]` with the names in it, and the thing that a pronoun at its start stands for, if any."""

    text: str
    start: int
    end: int
    names: Sequence[NameSpan]
    topic: str

    @property
    def line(self) -> str:
        return " ".join(self.text[self.start : self.end].split())


def claims_in(text: str, start: int, end: int, names: Sequence[NameSpan], topic: str) -> Iterator[ClaimFound]:
    """The claims of the sentence `text[start:end]` about its `names`, or about the topic by a pronoun; one of a kind.

    The quote is the sentence, exactly.
    """
    if end - start > _LONGEST or text[end - 1] in "?？" or not (names or topic):
        return
    han = is_han(text[start:end])
    sentence = _Sentence(text, start, end, names, topic)
    verbs = list(_verbs(sentence, _CHINESE if han else _ENGLISH))
    kinds = {verb.cue.kind for verb in verbs}
    known: set[tuple[str, Kind]] = set()
    for verb in verbs:
        subject, other = _ends_han(sentence, verb) if han else _ends(sentence, verb)
        period = _period(sentence, verb)
        if not subject or (subject, verb.cue.kind) in known or (verb.cue.kind == "event" and not period):
            continue
        known.add((subject, verb.cue.kind))
        yield ClaimFound(
            subject=subject, object="" if other == subject else other, kind=verb.cue.kind,
            status=_status(verb.cue, kinds), since=period.since, until=period.until,
            description=sentence.line, quote=text[start:end],
        )  # fmt: skip


def _status(cue: _Cue, told: Set[Kind]) -> Status:
    """What the whole sentence says of a matter, by the kinds of verbs in it."""
    if cue.kind == "denial" and "accusation" in told:
        return "suspected"  # "accused of it, which he denied": who is right stays open
    if cue.kind in ("sanction", "accusation") and "judgement" in told:
        return "false"  # "convicted, but acquitted on appeal"
    return cue.status


def _verbs(sentence: _Sentence, cues: re.Pattern[str]) -> Iterator[_Verb]:
    """The verbs that state something; one with "not" tells that its matter is false."""
    for match in cues.finditer(sentence.text, sentence.start, sentence.end):
        cue = _CUES[(match.lastindex or 1) - 1]
        before = sentence.text[max(sentence.start, match.start() - 60) : match.start()]
        if _UNREAL.search(before) or _NOUN.search(before):
            continue
        if _NOT.search(before):
            if cue.status == "false" or cue.kind == "event":
                continue
            cue = replace(cue, status="false")
        yield _Verb(cue, match.start(), match.end())


def _period(sentence: _Sentence, verb: _Verb) -> Period:
    """The dates close to the verb; what stands in brackets mostly dates something else."""
    said = _BRACKETS.sub(lambda match: " " * len(match.group()), sentence.text[sentence.start : sentence.end])
    at = verb.start - sentence.start
    first = max(0, at - _REACH)
    return period_at(said[first : at + 2 * _REACH], at - first)


# --- whom it is about -------------------------------------------------------------------------------------------------


def _ends(sentence: _Sentence, verb: _Verb) -> tuple[str, str]:
    """Subject and object of the claim, each empty where the sentence does not tell."""
    before, after = _before(sentence, verb), _after(sentence, verb)
    agent = after if after and _AGENT.search(sentence.text[verb.end : after.start]) else None
    passive = _PASSIVE.search(sentence.text[sentence.start : verb.start]) is not None
    if passive or agent or not verb.cue.of_patient:
        return before, _text(agent if passive else after)
    if _LACKS_OBJECT.match(sentence.text, verb.end, sentence.end):  # "Korb, accused of fraud, …"
        return before, ""
    return _text(after), before


def _before(sentence: _Sentence, verb: _Verb) -> str:
    """The nearest name before the verb that can be its subject, else what a pronoun at the sentence's start means."""
    text = sentence.text
    earlier = [name for name in sentence.names if name.end <= verb.start]
    if earlier and _AND.search(text[earlier[-1].end : verb.start]):  # "Korb left Velin and announced …"
        return _first(sentence, earlier)
    for name in reversed(earlier):
        gap = text[name.end : verb.start]
        if len(gap) > _REACH or _CLAUSE.search(gap):
            return ""
        if _ASIDE.search(text[sentence.start : name.start]):
            if gap.lstrip().startswith(",") and not _opens_aside(sentence, name):
                return ""  # "the harbour of Velin, founded …": harbour or town?
            continue
        return name.text if _GOES_ON.match(gap) else ""
    return _topic(sentence, verb)


def _first(sentence: _Sentence, earlier: Sequence[NameSpan]) -> str:
    """What the sentence is about from its start on: a pronoun's thing, or the first name that is no adverbial."""
    if PRONOUN.match(sentence.text, sentence.start, earlier[0].start):
        return sentence.topic
    outside = (name for name in earlier if not _ASIDE.search(sentence.text[sentence.start : name.start]))
    return _text(next(outside, None))


def _topic(sentence: _Sentence, verb: _Verb) -> str:
    """The topic where a pronoun at the sentence's start is the verb's subject."""
    pronoun = PRONOUN.match(sentence.text, sentence.start, sentence.end)
    if pronoun is None or pronoun.end() > verb.start or pronoun[1].lower() in _POSSESSIVE:
        return ""
    gap = sentence.text[pronoun.end() : verb.start]
    return sentence.topic if len(gap) <= _REACH and not _CLAUSE.search(gap) and _GOES_ON.match(gap) else ""


def _opens_aside(sentence: _Sentence, inner: NameSpan) -> bool:
    """Whether the name before is set apart by a comma from an aside that holds `inner`: "Reyd, head of the Bank, …"."""
    earlier = [name for name in sentence.names if name.end <= inner.start]
    return bool(earlier) and sentence.text[earlier[-1].end : inner.start].lstrip().startswith(",")


def _after(sentence: _Sentence, verb: _Verb) -> NameSpan | None:
    """The first name after the verb in its clause that is an object or who did it, not a place or a time."""
    for name in sentence.names:
        if name.start < verb.end:
            continue
        gap = sentence.text[verb.end : name.start]
        if len(gap) > _REACH or _CLAUSE.search(gap):
            return None
        if _AGENT.search(gap) or not _ASIDE.search(gap):
            return name
    return None


def _ends_han(sentence: _Sentence, verb: _Verb) -> tuple[str, str]:
    """The same in Chinese, where names stand close to the verb; behind 被 or 由 stands who does it."""
    text = sentence.text
    before = [name for name in sentence.names if name.end <= verb.start]
    agent = before.pop() if before and text[before[-1].start - 1] in _BY_HAN else None
    actor = (
        before[-1] if before and _belongs_han(sentence, before[-1], agent.start - 1 if agent else verb.start) else None
    )
    after = next((name for name in sentence.names if name.start >= verb.end), None)
    if after is not None and after.start - verb.end > _REACH_HAN:
        after = None
    done_to = agent is not None or text[verb.start - 1] in _BY_HAN
    if verb.cue.of_patient and not done_to and after is not None:
        return after.text, _text(actor)
    return _text(actor), _text(agent or after)


def _belongs_han(sentence: _Sentence, name: NameSpan, until: int) -> bool:
    """Whether little but times stands between a name and the verb (or who does it), and the name is no adverbial."""
    gap = _TIME.sub("", sentence.text[name.end : until]).lstrip(")）")
    if len(gap) > _REACH_HAN or gap.startswith(_NO_SUBJECT_HAN):
        return False
    return not _ASIDE.search(sentence.text[sentence.start : name.start])


def _text(name: NameSpan | None) -> str:
    return name.text if name else ""
