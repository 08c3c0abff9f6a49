"""Whether triples that a model has written are imported whole, each with its document, and how fast."""

import resource
from collections import Counter
from collections.abc import Sequence

from benchmarks.runner import Run, measure
from benchmarks.sets import SETS, Row, files_of, index, settings_in, triple_rows
from flows.runtime import Runtime
from tasks.load.text import clean, one_line

SET = "musique_train100_triples"
Fact = tuple[str, str, str, str]


@measure(sets=files_of(SET))
def triples(run: Run) -> None:
    """Are triples that a model has written imported whole, each with its document, and how fast?

    The lists that gpt-3.5 wrote for the MuSiQue passages, imported beside their texts. A list that is no triple has to
    be put aside.
    """
    rows = list(triple_rows(run.file(SETS[SET].triples or "")))
    folder = run.workspace(f"{SET}_import")
    runtime, report = index(SETS[SET].write(run.options.data, folder), settings_in(folder, embedding="none"))
    wanted, found = well_formed(rows), stored(runtime)
    missing, strange = wanted - found, found - wanted
    figures = {
        "rows": len(rows), "triples": wanted.total(), "missing": missing.total(), "strange": strange.total(),
        "malformed": len(rows) - wanted.total(), "dead letters": report.dead_letters, "entities": report.entities,
        "seconds": report.seconds, "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip
    run.table(f"{SET}, imported", {"all": figures})
    run.show([f"  {fact}" for fact in [*missing, *strange][:10]])


def well_formed(rows: Sequence[Row]) -> Counter[Fact]:
    """The triples that must be found again, by document; names as the import keeps them."""
    facts = (tuple(one_line(clean(str(row.get(name, "")))) for name in ("document", "s", "p", "o")) for row in rows)
    return Counter((fact[0], fact[1], fact[2], fact[3]) for fact in facts if all(fact))


def stored(runtime: Runtime) -> Counter[Fact]:
    """The statements of the generation by document, each as often as it was asserted."""
    found: Counter[Fact] = Counter()
    with runtime.workspace.read() as generation:
        owner = {chunk.id: chunk.document for chunk in generation.documents.chunks() if chunk.kind == "triples"}
        for extraction in generation.extractions.extractions(list(owner)):
            for relation in extraction.relations:
                fact = (owner[relation.chunk], relation.source, relation.predicate, relation.target)
                found[fact] += round(relation.weight)
    return found
