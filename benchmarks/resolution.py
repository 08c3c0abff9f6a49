"""Which names are joined into one entity without a model, and which of them wrongly."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from benchmarks.runner import Cell, Run, measure
from benchmarks.sets import Row, read_rows
from prompts.engine.embedders import BundledMiniLM
from prompts.text.words import fold
from storage.graph_records import Extraction, Mention
from storage.records import Chunk
from tasks.resolve.assemble import ResolvedGraph
from tasks.resolve.names import near_names
from tests.graphs import build_graph

ALIASES = "er/answer_alias_sets.jsonl.gz"


@measure(files=[ALIASES])
def resolution(run: Run) -> None:
    """Which names are joined, and which of them wrongly?

    The names are aliases of one thing without any text: told are the share of pairs of a set that
    end in one entity, and the joins of names of different sets, which are wrong. Below stands which
    pairs a model would be asked of by the bundled embedder, and how many of them are of one set.
    """
    rows = list(read_rows(run.file(ALIASES)))[: run.limit]
    figures, wrong = aliases(rows)
    run.table("aliases", {"joined": figures})
    run.table("near names", {"asked": near(rows)})
    run.show(wrong)


def aliases(rows: Sequence[Row]) -> tuple[dict[str, Cell], list[str]]:
    """The recall of pairs of aliases, and the joins across sets; a name of several sets is not
    counted.
    """
    own = _own_names(rows)
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
        "joined wrongly": sum(
            place[a] != place[b] for names in mixed for a, b in combinations(names, 2)
        ),
        "mixed entities": len(mixed),
    }, [f"  wrong: {' | '.join(sorted(names))}" for names in mixed]


def near(rows: Sequence[Row]) -> dict[str, Cell]:
    """How many pairs of near names there are, and the share of them that are of one set."""
    place = {name: number for number, names in enumerate(_own_names(rows)) for name in names}
    names = list(place)
    pairs = near_names(names, BundledMiniLM())
    right = [place[names[one]] == place[names[other]] for one, other in pairs]
    return {
        "names": len(names),
        "pairs a name": len(pairs) / max(1, len(names)),
        "right": sum(right) / max(1, len(right)),
    }


def _own_names(rows: Sequence[Row]) -> list[list[str]]:
    """The names of each set that no other set has."""
    sets = [{str(row["canonical"]), *map(str, row["aliases"])} for row in rows]
    spread = Counter(name for names in sets for name in names)
    return [sorted(name for name in names if spread[name] == 1) for names in sets]


def _entities(names: Sequence[str]) -> dict[str, str]:
    """The entity of each name, where each stands in a document of its own, which says nothing
    else.
    """
    chunks = {
        f"chk_{number:05}": _chunk(f"chk_{number:05}", f"d{number}", name, 0)
        for number, name in enumerate(names)
    }
    alone = [
        Extraction(
            chunk=key, mentions=(Mention(chunk=key, name=chunk.text, kind="thing", start=0, end=1),)
        )
        for key, chunk in chunks.items()
    ]
    graph: ResolvedGraph = build_graph(alone, chunks)
    return {
        names[int(place.chunk.removeprefix("chk_"))]: place.item
        for place in graph.entity_occurrences
    }


def _chunk(name: str, document: str, text: str, ordinal: int) -> Chunk:
    return Chunk(
        id=name,
        document=document,
        ordinal=ordinal,
        start=0,
        end=len(text),
        text=text,
        tokens=1,
        language="en",
        title="",
    )
