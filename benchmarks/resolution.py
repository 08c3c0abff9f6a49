"""Which names are joined into one entity without a model, and which of them wrongly."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from benchmarks.runner import Cell, Run, measure
from benchmarks.sets import Row, read_rows
from prompts.resolve import NameInContext, Pair, decide
from prompts.text.words import fold
from storage.graph_records import Extraction, Mention
from storage.records import Chunk
from tasks.resolve.assemble import ResolvedGraph
from tests.graphs import build_graph

PAIRS = "er/fodors_zagats.jsonl.gz"
ALIASES = "er/answer_alias_sets.jsonl.gz"
_DETAILS = ("addr", "city", "phone", "type")


@measure(
    files=[PAIRS, ALIASES],
)
def resolution(run: Run) -> None:
    """Which names are joined, and which of them wrongly?

    pairs: records of restaurants from two guides (Fodors-Zagats, its test part), each as a name with what is said of
    it; the decision that the step `resolve` makes offline. aliases: names of one thing without any text; the share of
    pairs of a set that end in one entity, and the joins of names of different sets, which are wrong.
    """
    run.table("pairs", {"Fodors-Zagats": pairs(list(read_rows(run.file(PAIRS)))[: run.limit])})
    figures, wrong = aliases(list(read_rows(run.file(ALIASES)))[: run.limit])
    run.table("aliases", {"joined": figures})
    run.show(wrong)


def pairs(rows: Sequence[Row]) -> dict[str, Cell]:
    """How many pairs of the test part are decided rightly."""
    counted: Counter[tuple[bool, bool]] = Counter()
    for row in rows:
        if row["split"] == "test":
            pair = Pair(first=_record(row["left"]), second=_record(row["right"]))
            counted[bool(row["label"]), decide(pair).same] += 1
    joined, wrong, missed = counted[True, True], counted[False, True], counted[True, False]
    f1 = 2 * joined / max(2 * joined + wrong + missed, 1)
    return {"joined rightly": joined, "wrongly": wrong, "missed": missed, "of": counted.total(), "F1": f1}


def _record(fields: Row) -> NameInContext:
    # The file marks strings by quotes of two sorts, and parts an apostrophe from its word.
    plain = {name: str(value).strip("`' ").replace(" \\ 's", "'s") for name, value in fields.items()}
    return NameInContext(name=plain["name"], kind="place", said=(", ".join(plain[name] for name in _DETAILS),))


def aliases(rows: Sequence[Row]) -> tuple[dict[str, Cell], list[str]]:
    """The recall of pairs of aliases, and the joins across sets; a name of several sets is not counted."""
    sets = [{str(row["canonical"]), *map(str, row["aliases"])} for row in rows]
    spread = Counter(name for names in sets for name in names)
    own = [sorted(name for name in names if spread[name] == 1) for names in sets]
    place = {name: number for number, names in enumerate(own) for name in names}
    entity = _entities(list(place))
    every = [pair for names in own for pair in combinations(names, 2)]
    groups: dict[str, list[str]] = defaultdict(list)
    for name in place:
        groups[entity[name]].append(name)
    mixed = [names for names in groups.values() if len({place[name] for name in names}) > 1]
    return {
        "names": len(place),
        "pairs": len(every),
        "recall": sum(entity[a] == entity[b] for a, b in every) / len(every),
        "by capitals and accents alone": sum(fold(a) == fold(b) for a, b in every) / len(every),
        "joined wrongly": sum(place[a] != place[b] for names in mixed for a, b in combinations(names, 2)),
        "mixed entities": len(mixed),
    }, [f"  wrong: {' | '.join(sorted(names))}" for names in mixed]


def _entities(names: Sequence[str]) -> dict[str, str]:
    """The entity of each name, where each stands in a document of its own, which says nothing else."""
    chunks = {
        f"chk_{number:05}": _chunk(f"chk_{number:05}", f"d{number}", name, 0) for number, name in enumerate(names)
    }
    alone = [
        Extraction(chunk=key, mentions=(Mention(chunk=key, name=chunk.text, kind="thing", start=0, end=1),))
        for key, chunk in chunks.items()
    ]
    graph: ResolvedGraph = build_graph(alone, chunks)
    return {names[int(place.chunk.removeprefix("chk_"))]: place.item for place in graph.entity_occurrences}


def _chunk(name: str, document: str, text: str, ordinal: int) -> Chunk:
    return Chunk(
        id=name, document=document, ordinal=ordinal, start=0, end=len(text), text=text, tokens=1, language="en",
        title="",
    )  # fmt: skip
