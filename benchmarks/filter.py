"""How well does the knowledge filter tell evidence from the rest, and does it see what contradicts?

`python -m benchmarks.filter --data DIR [--keep DIR]` judges, offline: the first 20 passages that are retrieved for
published questions, and passages of RGB, where copies with another answer stand among the true ones. What is not known
is not claimed: where both sides have as many copies, both are shown as conflicting, and seldom one as the worse.
"""

import argparse
import asyncio
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.filter_cases import RGB, RGB_FILE, TOP, Case, RgbRow, area, before, cases, rgb_rows
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.language.question import ask
from prompts.language.segment import sentences
from prompts.reading.differ import denies
from prompts.reading.entail import Candidate, Hypothesis
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Record

SETS = ("2wiki_780", "hotpot_train100", "musique_train100")
DEPTH = 12  # so many passages a question of one fact reads
SICK_FILE = "qa/sick_nli.jsonl.gz"


class Tally(Record):
    """Of passages that are true and of copies with another answer: how many were called contradicting, how many were
    shown in a conflict at all."""

    true: int = 0
    true_called: int = 0
    true_shown: int = 0
    wrong: int = 0
    wrong_called: int = 0
    wrong_shown: int = 0
    others: int = 0
    others_called: int = 0

    def __add__(self, more: "Tally") -> "Tally":
        return Tally(**{name: getattr(self, name) + getattr(more, name) for name in Tally.model_fields})

    def line(self) -> str:
        called = (
            f"called {_share(self.wrong_called, self.wrong)} of {self.wrong} wrong,"
            f" {_share(self.true_called, self.true)} of {self.true} true"
        )
        others = f", {_share(self.others_called, self.others)} of {self.others} others" if self.others else ""
        shown = f"shown {_share(self.wrong_shown, self.wrong)} wrong, {_share(self.true_shown, self.true)} true"
        return f"{called}{others}; {shown}"


# A setting: its name, the true passages, the copies with another answer, passages about something else, and which of
# the true ones are known to hold.
Setting = tuple[str, Sequence[str], Sequence[str], Sequence[str], Collection[int]]


def settings(row: RgbRow) -> Iterator[Setting]:
    """What may lie before the filter: it is told nothing of which side is true, but where passages are trusted."""
    true, wrong, others = row.positive, row.positive_wrong, row.negative
    for place, copy in enumerate(wrong):
        yield "one wrong among all true", true, [copy], (), ()
        yield "one wrong among all true and others", true, [copy], others, ()
        if len(true) > 1:
            yield "one wrong among two or more true", true, [copy], (), ()
            yield "one wrong, its own original left out", [*true[:place], *true[place + 1 :]], [copy], (), ()
    yield "as many wrong as true", true, wrong, (), ()
    yield "as many wrong as true, one true trusted", true, wrong, (), (0,)
    yield "as many wrong as true, all true trusted", true, wrong, (), range(len(true))
    yield "no wrong, but others", true, (), others, ()


def contradictions(rows: Sequence[RgbRow], judge: Filter) -> dict[str, Tally]:
    """Each setting over all rows."""
    found: dict[str, Tally] = {}
    for row in rows:
        taken = ask(row.query)
        hypothesis: Hypothesis = "strong"
        for name, true, wrong, others, trusted in settings(row):
            texts = [*true, *wrong, *others]
            verdicts = asyncio.run(
                judge.run(hypothesis, [_candidate(text) for text in texts], Relevance(taken, {}), trusted)
            )
            called = np.array([one.label == "contradiction" for one in verdicts.each])
            disputed = {place for one in verdicts.conflicts for place in (one.one, one.other)}
            shown = np.array([place in disputed for place in range(len(texts))])
            first, second = len(true), len(true) + len(wrong)
            found[name] = found.get(name, Tally()) + Tally(
                true=first, true_called=called[:first].sum(), true_shown=shown[:first].sum(),
                wrong=len(wrong), wrong_called=called[first:second].sum(), wrong_shown=shown[first:second].sum(),
                others=len(others), others_called=called[second:].sum(),
            )  # fmt: skip
    return found


