"""Which of the names that a reader would list extraction without a model finds, and how many others
beside them.
"""

import time
from collections import Counter
from collections.abc import Sequence

from benchmarks.runner import Cell, Run, measure
from benchmarks.sets import Row, read_rows
from prompts.offline.extract import extract_offline
from prompts.text.words import fold_name

STORY = "llm_outputs/christmas_carol_gpt4o_extraction.jsonl.gz"
_OFTEN = 2  # an entity that the model named in so many chunks is no whim


@measure(files=[STORY])
def extraction(run: Run) -> None:
    """Which of the names that a reader would list are found without a model?

    A story against the entities that gpt-4o named at least twice (precision: against all that it
    named).
    """
    figures, missed = story(list(read_rows(run.file(STORY))))
    run.table("names", {"story": figures})
    run.show([f"missed: {', '.join(missed)}"])


def story(rows: Sequence[Row]) -> tuple[dict[str, Cell], list[str]]:
    """Figures against the entities that the model named at least twice, and those that were
    missed.
    """
    theirs = Counter(
        name for row in rows for name in {fold_name(entity["name"]) for entity in row["entities"]}
    )
    reference = {name for name, count in theirs.items() if count >= _OFTEN}
    names_in("", rows[0]["text"])  # loads the tokenizer, which is paid once
    started = time.process_time()
    ours = {fold_name(name) for row in rows for name in names_in("A Christmas Carol", row["text"])}
    rate = len(rows) / (time.process_time() - started)
    return {
        "reference": len(reference),
        "extracted": len(ours),
        "recall": len(reference & ours) / len(reference),
        "precision": len(ours & set(theirs)) / len(ours),
        "chunks a second": rate,
    }, sorted(reference - ours)


def names_in(title: str, text: str) -> list[str]:
    """The names that are extracted from a chunk."""
    return [entity.name for entity in extract_offline(title, text).entities]
