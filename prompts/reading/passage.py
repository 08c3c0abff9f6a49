"""Extraction by rules: the names of a passage, and the relations of those that one sentence holds together."""

from bisect import bisect_right

from prompts.language.aliases import stated_aliases
from prompts.language.names import NameSpan, name_spans
from prompts.language.names_zh import name_spans_zh
from prompts.language.relations import Statement, statements
from prompts.language.segment import units
from prompts.language.story import actors
from prompts.language.tables import table_facts
from prompts.language.words import is_han
from prompts.reading.found import ALIAS_PREDICATE, EntityFound, Extracted, RelationFound


def topic_of(title: str) -> str:
    """The thing that a title names: the title without a bracketed qualifier kept apart from its name."""
    return " ".join(title.split())[:100]


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and relations of a passage; a sentence that opens with a pronoun is about the title's thing.

    Claims are left to a model."""
    lines = units(passage)
    cells, facts = table_facts(passage, [(unit.start, unit.end) for unit in lines if unit.kind == "row"])
    spans = [(unit.start, unit.end) for unit in lines if unit.kind != "code"]
    names = _without_overlaps(cells, names_in(passage, spans, title))
    topic = _topic_name(title, names)
    tabled = {fact.start for fact in facts}
    said = [*facts]
    described: dict[str, str] = {}
    following = 0
    for start, end in spans:
        first = following
        while following < len(names) and names[following].start < end:
            following += 1
        inside = names[first:following]
        for name in inside:
            described.setdefault(name.text, _one_line(passage[start:end]))
        if start not in tabled:
            said += statements(passage, start, end, inside, topic)
    kinds: dict[str, str] = {}
    for span in [*names, *actors(passage)]:
        if kinds.get(span.text, "thing") == "thing":
            kinds[span.text] = span.kind
    entities = [EntityFound(name=name, kind=kind, description=described.get(name, "")) for name, kind in kinds.items()]
    return Extracted(entities=entities, relations=_relations(passage, said, names, topic))


def _relations(passage: str, said: list[Statement], names: list[NameSpan], topic: str) -> list[RelationFound]:
    """Each statement once, quoted by the first sentence that makes it, and the aliases that the passage states."""
    found: dict[tuple[str, str, str], RelationFound] = {}
    for one in said:
        found.setdefault(
            (one.source, one.target, one.predicate),
            RelationFound(
                source=one.source,
                target=one.target,
                predicate=one.predicate,
                description=_one_line(passage[one.start : one.end]),
            ),
        )
    for name, alias, words in stated_aliases(passage, names, topic):
        found[name, alias, ALIAS_PREDICATE] = RelationFound(
            source=name, target=alias, predicate=ALIAS_PREDICATE, description=_one_line(words)
        )
    return list(found.values())


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Names by the passage's script, in order; words of `title` are known to be written with a capital on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def _without_overlaps(first: list[NameSpan], others: list[NameSpan]) -> list[NameSpan]:
    """Both lists in order; where two overlap, that of the first list stays."""
    if not first:
        return others
    starts = [span.start for span in first]
    kept = list(first)
    for span in others:
        place = bisect_right(starts, span.start)
        before_free = place == 0 or first[place - 1].end <= span.start
        if before_free and (place == len(first) or first[place].start >= span.end):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _topic_name(title: str, names: list[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)