def _candidate(text: str) -> Candidate:
    units = tuple(Evidence(0, "", "", text[start:end]) for start, end in sentences(text))
    return Candidate(units, text)


def separation(given: Sequence[Case]) -> list[str]:
    """How well strength tells evidence from the rest, and what is kept of each at the depth of a question."""
    scores = [case.strengths() for case in given]
    everything, gold = np.concatenate(scores), np.concatenate([case.gold for case in given])
    second = ~(gold & np.concatenate([case.named for case in given]))
    kept = np.concatenate([part[:DEPTH] >= 0 for part in scores])
    first = np.concatenate([case.gold[:DEPTH] for case in given])
    return [
        f"AUC {area(everything, gold):.3f}, of evidence that the question does not name"
        f" {area(everything[second], gold[second]):.3f}; within a question {_within(given, scores):.3f}",
        f"of the first {DEPTH}: {kept[first].mean():.3f} of the evidence entailed,"
        f" {1 - kept[~first].mean():.3f} of the rest not; {np.mean([case.milliseconds for case in given]):.1f} CPU ms",
        f"questions in which passages are said to conflict: {sum(map(_disputed, given))} of {len(given)}",
    ]


def _disputed(case: Case) -> bool:
    candidates = case.candidates[:DEPTH]
    verdicts = asyncio.run(Filter(Models.offline()).run(case.hypothesis, candidates, case.relevance))
    return bool(verdicts.conflicts)


def _within(given: Sequence[Case], scores: Sequence[np.ndarray]) -> float:
    counts = [int(case.gold.sum() * (~case.gold).sum()) for case in given]
    shares = [before(part[case.gold], part[~case.gold]) for case, part in zip(given, scores, strict=True)]
    return float(np.average(shares, weights=counts))


def negations(data: Path) -> str:
    """How many of SICK's contradictions are seen by their negation, and how many are none."""
    with gzip.open(data / SICK_FILE, "rt", encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    pairs = [pair for pair in pairs if pair["split"] == "train"]
    seen = [pair["entailment"] == "CONTRADICTION" for pair in pairs if denies(pair["a"], pair["b"])]
    total = sum(pair["entailment"] == "CONTRADICTION" for pair in pairs)
    return (
        f"{_share(sum(seen), total)} of {total} contradictions seen, {_share(sum(seen), len(seen))} of those seen are"
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 2 where the folder is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filter", description="Measure the knowledge filter.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    options = parser.parse_args(arguments)
    missing = [str(path) for path in (options.data / RGB_FILE, options.data / SICK_FILE) if not path.is_file()]
    if missing:
        print(
            f"These files are absent: {', '.join(missing)}. Name the folder that has them: --data DIR.", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        keep = options.keep or Path(temporary)
        for name in SETS:
            print(
                f"{name}: the first {TOP} passages",
                *separation(cases(name, options.data, keep)),
                sep="\n  ",
                flush=True,
            )
        rgb = cases(RGB, options.data, keep)
        for label, given in (("all rows", rgb), ("rows that no weight was fitted to", rgb[::2])):
            share = _within(given, [case.strengths() for case in given])
            print(f"{RGB}, {label}: a true passage before another one {share:.3f}")
    rows, judge = rgb_rows(options.data), Filter(Models.offline())
    for label, chosen in (("all rows", rows), ("rows that no rule was made on", rows[::2])):
        print(f"{RGB}, contradictions, {label}")
        started = time.process_time()
        for name, tally in contradictions(chosen, judge).items():
            print(f"  {name}: {tally.line()}")
        print(f"  {time.process_time() - started:.1f} CPU s in all")
    print(f"SICK, negations: {negations(options.data)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
