"""Names in the turns of a Chinese conversation: the stretches between function words, without verbs at their ends."""

import re

from prompts.text.names import NameSpan
from prompts.text.names_zh import LONGEST_PERSON, SURNAMES, is_generic, kind_of, tagged
from prompts.text.words import CJK

_TITLED = re.compile(r"《([^《》]{1,30})》")
_CUT = re.compile(
    rf"[^{CJK}A-Za-z·]+|(?<=\d)[年月日号]|第[一二三四五六七八九十]{{1,2}}[次届个座]|什么时候|什么|为什么|为何|何[时地处人]|怎样|如何|"
    r"怎么|多少|多[长高大宽深远重久]|哪一?[年个座家里位条些]|哪|谁|现在|目前|当时|如今|介绍一下|介绍|请问|请|告诉我|比较|"
    r"是否|是不是|有没有|曾经|曾|已经|全长|横跨|位于|坐落于?|出生于?|成立于?|"
    r"设计|建造|修建|创办|创立|举办|主持|开放|建成|生产|担任|当上|毕业|去世|结婚|属于|来自|"
    r"[长高宽深重](?=\d)|[写画作拍办](?=[的了过])|过(?![^过])|[他她它](?:们)?|[这那该此其](?!里)|"
    r"[是由的在有和与跟及于从被为了把对向吗呢吧还都也更最就]|[之以](?=[前后间])|会(?=[不在有是被去来把给])"
)
# A cut character that belongs to the name before or after it in these.
_KEPT = re.compile(r"公有|和平|共和国|向阳|永和|太和|和田|有限|为民|对马|就业|最高")
_PERSON_AFTER = re.compile(
    r"(?:于)?(?:\d+年)?(?:出生|结婚|去世|设计|创办|创立|写|画|作曲|当上|担任|主持|毕业|教|导演|什么时候(?:出生|当上|结婚|去世)|"
    r"在哪里(?:出生|上学)|举办)"
)
_PERSON_BEFORE = re.compile(r"(?:由|被|是谁|作者是|导演是|创始人是|[所校院局社会市县馆厂]长是)$")
_PLACE_BEFORE = re.compile(r"(?:出生于|位于|总部在|来自|省会是|首都是|在|坐落于)$")
_MOST = 14  # characters of a name
# A word by itself that is one of these names nothing: "面积", "写过", "那里".
_COMMON = ("n", "v", "vn", "a", "an", "d", "r", "m", "t", "f", "c", "p", "u", "q", "y", "l", "i", "b")
_DROPPED = ("v", "vd", "p", "d", "c", "r", "u", "m", "q", "f", "y", "t", "a", "ad")


def names_in_turn(text: str) -> list[NameSpan]:
    """The names in a turn, in order, without overlaps; the kind is "thing" where nothing tells it."""
    works = [NameSpan(found[1], found.start(1), found.end(1), "work") for found in _TITLED.finditer(text)]
    rest = _TITLED.sub(lambda found: "\u3000" * len(found.group()), text)
    spans = [span for start, end in _pieces(rest) if (span := _trimmed(rest, start, end)) is not None]
    return sorted([*works, *spans], key=lambda span: span.start)


def _pieces(text: str) -> list[tuple[int, int]]:
    """The stretches between function words."""
    kept = [found.span() for found in _KEPT.finditer(text)]
    at, found = 0, []
    for cut in _CUT.finditer(text):
        if any(start <= cut.start() and cut.end() <= end for start, end in kept):
            continue
        found.append((at, cut.start()))
        at = cut.end()
    found.append((at, len(text)))
    return [(start, end) for start, end in found if end - start > 1]


def _trimmed(text: str, start: int, end: int) -> NameSpan | None:
    """A stretch without the verbs and numbers at its ends; None where nothing that names is left."""
    words = tagged(text[start:end])
    if len(words) == 1 and words[0][1] in _COMMON:
        return None
    whole = list(words)
    while words and _drops(*words[0][:2]):
        words.pop(0)
    while words and _drops(*words[-1][:2]):
        words.pop()
    if len("".join(word for word, _, _ in words)) < 2 and 1 < len(whole) < 3 and end - start < 5:
        words = whole  # a person's name of which the segmenter made a word and a rest
    if not words:
        return None
    first, last = start + words[0][2], start + words[-1][2] + len(words[-1][0])
    name = text[first:last]
    if not 1 < len(name) <= _MOST or is_generic(name):
        return None
    return NameSpan(name, first, last, _kind(text, name, first, last))


def _drops(word: str, tag: str) -> bool:
    """Whether a word at the end of a stretch is no part of its name; single characters often are, being cut wrongly."""
    return word.isdigit() or word.startswith("第") or (len(word) > 1 and tag in _DROPPED)


def _kind(text: str, name: str, start: int, end: int) -> str:
    told = kind_of(name)
    doubtful = told == "place" and _may_be_person(name)  # "孙玉山" is no mountain, "金山" may be one
    if told != "thing" and not doubtful:
        return told
    if _PERSON_AFTER.match(text, end) or _PERSON_BEFORE.search(text[:start]):
        return "person"
    return "place" if _PLACE_BEFORE.search(text[:start]) else "thing"


def _may_be_person(name: str) -> bool:
    """Whether a Chinese name of two or three characters begins with a surname."""
    return 1 < len(name) <= LONGEST_PERSON and name[0] in SURNAMES
