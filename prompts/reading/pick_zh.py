"""Which stretch of a Chinese sentence stands where the question has its asking word?

Chinese asks in place: "由哪个公司开发" is answered by "由东华实业开发". So the words before and after the asking
word are looked for in the sentence, and what stands between them, or beside the one that is there, is the value.
"""

import re

from prompts.language.asked import Ask
from prompts.language.names_zh import tagged

LONGEST, LONGEST_LIST = 24, 60
_ASKING = re.compile(
    r"由?谁|什么时候|什么样的?|什么|哪[一二两三四五六七八九十几]?[个些种位家项座条艘部所]|哪[里儿]?|多少|几|何(?:时|处|地|人|年)?|"
    r"怎么样|怎样|怎么|如何"
)
_SORTED = re.compile(r"什么样?的?|哪.*")  # after these stands the sort of thing that is asked for
_NOUN_TAGS = ("n", "a", "b", "j", "l", "vn", "q", "k")
_STOPS = "。！？；;!?\n"
_CLAUSE = re.compile(r"[，,。！？；;!?\n（(]|以及|并且|而且|但是|其中|因此")
_LIST = re.compile(r"[，,。！？；;!?\n（(]")
_LEAD = re.compile(
    r"^(?:主要|大约|约|共|一共|总共|则|即|分别|都|就|被|是|为|在|于|由|有|了|着|叫做|叫|称为|称|名为|作|到|至|以|从|的|[：:，,、\s])+"
)
_TAIL = re.compile(r"(?:等等|等|的|了|之一|所|而|是|为|在|于|和|与|及|、|\s)+$")
_COPULA = re.compile(r"^[^，。；]{0,6}?(?:是|为|有|在|于|叫做?|称为?|名为|[：:])")
_NOTHING = frozenset("的了是在和与一个这那其他她它们之该此")
_BRACKETED = re.compile(r"《[^《》]{1,40}》")
_WORKS = re.compile(r"作品|著作|小说|书|电影|专辑|歌|节目|文章|诗|剧|典籍")
_NUMBERED = re.compile(r"(?:第?[\d一二两三四五六七八九十百千万亿零〇.,～~－—-]+|数)[^\s，。、；的了和是（(]{0,3}")


def pick_zh(ask: Ask, text: str) -> str:
    """The value as written in `text`, or an empty string."""
    found = list(_ASKING.finditer(ask.text))
    if not found:
        return ""
    asking = found[-1]
    if ask.expects in {"date", "money"}:
        return ""
    before, after = ask.text[: asking.start()], ask.text[asking.end() :].rstrip("？?。 ")
    if _SORTED.fullmatch(asking.group()):
        after = _without_noun(after)
    if ask.expects == "number":
        return _figure(ask.text[asking.end() : asking.end() + 1], before, text)
    if _WORKS.search(ask.text[asking.start() :]) or (_WORKS.search(before[-6:]) and ask.expects == "name"):
        titles = [title for title in _BRACKETED.findall(text) if title not in ask.text]
        if titles:
            return "、".join(dict.fromkeys(titles)) if ask.plural else titles[0]
    return _between(before, after, text, several=ask.plural) or ""


def _without_noun(words: str) -> str:
    """What follows the noun that tells the sort of thing: "公司开发" → "开发"."""
    for _, tag, start in tagged(words):
        if not tag.startswith(_NOUN_TAGS):
            return words[start:]
    return ""


def _between(before: str, after: str, text: str, *, several: bool) -> str:
    """What stands after the last words before the asking word, and before the first words after it."""
    left, right = _anchor(before, text, last=True), _anchor(after, text, last=False)
    limit = LONGEST_LIST if several else LONGEST
    if left and right and 0 < right[0] - left[1] <= limit and not set(text[left[1] : right[0]]) & set(_STOPS):
        value = _trimmed(text[left[1] : right[0]])
        if value:
            return value
    if left and left[2] >= 1:
        rest = text[left[1] :]
        copula = _COPULA.match(rest)
        rest = rest[copula.end() :] if copula else rest
        return _cut(rest, limit, several)
    if right and right[2] >= 2:
        head = re.split(r"[，,。！？；;!?\n]|由|被|是|在", text[: right[0]])[-1]
        return _trimmed(head) if len(head) <= limit else ""
    return ""


def _anchor(words: str, text: str, *, last: bool) -> tuple[int, int, int] | None:
    """The longest run at the asking word's side that the text has: (start, end, length); at least one telling sign."""
    words = re.sub(r"[，,。：:的是]+$" if last else r"^[，,。：:的是]+", "", words)
    for size in range(min(8, len(words)), 0, -1):
        run = words[-size:] if last else words[:size]
        if size == 1 and run in _NOTHING:
            continue
        at = text.find(run)
        if at >= 0 and (size > 1 or run in "由为以在叫称属生"):
            return at, at + size, size
    return None


def _cut(rest: str, limit: int, several: bool) -> str:
    stop = (_LIST if several else _CLAUSE).search(_LEAD.sub("", rest))
    rest = _LEAD.sub("", rest)
    value = _trimmed(rest[: stop.start()] if stop else rest)
    return value if len(value) <= limit else ""


def _trimmed(value: str) -> str:
    return _TAIL.sub("", _LEAD.sub("", value)).strip("「」“”\"' ，,。、；：:")


def _figure(unit: str, before: str, text: str) -> str:
    """The figure with the unit that the question asks in, nearest after the words before the asking word."""
    left = _anchor(before, text, last=True)
    at = left[1] if left else 0
    found = [match for match in _NUMBERED.finditer(text) if not unit or unit in match.group() or not unit.strip()]
    found = found or list(_NUMBERED.finditer(text))
    nearest = min(found, key=lambda match: (match.start() < at, abs(match.start() - at)), default=None)
    if nearest is None:
        return ""
    value = nearest.group()
    return value[: value.index(unit) + len(unit)] if unit and unit in value else value
