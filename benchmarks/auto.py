"""How often does `auto` tell a question about a whole collection from one about a part of it?

    python -m benchmarks.auto [--list FILE]

Reads auto_questions.jsonl, on which nothing was tuned, by the rules alone, as without a model. "In doubt": a model
would be asked where there is one; without one such a question is searched first, and asked of the whole collection if
the search finds no answer.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.compare_sets import Row, rows
from prompts.offline.route import scope_offline
from prompts.text.question import parse_question

LIST = Path(__file__).parent / "auto_questions.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares; 2 where the list is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto", description="Read a list of questions.")
    parser.add_argument("--list", type=Path, default=LIST, metavar="FILE", help="rows {language, family, question}")
    file = parser.parse_args(arguments).list
    if not file.is_file():
        print(f"There is no file {file}. Name a list of questions: --list FILE.", file=sys.stderr)
        return 2
    every = list(rows(file))
    for language in sorted({row["language"] for row in every}):
        for family in sorted({row["family"] for row in every}):
            print(line([row for row in every if (row["language"], row["family"]) == (language, family)]))
    return 0


def line(found: Sequence[Row]) -> str:
    """How the questions of one language and family are taken."""
    taken = [parse_question(row["question"]) for row in found]
    whole = sum(scope_offline(one).about == "whole" for one in taken)
    doubt = sum(not scope_offline(one).plain for one in taken)
    right = whole if found[0]["family"] == "whole" else len(found) - whole
    return (
        f"{found[0]['language']} {found[0]['family']:9} {len(found):4} questions: right {right / len(found):.3f}, "
        f"in doubt {doubt / len(found):.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())
