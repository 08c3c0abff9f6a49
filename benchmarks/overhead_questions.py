"""Which sample questions of every class can be asked of any corpus whose passages have titles?"""

from collections.abc import Sequence

CLASSES = {
    "fact": "When was {a} born?",
    "where": "Where did {a} die?",
    "yesno": "Was {a} founded before 1950?",
    "list": "Which films did {a} direct?",
    "about": "Who is {a}?",
    "compare": "Which came first, {a} or {b}?",
    "chain": "Where was the father of {a} born?",
    "connect": "How are {a} and {b} connected?",
    "overview": "What do the documents say about {a} and {b} as a whole?",
    "vague": "Tell me why {a} mattered in the end, given {b}",
}


def questions_about(titles: Sequence[str], each: int) -> tuple[tuple[str, str], ...]:
    """(class, question) pairs: `each` of every class, about titles spread evenly over the corpus."""
    names = [title.partition(" (")[0] for title in titles if title]
    made, at = [], 0
    wide = max(1, len(names) // (each * len(CLASSES) + 1))
    for name, form in CLASSES.items():
        for _ in range(each):
            made.append((name, form.format(a=names[at % len(names)], b=names[(at + 1) % len(names)])))
            at += wide
    return tuple(made)
