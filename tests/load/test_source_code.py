"""Source code is stored as it is and cut by functions and classes, whatever the language."""

from pathlib import Path

import pytest

from storage.records import Chunk
from tasks.chunk import chunk_document
from tasks.load.source_code import ENDINGS
from tasks.load.sources import compose, read_sources

SIZE = 60  # tokens of a passage: one function, or two small ones
PYTHON = '''"""Fees of the port."""

import json
from pathlib import Path

RATE = 55


@cached
def fee(
    pier: str,
    days: int = 1,
) -> int:
    """Return the fee of a pier."""
    if pier == "North":
        return RATE * days

    return 0


class Weir(Base):
    """A weir."""

    def open(self, by: float) -> None:
        for gate in self.gates:
            gate.lift(by)
            log.info("gate %s was lifted by %s metres at once", gate, by)

    # It is closed at night.
    async def close(self) -> None:
        await self.gates.drop()
        log.info("all gates of the weir were closed for the night")
'''
JAVASCRIPT = """import { Gate } from "./gate.js";

/** The fee of a pier. */
export async function fee(pier, days = 1) {
  if (pier === "North") {
    return 55 * days;
  } else {
    return 0;
  }
}

export class Weir extends Base {
  open(by) {
    this.gates.forEach((gate) => {
      gate.lift(by);
    });
    console.log("the gates of the weir were lifted by so many metres", by);
  }

  close() {
    this.gates.drop();
    console.log("all gates of the weir were closed for the night, every one");
  }
}
"""
TYPESCRIPT = """interface Pier {
  name: string;
  days: number;
}

export const fee = (pier: Pier): number => {
  if (pier.name === "North") {
    return 55 * pier.days;
  }
  return 0;
};

export class Weir {
  constructor(private gates: Gate[]) {
    console.log("a weir of so many gates was built on the river", gates);
  }

  open(by: number): void {
    this.gates.forEach((gate) => gate.lift(by));
    console.log("the gates of the weir were lifted by so many metres", by);
  }
}
"""
JAVA = """package port;

import java.util.List;

/**
 * Fees of the port.
 */
@Service
public class Weir extends Base
        implements Fees {
    private final List<Gate> gates;

    @Override
    public int fee(String pier, int days) {
        if (pier.equals("North")) {
            return 55 * days;
        }
        return 0;
    }

    // It is opened by metres.
    public void open(double by,
            boolean slowly) {
        for (Gate gate : gates) {
            gate.lift(by);
            log.info("the gate was lifted by so many metres at once");
        }
    }
}
"""
GO = """package port

import (
\t"fmt"
\t"strings"
)

// Fee returns the fee of a pier.
func Fee(pier string, days int) int {
\tif pier == "North" {
\t\treturn 55 * days
\t}
\treturn 0
}

type Weir struct {
\tgates []Gate
}

func (w *Weir) Open(by float64) error {
\tfor _, gate := range w.gates {
\t\tgate.Lift(by)
\t\tfmt.Println("the gate was lifted by so many metres at once", gate, by)
\t}
\treturn nil
}
"""
RUST = """use std::fmt;

/// The fee of a pier.
#[must_use]
pub fn fee(pier: &str, days: u32) -> u32 {
    match pier {
        "North" => 55 * days,
        _ => 0,
    }
}

#[derive(Debug)]
pub struct Weir {
    gates: Vec<Gate>,
}

impl Weir {
    pub fn open(&mut self, by: f64) {
        for gate in &mut self.gates {
            gate.lift(by);
        }
        println!("the gates of the weir were lifted by so many metres {by}");
    }

    fn close(&mut self) {
        self.gates.clear();
        println!("all gates of the weir were closed for the night, every one");
    }
}
"""
C = """#include <stdio.h>
#define RATE 55

/* The fee
 * of a pier. */
static int
fee(const char *pier, int days)
{
#ifdef NORTH
    if (north(pier))
        return RATE * days;
#endif
    return 0;
}

void open_weir(struct gate *gates, double by)
{
    int i;

    for (i = 0; gates[i].name; i++) {
        lift(&gates[i], by);
    }
    printf("the gates of the weir were lifted by so many metres %f", by);
}
"""
# By file: the text, functions by their first and last words, headings of passages.
CASES = {
    "a.py": (
        PYTHON,
        [("@cached", "return 0"), ("def open", "by)"), ("# It is", 'night")')],
        {"def fee", "class Weir(Base) > async def close(self) -> None"},
    ),
    "a.js": (
        JAVASCRIPT,
        [("/** The fee", "return 0;\n  }\n}"), ("open(by)", "by);\n  }"), ("close()", "one")],
        {"export class Weir extends Base > close()"},
    ),
    "a.ts": (
        TYPESCRIPT,
        [("export const fee", "return 0;\n}"), ("constructor", "gates);"), ("open(by", "by);\n")],
        {"export class Weir > open(by: number): void"},
    ),
    "a.java": (
        JAVA,
        [("@Override", "return 0;\n    }"), ("// It is", "once")],
        {"public class Weir extends Base > public void open(double by,"},
    ),
    "a.go": (
        GO,
        [("// Fee", "return 0\n}"), ("type Weir", "[]Gate\n}"), ("func (w", "nil\n}")],
        {"func (w *Weir) Open(by float64) error"},
    ),
    "a.rs": (
        RUST,
        [("/// The fee", "_ => 0"), ("#[derive", "Gate>,\n}"), ("fn close", "one")],
        {"pub struct Weir", "impl Weir > fn close(&mut self)"},
    ),
    "a.c": (
        C,
        [("/* The fee", "return 0;\n}"), ("void open_weir", "int i")],
        {"void open_weir(struct gate *gates, double by)"},
    ),
}


