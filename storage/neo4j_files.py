"""Writes the graph of a generation for Neo4j: CSV files, and two scripts that import them.

`import.sh` makes a new database by `neo4j-admin`, `load.cypher` adds to a running one by LOAD CSV.
LOAD CSV takes a backslash as an escape character and `neo4j-admin` does so with
`--legacy-style-quoting`, so the files are written that way. The header of a column names its type,
as `neo4j-admin` reads it: `mentions:int`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from storage.database import Store

_FORM = "FORMAT csv, HEADER, DELIMITER ',', QUOTE '\"', ESCAPE '\\', FORCE_QUOTE *"
_MOST_PLACES = 100  # of a relation; `count` counts all
_ROWS = 1_000  # in a transaction


class Nodes(NamedTuple):
    """The nodes of a label; the query gives their properties, of which the first is the id."""

    label: str
    query: str

    @property
    def file(self) -> str:
        return f"{self.label.lower()}.csv"

    @property
    def option(self) -> str:
        return f"--nodes={self.label}={self.file}"


class Links(NamedTuple):
    """The relationships of a type from nodes of one label to those of another.

    The query gives the ids of both ends and then the properties. Two nodes have one relationship of
    a type, or one for each `id`.
    """

    type: str
    source: str
    target: str
    query: str

    @property
    def file(self) -> str:
        return f"{self.type.lower()}.csv"

    @property
    def option(self) -> str:
        return f"--relationships={self.type}={self.file}"


def _list(values: str) -> str:
    """Return SQL that joins a list by the character U+001F, which separates nothing else."""
    return f"array_to_string({values}, chr(31))"


_NODES = (
    Nodes("Document", "SELECT id, title, language, metadata FROM documents ORDER BY id"),
    Nodes(
        "Passage",
        """
        SELECT c.id, c.text, c.heading, c.document, c.start_at AS "start:int",
               c.end_at AS "end:int",
               nullif(len(list_filter(d.pages, lambda page: page <= c.start_at)), 0) AS "page:int"
        FROM chunks AS c JOIN documents AS d ON d.id = c.document ORDER BY c.document, c.ordinal
        """,
    ),
    Nodes(
        "Entity",
        f"""
        SELECT id, name, kind, description, coalesce({_list("names")}, '') AS "aliases:string[]",
               mentions AS "mentions:int", degree AS "degree:int"
        FROM entities LEFT JOIN (
            SELECT entity, list(DISTINCT name ORDER BY name) AS names FROM aliases GROUP BY entity)
            ON entity = id
        ORDER BY id
        """,
    ),
    Nodes(
        "Community",
        f"""
        SELECT c.id, c.level AS "level:int", coalesce(title, '') AS title,
               coalesce(summary, '') AS summary, rating AS "rating:double",
               coalesce({_list("said")}, '') AS "findings:string[]"
        FROM communities AS c LEFT JOIN reports AS r ON r.community = c.id LEFT JOIN (
            SELECT community, list(summary || ' ' || explanation ORDER BY ordinal) AS said FROM (
                SELECT DISTINCT community, ordinal, summary, explanation FROM findings)
            GROUP BY community) AS f ON f.community = c.id
        ORDER BY c.id
        """,
    ),
    Nodes(
        "Claim",
        """
        SELECT id, kind, status, description, coalesce(since, '') AS since,
               coalesce(until, '') AS until, start_at AS "start:int", end_at AS "end:int"
        FROM claims ORDER BY id
        """,
    ),
    Nodes(
        "Fact",
        """
        SELECT id, type, value, number AS "number:double", unit, day,
               coalesce(valid_from, '') AS valid_from, coalesce(valid_to, '') AS valid_to,
               start_at AS "start:int", end_at AS "end:int"
        FROM facts ORDER BY id
        """,
    ),
)
_LINKS = (
    Links("PART_OF", "Passage", "Document", "SELECT id, document FROM chunks ORDER BY id"),
    Links(
        "MENTIONS",
        "Passage",
        "Entity",
        f"""
        SELECT chunk, item, {_list("list(start_at ORDER BY start_at, end_at)")} AS "starts:int[]",
               {_list("list(end_at ORDER BY start_at, end_at)")} AS "ends:int[]"
        FROM entity_occurrences GROUP BY chunk, item ORDER BY chunk, item
        """,
    ),
    Links(
        "RELATES",
        "Entity",
        "Entity",
        f"""
        SELECT source, target, id, predicate, description, weight AS "weight:double",
               count AS "count:int", {_list("keys")} AS "keys:string[]",
               coalesce({_list(f"places[:{_MOST_PLACES}]")}, '') AS "places:string[]"
        FROM relations LEFT JOIN (
            SELECT item, list(chunk || ' ' || start_at || '-' || end_at ORDER BY chunk, start_at)
                AS places
            FROM relation_occurrences GROUP BY item) ON item = id
        ORDER BY id
        """,
    ),
    Links(
        "MEMBER_OF",
        "Entity",
        "Community",
        "SELECT unnest(members) AS member, id FROM communities ORDER BY id, member",
    ),
    Links(
        "WITHIN",
        "Community",
        "Community",
        "SELECT id, parent FROM communities WHERE parent IS NOT NULL ORDER BY id",
    ),
    Links("HAS_CLAIM", "Entity", "Claim", "SELECT subject, id FROM claims ORDER BY id"),
    Links(
        "CLAIM_ON",
        "Claim",
        "Entity",
        "SELECT id, object FROM claims WHERE object IS NOT NULL ORDER BY id",
    ),
    Links("CLAIM_IN", "Claim", "Passage", "SELECT id, chunk FROM claims ORDER BY id"),
    Links("HAS_FACT", "Entity", "Fact", "SELECT subject, id FROM facts ORDER BY id"),
    Links(
        "FACT_ON",
        "Fact",
        "Entity",
        "SELECT id, object FROM facts WHERE object IS NOT NULL ORDER BY id",
    ),
    Links("FACT_IN", "Fact", "Passage", "SELECT id, chunk FROM facts ORDER BY id"),
)


class Neo4jFiles(Store):
    """The graph of a generation as files for Neo4j."""

    def write(self, folder: Path) -> dict[str, int]:
        """Write CSV files and two scripts into a folder; return names and numbers of rows."""
        rows, statements = dict[str, int](), list[str]()
        for nodes in _NODES:
            names = self._names(nodes.query)
            header = [f"id:ID({nodes.label})", *names[1:]]
            rows[nodes.file] = self._write(nodes.query, header, folder / nodes.file)
            statements += _load_nodes(nodes, header)
        for links in _LINKS:
            names = self._names(links.query)
            ends = f":START_ID({links.source})", f":END_ID({links.target})"
            header = [*ends, *names[2:]]
            rows[links.file] = self._write(links.query, header, folder / links.file)
            statements += _load_links(links, header)
        scripts = {"import.sh": _import_script(), "load.cypher": _LOAD + "\n".join(statements)}
        for name, text in scripts.items():
            (folder / name).write_text(f"{text}\n", encoding="utf-8")
        return rows | dict.fromkeys(scripts, len(rows))

    def _names(self, query: str) -> list[str]:
        return self._db.strings(f"SELECT column_name FROM (DESCRIBE {query})")

    def _write(self, query: str, header: list[str], path: Path) -> int:
        columns = ", ".join(f'"{name}"' for name in header)
        return self._db.copy(f"SELECT * FROM ({query}) AS t({columns})", path, _FORM)


def _import_script() -> str:
    options = [part.option for part in (*_NODES, *_LINKS)]
    return " \\\n    ".join([_IMPORT, *options, '"${1:-neo4j}"'])


_IMPORT = """\
#!/bin/sh
# Makes a new database of these files with Neo4j 5: sh import.sh [DATABASE]
cd "$(dirname "$0")" && neo4j-admin database import full --multiline-fields=true \\
    --legacy-style-quoting=true --array-delimiter=U+001F"""
_LOAD = """\
// Adds these files to a running Neo4j 5: put them into its folder `import`, then
// cypher-shell -f load.cypher
"""


def _load_nodes(nodes: Nodes, header: list[str]) -> Iterator[str]:
    label, (key, *properties) = nodes.label, header
    yield (
        f"CREATE CONSTRAINT trellis_{label.lower()} IF NOT EXISTS\n"
        f"  FOR (n:{label}) REQUIRE n.id IS UNIQUE;"
    )
    yield _load(nodes.file, f"MERGE (n:{label} {{id: row.`{key}`}})", "n", properties)


def _load_links(links: Links, header: list[str]) -> Iterator[str]:
    start, end, *properties = header
    key = " {id: row.id}" if "id" in properties else ""
    merge = (
        f"MATCH (a:{links.source} {{id: row.`{start}`}}), (b:{links.target} {{id: row.`{end}`}})\n"
        f"  MERGE (a)-[r:{links.type}{key}]->(b)"
    )
    yield _load(links.file, merge, "r", properties)


def _load(file: str, merge: str, name: str, properties: list[str]) -> str:
    values = [f"{name}.`{it.partition(':')[0]}` = {_typed(it)}" for it in properties]
    assigned = "\n  SET " + ",\n      ".join(values) if values else ""
    return (
        f"LOAD CSV WITH HEADERS FROM 'file:///{file}' AS row\n"
        f"CALL {{\n  WITH row\n  {merge}{assigned}\n}} IN TRANSACTIONS OF {_ROWS} ROWS;"
    )


def _typed(column: str) -> str:
    """Return Cypher that reads a column of LOAD CSV, which is text, as the type in its name."""
    value = f"row.`{column}`"
    of_text = {"int": f"toInteger({value})", "double": f"toFloat({value})"}
    parts = f"split({value}, '\\u001F')"
    of_list = {"string[]": parts, "int[]": f"[part IN {parts} | toInteger(part)]"}
    return (of_text | of_list).get(column.partition(":")[2], value)
