"""Another system beside ours: the scripted server answers its prompts by the rules that answer ours, and where it is
installed (`FAST_GRAPHRAG_PYTHON` names the interpreter) the measure runs whole."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.overhead import PASSAGES
from benchmarks.runner import main
from tests.server.client import ROOT, Server

EXTRACT = """**IMPORTANT JSON FORMATTING RULES:**
- Output MUST be a single, valid JSON object.

# INPUT DATA
<<ENTITY_TYPES_START>>
**Entity Types**:
person,place
<<ENTITY_TYPES_END>>

<<DOCUMENT_START>>
**Document**:
Orla Bridge
The Orla Bridge was designed by Ada Korb in 1931.
<<DOCUMENT_END>>

OUTPUT:
"""
KEYWORDS = """Given the query below, your task is to extract all entities relevant to perform information retrieval.

-EXAMPLE 1-
Query: Who directed the film that was shot in Leland in 1986?
Ouput: {"named": ["[PLACE] Leland"], "generic": ["film director"]}

-INPUT-
Query: Who designed the Orla Bridge?
Output:
"""
SUMMARIZE = """You are a helpful assistant responsible for generating a summary of the data provided below.

Current:
Ada Korb was an engineer.
Ada Korb designed bridges.

Updated:
"""
GROUP = """You are a helpful assistant responsible for maintaining a list of facts describing relations.

# EXAMPLE
Facts (id, description):
0, Mark is the dad of Luke

# INPUT:
Facts:
0, Ada met Bert
1, Ada saw Bert
2, Ada met Bert

Ouput:
"""
ANSWER = """You are a helpful assistant analyzing the given input data to provide an helpful response to the user query.

# INPUT DATA

## Sources

[1]  Marl
Marl is a town.
=====

[2]  Orla Bridge
The Orla Bridge was designed by Ada Korb.
=====


# USER QUERY
{question}

# INSTRUCTIONS
Your goal is to provide a response to the user query.

Answer:
"""


def said(server: Server, prompt: str) -> dict[str, Any]:
    """What the server says to a request of the form that fast-graphrag's client sends."""
    schema = {"role": "system", "content": "As a genius expert, give a JSON object that matches this json_schema: {}"}
    body = {
        "model": "scripted", "response_format": {"type": "json_object"},
        "messages": [schema, {"role": "user", "content": prompt}],
    }  # fmt: skip
    response = httpx.post(f"{server.base_url}/chat/completions", json=body, trust_env=False)
    assert response.is_success, response.text
    found: dict[str, Any] = json.loads(response.json()["choices"][0]["message"]["content"])
    return found


def test_the_server_reads_a_graph_from_the_passage_alone(model_server: Server) -> None:
    found = said(model_server, EXTRACT)
    assert {"Orla Bridge", "Ada Korb"} <= {row["name"] for row in found["entities"]}
    assert {row["type"] for row in found["entities"]} <= {"person", "place"}
    assert ("Orla Bridge", "Ada Korb") in {(row["source"], row["target"]) for row in found["relationships"]}
    assert all("designed by Ada Korb" in row["desc"] for row in found["relationships"])
    assert found["other_relationships"] == []
    assert model_server.calls("fast-graphrag extract") == 1


def test_the_server_answers_its_other_prompts(model_server: Server) -> None:
    assert said(model_server, KEYWORDS) == {"named": ["Orla Bridge"], "generic": ["designed"]}
    assert said(model_server, SUMMARIZE) == {"description": "Ada Korb was an engineer."}
    assert said(model_server, GROUP) == {"grouped_facts": [{"ids": [0, 2], "description": "Ada met Bert"}]}
    asked = ANSWER.format(question="Who designed the Orla Bridge?")
    assert said(model_server, asked) == {"answer": "The Orla Bridge was designed by Ada Korb [2]."}
    unknown = said(model_server, ANSWER.format(question="How tall is Zorblax?"))
    assert unknown == {"answer": "No relevant information was found."}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Fifteen passages, each naming two others: twelve to index, and three more."""
    (tmp_path / PASSAGES).parent.mkdir(parents=True)
    people = [
        f"{first} {last}" for first in ("Ada", "Bert", "Cleo", "Dora", "Emil") for last in ("Korb", "Reyd", "Marl")
    ]
    rows = [
        {"title": name, "text": f"{name} was born in Old Town in 1931. {name} met {people[place - 1]} there."}
        for place, name in enumerate(people)
    ]
    with gzip.open(tmp_path / PASSAGES, "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))
    return tmp_path


@pytest.mark.parametrize(
    "python",
    [[], ["--python", "nowhere/bin/python"], ["--python", os.path.relpath(sys.executable)]],
    ids=["not named", "not there", "without the package"],
)
def test_how_to_install_it_is_said(python: list[str], data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["peers", "--data", str(data), "--passages", "12", *python]) == 2
    assert "pip install fast-graphrag==0.0.5" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif("FAST_GRAPHRAG_PYTHON" not in os.environ, reason="fast-graphrag is not installed")
def test_both_are_measured(data: Path, tmp_path: Path) -> None:
    written = tmp_path / "found.json"
    given = ["--passages", "12", "--rounds", "1", "--questions", "1", "--latency-ms", "0", "--json", str(written)]
    words = ["peers", "--data", str(data), "--python", os.environ["FAST_GRAPHRAG_PYTHON"], *given]
    # In a process of its own, whose environment it changes.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    index, more, questions, *_ = json.loads(written.read_text())["tables"].values()
    theirs, ours = index["fast-graphrag 0.0.5"], index["Trellis"]
    assert theirs["model calls"] >= 12
    assert ours["entities"] / 2 <= theirs["entities"] <= ours["entities"] * 2
    assert ours["relations"] / 2 <= theirs["relations"] <= ours["relations"] * 2
    assert list(more) == list(index)
    assert list(questions) == ["fast-graphrag 0.0.5", "Trellis low", "Trellis medium", "Trellis high"]
    assert all(row["answered"] > 0 for row in questions.values())