def cut(folder: Path, name: str, text: str, size: int = SIZE) -> list[Chunk]:
    (folder / name).write_text(text, encoding="utf-8")
    loaded = read_sources([folder])
    assert not loaded.skipped
    (document,) = compose(loaded.parts)
    assert (document.text, document.title) == (text, name)
    chunks = chunk_document(document, size, size // 6)
    for chunk in chunks:
        assert chunk.tokens <= size
        assert document.text[chunk.start : chunk.end] == chunk.text
    assert sum(len(chunk.text) for chunk in chunks) >= len("".join(text.split()))
    return chunks


@pytest.mark.parametrize("name", CASES)
def test_functions_are_kept_whole_and_named(name: str, tmp_path: Path) -> None:
    text, functions, headings = CASES[name]
    chunks = cut(tmp_path, name, text)
    for first, last in functions:
        (holding,) = [chunk.text for chunk in chunks if first in chunk.text]
        assert last in holding.partition(first)[2]
    assert headings <= {chunk.heading for chunk in chunks}


def test_a_function_longer_than_a_passage_is_cut_at_lines(tmp_path: Path) -> None:
    lines = [f'    print("gate {n} of the weir was opened")' for n in range(60)]
    chunks = cut(tmp_path, "a.py", "\n".join(["def open():", *lines, ""]))
    assert {chunk.heading for chunk in chunks} == {"def open()"}
    assert all(chunk.text.startswith(("def", "print(")) for chunk in chunks)
    assert all(chunk.text.endswith('")') for chunk in chunks)


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "1, " * 2_000 + "]",  # one long line
        "\n".join("  " * depth + "if x:" for depth in range(300)),
        "}\n\n}\n\n)\n  x\n y\n\tz\n\nend\n" * 20,
        "def f(:\n   (((\n\n@\n#\n/*\n" * 20,
        "'''" + "\n\n\u3000不是代码。" * 200,
    ],
)
def test_code_that_is_none_is_cut_all_the_same(text: str, tmp_path: Path) -> None:
    assert cut(tmp_path, "a.py", text)


def test_all_languages_are_read(tmp_path: Path) -> None:
    for ending in ENDINGS:
        (tmp_path / f"a{ending}").write_text(f"weir{ending} = 55")
    assert len(read_sources([tmp_path]).parts) == len(ENDINGS) > 50
