"""Ten documents, of which a key with a filter sees three, and signs that only the others hold."""

import json
import re

FILTER = "team = 'north'"
NORTH = {
    "north/bridge": (
        "Orla Bridge",
        "Orla Bridge was designed by Tomas Reyd. It opened in 1931 and is 412 metres long.",
    ),
    "north/reyd": (
        "Tomas Reyd",
        "Tomas Reyd was born in Velin. He studied under Ana Korb in Velin. Marlow Finch came to "
        "Velin in 1920. Ivo Rask followed Marlow Finch to Velin.",
    ),
    "north/tower": (
        "Kestrel Tower",
        "Kestrel Tower was built by Ida Brom in Hask. Ida Brom studied with Pela Sund in Hask. "
        "Kestrel Tower was opened by Pela Sund in 1902.",
    ),
}
SOUTH = {
    "south/zqholt": (
        "Zqarn Holt",
        "Zqarn Holt paid Tomas Reyd 90417 crowns in Velin. Zqarn Holt lived in Zqorrin Vale.",
    ),
    "south/zqelm": (
        "The Zqelm Ledger",
        "Zqelm Ledger was kept by Zqarn Holt. Marlow Finch, also known as Ivo Rask, wrote in the "
        "Zqelm Ledger in 1977.",
    ),
    "south/zqvexmoor": (
        "Zqvex Moor",
        "Zqvex Moor is a fen near Orla Bridge. Zqarn Holt drained Zqvex Moor in 1978.",
    ),
    "south/zqreyd": (
        "The arrest in Zqorrin Vale",
        "Tomas Reyd was arrested in Zqorrin Vale in 1979. Ana Korb stood bail of 90418 crowns.",
    ),
    "south/zqmill": (
        "Zqmill Works",
        "Zqmill Works was founded by Zqarn Holt in 1980. Zqmill Works stands in Zqorrin Vale.",
    ),
    "south/zqtide": (
        "Zqtide Company",
        "Zqtide Company owns Zqmill Works. Zqtide Company was sold to Zqarn Holt in 1981.",
    ),
    "south/zqhask": (
        "Zqhask Treaty",
        "Zqhask Treaty was signed in Hask by Zqarn Holt. Its fee was 90419 crowns.",
    ),
}
_FIELDS: dict[str, dict[str, object]] = {"north": {"year": 1931}, "south": {"zqcolour": "red"}}
ROWS = [
    {"id": name, "title": title, "text": text, "team": team, **_FIELDS[team]}
    for team, documents in (("north", NORTH), ("south", SOUTH))
    for name, (title, text) in documents.items()
]
SCHEMA = {"kinds": {"bridge": {"attributes": {"length": "number in m"}}}}
# What the scripted server makes of some passages: typed facts, and one that it refuses.
RULES = [
    {"kind": "writes", "step": "extract", "text": text, "says": "\n".join([*lines, "END"])}
    for text, lines in {
        "412 metres": (
            "E\tOrla Bridge\tbridge\t",
            "E\tTomas Reyd\tperson\tTomas Reyd designed it.",
            "R\tOrla Bridge\tTomas Reyd\tdesigned by\tTomas Reyd designed Orla Bridge.",
            "F\tOrla Bridge\tlength\t412 metres\t\t\t412 metres long",
        ),
        "Zqvex Moor is a fen": (
            "E\tZqvex Moor\tbridge\t",
            "E\tOrla Bridge\tbridge\tIt stands near Zqvex Moor.",
            "F\tZqvex Moor\tlength\t1978\t\t\tZqvex Moor in 1978",
        ),
    }.items()
] + [{"kind": "refusal", "step": "extract", "text": "Zqhask Treaty was signed"}]
# A plan over the typed facts: all bridges with their lengths.
PLAN = {"operation": "lookup", "table": 1, "columns": ["name", "length"], "filters": []}
PLANNED = {"kind": "writes", "step": "plan_facts", "says": json.dumps(PLAN)}
# Years and sums of the hidden documents, and the letters with which their own names begin.
_SIGNS = re.compile(r"\w*zq\w*|(?<![\w.])(?:9041[789]|197[789]|198[01])(?!\w)", re.IGNORECASE)


def signs_in(text: str) -> list[str]:
    """What a text holds that stands only in the hidden documents."""
    return _SIGNS.findall(text)
