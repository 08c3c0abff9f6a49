"""Themes of the points of an answer: the words and names that several of them share."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prompts.text.names_zh import tagged
from prompts.text.relevance import A_FILE, CollectionTopic
from prompts.text.thesaurus import concept_terms
from prompts.text.words import WORD, is_han
from tasks.reports.pack import Point

MOST_WORDS = 2  # of a theme's name
# From this share of the points on a word of the question tells none of them apart.
SHARED_BY_ALL = 0.6
# What a word that is only the question's own counts beside one that the best passages share.
ASKED_WEIGHT = 0.02
_SPEAKER = re.compile(r"^[^\W\d_][\w .'’-]{1,40}:\s")
_NO_NAME = re.compile(r"['’_.\d]|(?:ing|ed|ly|est)$")
_ZH_NOUNS = ("n", "l", "j", "i")  # as tagged: nouns, set phrases, abbreviations
# Words that many sentences share and that name no theme.
PLAIN = frozenset(
    """
    able actually ago ahead already around bad become began begin best better big bit bring build built bunch call
    came case certain change changes come course day days deal decade decades deep different difficult directly done
    early easy end ensure even ever everybody everyone everything exist face fact far fast feel felt few find fine
    first folk folks forth found front full fun future gave general get give given goes gone good great greater group
    grow grown guess guy guys half hand happen happens hard hear heard held help helps high higher huge hundred
    hundreds idea ideas image important incredible interesting keep kind kinds knew know large largest last later
    learn least left less level life like line little live lives long look looks lose lot lots love made make makes
    many maybe mean means million minute minutes moment month months new next nice nothing number old opportunity
    others part parts past pay people percent person perspective piece place places point possible powerful prepare
    pretty probably provide put question questions quite ready real really reason relative remarkable right room same
    saw say says see seem seen sense set sets shape short show shows side simple small smaller somebody someone
    something somewhere soon sort space spend start started step stuff super sure take takes talk teach tell thank
    therefore thing things think thousand time times today took top toward tried tries true try turn two unfortunately
    use used using valuable various very want wants way ways week weeks well went whole wide word words work works
    world worry wrong year years yet young
    """.split()
)


class ThemedPoint(NamedTuple):
    """A point as it is shown, and the numbers of the evidence that shows it."""

    text: str
    evidence: tuple[int, ...]


def themed(points: Sequence[Point], gist: CollectionTopic) -> Iterator[ThemedPoint]:
    """The points, grouped: the theme stands over the first of each group. What shares no word with
    another point comes last."""
    words = [_words(point.text, gist) for point in points]
    left = list(range(len(points)))
    while left:
        best = _shared(words, left, gist)
        group = [place for place in left if best in words[place]] if best else left
        name = _name(best, [words[place] for place in group], gist) if best else _rest(gist)
        head = f"{name}:\n" if best or len(group) < len(points) else ""
        for place in group:
            yield ThemedPoint(f"{head}{points[place].text}", points[place].findings)
            head = ""
        left = [place for place in left if place not in group]


def topic_of(title: str) -> str:
    """A report's title without the files among the names that it lists; as it is where nothing else is left."""
    joint = "、" if "、" in title else ", "
    kept = [name for name in title.split(joint) if not A_FILE.search(name)]
    return joint.join(kept) or title


def _shared(words: Sequence[Mapping[str, str]], left: Sequence[int], gist: CollectionTopic) -> str:
    """The term that tells most of these points apart from the others; empty where no two share one."""
    counts = Counter(term for place in left for term in words[place])
    whole = Counter(term for held in words for term in held)
    shared = {
        term: count * gist.near.get(term, ASKED_WEIGHT)
        for term, count in counts.items()
        if count > 1 and (term in gist.near or whole[term] <= SHARED_BY_ALL * len(words))
    }
    return min(shared, key=lambda term: (-shared[term], term), default="")


def _name(best: str, words: Sequence[Mapping[str, str]], gist: CollectionTopic) -> str:
    """The theme's word, and the one that most of its points share besides."""
    counts = Counter(term for held in words for term in held if term != best)
    others = sorted((-count * gist.near.get(term, ASKED_WEIGHT), term) for term, count in counts.items() if count > 1)
    surfaces = {term: surface for held in reversed(words) for term, surface in held.items()}
    named = [surfaces[term] for term in (best, *(term for _, term in others[: MOST_WORDS - 1]))]
    joined = ("、" if gist.relevance.question.chinese else ", ").join(named)
    return joined[:1].upper() + joined[1:]


def _rest(gist: CollectionTopic) -> str:
    return "其他" if gist.relevance.question.chinese else "Also"


def _words(text: str, gist: CollectionTopic) -> dict[str, str]:
    """The words of a text that may name a theme, as they are written, by term: those near to the question, and its
    own."""
    found: dict[str, str] = {}
    for word in _nouns(text):
        terms = concept_terms(word)
        near = next((term for term in terms if term in gist.near or term in gist.asked), None)
        if near is not None:
            found.setdefault(near, word)
    return found


def _nouns(text: str) -> list[str]:
    """The words that look like things; a speaker's name before a colon is left out."""
    if is_han(text):
        return [word for word, kind, _ in tagged(text) if len(word) > 1 and kind.startswith(_ZH_NOUNS)]
    words = WORD.findall(_SPEAKER.sub("", text))
    return [word for word in words if len(word) > 2 and word.lower() not in PLAIN and not _NO_NAME.search(word)]
