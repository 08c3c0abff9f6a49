"""Which parts of the search take part? All of them, unless somebody measures what one is worth."""

from storage.records import Record


class Switches(Record):
    """The parts of a search; a part that is off is left out, the others go on."""

    words: bool = True
    """Passages with the question's words: in the start of the walk, in the pool and beside the walk."""
    meaning: bool = True
    """The same for passages with near vectors."""
    walk: bool = True
    """Personalised PageRank from the question's names."""
    fuzzy: bool = True
    """Names that the question spells almost as the documents do."""
    bridges: bool = True
    """What passages name and are about: those that the first ones lead to, and which of them hang together."""
    sets: bool = True
    """Passages ranked as sets; else each by itself."""
