"""The typed graph of the sample corpus, as a scripted model lists it."""

import csv
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from prompts.schema import Schema

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "examples" / "corpus"
SCHEMA = Schema.model_validate(
    tomllib.loads((ROOT / "examples" / "schema.toml").read_text(encoding="utf-8"))["schema"]
)
SOURCES = [
    CORPUS / path
    for path in (
        "data/bridges.csv",
        "data/relations.csv",
        "region",
        "people",
        "brewery",
        "../sources/osf-annual-report-2023.md",  # the text of the PDF
        "zh/ferry-overview.md",
        "zh/hydrology-institute.md",
        "notices",
    )
]
ORGANISATIONS = {"OSA works department", "Orrelin Sound Authority", "Sound Railway"}
# The types of the columns of the table of bridges.
COLUMNS = {
    "opened": "opened",
    "length_m": "length",
    "type": "type",
    "maintenance_2023_crowns": "maintenance",
    "owner": "owned by",
    "crosses": "crosses",
    "designer": "designed by",
}


def rules() -> list[dict[str, object]]:
    """What the server writes for each passage, known by words in it."""
    listed = tomllib.loads(Path(__file__).with_name("corpus_facts.toml").read_text("utf-8"))
    answers = {one["text"]: _of_passage(one) for one in listed.values()}
    answers["name: Old Saltmere Bridge"] = _of_bridges()
    answers[""] = iter(())  # all other passages
    return [
        {"kind": "writes", "step": "extract", "text": text, "says": "\n".join([*lines, "END"])}
        for text, lines in answers.items()
    ]


def _of_passage(listed: dict[str, object]) -> Iterator[str]:
    for kind, names in listed.items():
        if isinstance(names, list):
            yield from (f"E\t{name}\t{kind}\t" for name in names)
    for line in str(listed["facts"]).strip().splitlines():
        subject, kind, value, quote, *time = line.split(" | ")
        since, until = [*time, "", ""][:2]
        yield "\t".join(["F", subject, kind, value, since, until, quote])


def _of_bridges() -> Iterator[str]:
    with (CORPUS / "data" / "bridges.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # The same line a third time would end the reading of an answer.
    yield from dict.fromkeys(line for row in rows for line in _of_bridge(row))


def _of_bridge(row: dict[str, str]) -> Sequence[str]:
    line = " | ".join(f"{name}: {value}" for name, value in row.items())
    bridge, designer, owner = row["name"], row["designer"], row["owner"]
    designer = "Tobias Wren (engineer)" if designer == "Tobias Wren" else designer
    kinds = {
        bridge: "bridge",
        designer: "organisation" if designer in ORGANISATIONS else "person",
        owner: "organisation" if owner in ORGANISATIONS else "town",
        row["crosses"]: "water",
    }
    facts = [
        [bridge, name, designer if column == "designer" else row[column]]
        for column, name in COLUMNS.items()
    ]
    facts.append([bridge, "carries trains", "yes" if "railway" in row["type"] else "no"])
    return [
        *(f"E\t{name}\t{kind}\t" for name, kind in kinds.items()),
        *("\t".join(["F", *fact, "", "", line]) for fact in facts),
    ]
