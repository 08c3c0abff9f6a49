"""Which names are joined, and which of them wrongly?

    python -m benchmarks.resolution --data DIR [--merges]

Three things are measured, none of which needs a model:

- pairs: records of restaurants from two guides (Fodors-Zagats, its test part), each as a name with what is said of it:
  precision, recall and F1 of the decision that the step `resolve` makes offline;
- aliases: names of one thing without any text: the share of pairs of a set that end in one entity, and the joins of
  names of different sets, which are wrong;
- story: the names that a model (gpt-4o) listed in 42 passages of a novel: how many entities are left of them, and with
  --merges each join beyond capitals and articles with its reason.
"""

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from prompts.resolve import NameInContext, Pair, decide
from prompts.text.words import fold
from storage.graph_records import Extraction, Mention
from storage.records import Chunk
from tasks.dedupe import ResolvedGraph, build_graph

PAIRS = "er/fodors_zagats.jsonl.gz"
ALIASES = "er/answer_alias_sets.jsonl.gz"
STORY = "llm_outputs/christmas_carol_gpt4o_extraction.jsonl.gz"
_SAID = ("addr", "city", "phone", "type")
_ARTICLE = re.compile(r"^(?:the|an?)\s+")


def main() -> None:
    """Print one paragraph for each of the three."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="benchmarks.resolution"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded data")
    parser.add_argument("--split", default="test", help="of the pairs: train, valid or test (default)")
    parser.add_argument("--merges", action="store_true", help="list the joins of the story and the wrong ones")
    options = parser.parse_args()
    print(pairs(_rows(options.data / PAIRS), options.split))
    for line in (*aliases(_rows(options.data / ALIASES)), *story(_rows(options.data / STORY))):
        if options.merges or not line.startswith("  "):
            print(line)


def pairs(rows: Sequence[Mapping[str, object]], split: str) -> str:
    """Precision, recall and F1 over the pairs of a part."""
    counted: Counter[tuple[bool, bool]] = Counter()
    for row in rows:
        if row["split"] == split:
            pair = Pair(first=_record(row["left"]), second=_record(row["right"]))
            counted[bool(row["label"]), decide(pair).same] += 1
    found, wrong, missed = counted[True, True], counted[False, True], counted[True, False]
    f1 = 2 * found / (2 * found + wrong + missed)
    return (
        f"pairs ({split}): {found} joined rightly, {wrong} wrongly, {missed} missed of {counted.total()}: F1 {f1:.3f}"
    )


def _record(fields: object) -> NameInContext:
    assert isinstance(fields, dict)  # noqa: S101 -- the data is what it says, or the benchmark is wrong
    # The file marks strings by quotes of two sorts, and parts an apostrophe from its word.
    plain = {name: str(value).strip("`' ").replace(" \\ 's", "'s") for name, value in fields.items()}
    return NameInContext(name=plain["name"], kind="place", said=(", ".join(plain[name] for name in _SAID),))


def aliases(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """The recall of pairs of aliases, and the joins across sets; a name of several sets is not counted."""
    sets = [{str(row["canonical"]), *map(str, _list(row["aliases"]))} for row in rows]
    spread = Counter(name for names in sets for name in names)
    own = [sorted(name for name in names if spread[name] == 1) for names in sets]
    place = {name: number for number, names in enumerate(own) for name in names}
    graph = _graph_of_names(list(place))
    entity = _entities(graph, list(place))
    total = sum(len(names) * (len(names) - 1) // 2 for names in own)
    found = sum(entity[a] == entity[b] for names in own for a, b in combinations(names, 2))
    folded = sum(fold(a) == fold(b) for names in own for a, b in combinations(names, 2))
    groups: dict[str, list[str]] = defaultdict(list)
    for name in place:
        groups[entity[name]].append(name)
    mixed = [names for names in groups.values() if len({place[name] for name in names}) > 1]
    wrong = sum(place[a] != place[b] for names in mixed for a, b in combinations(names, 2))
    yield (
        f"aliases: {len(place)} names of {len(sets)} sets: {found} of {total} pairs joined, recall {found / total:.3f} "
        f"(by capitals and accents alone {folded / total:.3f}); {wrong} pairs joined wrongly in {len(mixed)} entities"
    )
    yield from (f"  wrong: {' | '.join(sorted(names))}" for names in mixed)


def story(rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """How many entities are left of the listed names, and why names were joined."""
    chunks: dict[str, Chunk] = {}
    extractions = []
    for number, row in enumerate(rows):
        chunk = _chunk(f"chk_{number:03}", "story", str(row["text"]), number)
        chunks[chunk.id] = chunk
        listed = [dict(one) for one in _list(row["entities"]) if isinstance(one, dict)]
        mentions = [
            Mention(
                chunk=chunk.id, name=str(one["name"]), kind=_kind(str(one["type"])), start=place, end=place + 1,
                description=str(one["description"]),
            )
            for place, one in enumerate(listed)
        ]  # fmt: skip
        extractions.append(Extraction(chunk=chunk.id, mentions=tuple(mentions)))
    graph = build_graph(extractions, chunks)
    names = {mention.name for one in extractions for mention in one.mentions}
    plain = {_plain(name) for name in names}
    yield f"story: {len(names)} names, {len(plain)} with capitals and articles folded, {len(graph.entities)} entities"
    shown = {one.id: one.name for one in graph.entities}
    for alias in graph.aliases:
        if _plain(alias.name) != _plain(shown[alias.entity]):
            yield f"  {alias.name} = {shown[alias.entity]}: {alias.reason}"


def _kind(written: str) -> str:
    kinds = {"person": "person", "organization": "organisation", "geo": "place", "location": "place", "event": "event"}
    return kinds.get(written.strip('"').casefold(), "thing")


def _plain(name: str) -> str:
    return _ARTICLE.sub("", " ".join(fold(name).split()))


def _graph_of_names(names: Sequence[str]) -> ResolvedGraph:
    """Each name in a document of its own, which says nothing else."""
    chunks = {
        f"chk_{number:05}": _chunk(f"chk_{number:05}", f"d{number}", name, 0) for number, name in enumerate(names)
    }
    return build_graph(
        [
            Extraction(chunk=key, mentions=(Mention(chunk=key, name=chunk.text, kind="thing", start=0, end=1),))
            for key, chunk in chunks.items()
        ],
        chunks,
    )


def _entities(graph: ResolvedGraph, names: Sequence[str]) -> dict[str, str]:
    return {names[int(place.chunk.removeprefix("chk_"))]: place.item for place in graph.entity_occurrences}


def _chunk(name: str, document: str, text: str, ordinal: int) -> Chunk:
    return Chunk(
        id=name, document=document, ordinal=ordinal, start=0, end=len(text), text=text, tokens=1, language="en",
        title="",
    )  # fmt: skip


def _list(value: object) -> list[object]:
    assert isinstance(value, list)  # noqa: S101 -- as above
    return value


def _rows(path: Path) -> list[Mapping[str, object]]:
    if not path.is_file():
        raise SystemExit(f"{path} is missing; --data names the folder that holds it.")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


if __name__ == "__main__":
    main()
