"""Are triples that a model has written imported whole, each with its document, and how fast?

    python -m benchmarks.triples --triples OPENIE.jsonl[.gz] --corpus CORPUS.jsonl[.gz] [--rows FILE] [--embedding none]

Rows of OPENIE are `{corpus_id, triples: [[s, p, o], …]}`; a list that is no triple is passed on as it is, and the
import has to put it aside. With --rows only the rows that `trellis index` reads are written.
"""

import argparse
import asyncio
import gzip
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.settings import load_settings
from tasks.load.text import clean, one_line

Fact = tuple[str, str, str, str]


def lines(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a JSON Lines file, zipped or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def rows_of(openie: Path) -> Iterator[dict[str, object]]:
    """A row for each triple, with the id of its passage as its document."""
    for passage in lines(openie):
        document, given = str(passage["corpus_id"]), passage["triples"]
        for said in given if isinstance(given, list) else []:
            if isinstance(said, list) and len(said) == 3:
                yield {**dict(zip("spo", said, strict=True)), "document": document}
            else:
                yield {"malformed": said, "document": document}


def well_formed(rows: list[dict[str, object]]) -> Counter[Fact]:
    """The triples that must be found again, by document; names as the import keeps them."""
    facts = (tuple(one_line(clean(str(row.get(name, "")))) for name in ("document", "s", "p", "o")) for row in rows)
    return Counter((fact[0], fact[1], fact[2], fact[3]) for fact in facts if all(fact))


def stored(runtime: Runtime) -> Counter[Fact]:
    """The statements of the generation by document, each as often as it was asserted."""
    found: Counter[Fact] = Counter()
    with runtime.workspace.read() as generation:
        owner = {one.id: one.document for one in generation.documents.chunks() if one.kind == "triples"}
        for extraction in generation.extractions.extractions(list(owner)):
            for one in extraction.relations:
                found[owner[one.chunk], one.source, one.predicate, one.target] += round(one.weight)
    return found


def main() -> None:
    """Import into a temporary workspace and compare; ends with 1 where anything is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--triples", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--embedding", default="none")
    options = parser.parse_args()
    rows = list(rows_of(options.triples))
    with tempfile.TemporaryDirectory() as folder:
        file = options.rows or Path(folder) / "triples.jsonl"
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        if options.rows:
            return
        settings = load_settings({"workspace": Path(folder) / "ws", "embedding": options.embedding}, {})
        runtime = open_runtime(settings)
        started = time.perf_counter()
        report = asyncio.run(build_index([options.corpus, file], IndexOptions(), runtime))
        seconds = time.perf_counter() - started
        wanted, found = well_formed(rows), stored(runtime)
    missing, strange = wanted - found, found - wanted
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(rows)} rows, {wanted.total()} triples, {len(rows) - wanted.total()} malformed")
    print(f"stored: {found.total()}; missing: {missing.total()}, strange: {strange.total()}")
    print(f"dead letters: {report.dead_letters}, documents: {report.documents.added}, entities: {report.entities}")
    print(f"{seconds:.1f} s, {peak:.0f} MB at most")
    for fact in [*missing, *strange][:10]:
        print("  ", fact)
    if missing or strange or report.dead_letters != len(rows) - wanted.total():
        raise SystemExit(1)


if __name__ == "__main__":
    main()
