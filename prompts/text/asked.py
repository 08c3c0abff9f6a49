"""A question taken apart: its form, the kind of answer that it expects, the things it is about."""

from dataclasses import dataclass
from typing import Literal

Form = Literal["fact", "list", "yesno", "compare", "connect", "howto", "summary", "global", "about"]
Expected = Literal["person", "place", "date", "money", "number", "name", "text", "yesno"]
Direction = Literal["max", "min", ""]


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, taken apart. `noun` is the kind of thing asked for ("bridges").

    `options` are the things that it chooses between, or that it says or asks something of together.
    """

    text: str
    chinese: bool
    form: Form
    expects: Expected
    noun: str = ""
    options: tuple[str, ...] = ()
    direction: Direction = ""
    plural: bool = False


_MOST = """
    highest most largest biggest longest tallest greatest latest newest last heaviest fastest best widest deepest
    later longer higher larger bigger taller greater more heavier wider deeper richest strongest busiest
"""
_LEAST = """
    lowest least smallest shortest earliest fewest cheapest slowest worst narrowest first lower fewer smaller
    shorter earlier less narrower cheaper closest nearest
"""
# Ages are compared as years of birth: the oldest has the earliest.
DIRECTION: dict[str, Direction] = {
    **dict.fromkeys(_MOST.split(), "max"),
    **dict.fromkeys(_LEAST.split(), "min"),
    **dict.fromkeys(("oldest", "older"), "min"),
    **dict.fromkeys(("youngest", "younger"), "max"),
}

_PERSONS = """
    person man woman engineer director author writer composer architect designer founder president king queen
    actor actress singer artist owner chairman chair ceo manager chief leader mayor minister scientist painter
    poet player coach teacher father mother son daughter wife husband spouse brother sister child grandfather
    grandmother editor producer inventor brewer captain curator performer
"""
_PLACES = """
    place city country town village region state province county district river island street location continent
    nation birthplace hometown nationality
"""
_NUMBERS = """
    number length height width depth weight distance population percentage share rate level speed capacity size
    area amount total count age temperature content volume limit duration score accuracy
"""
_MONEY = "income revenue turnover cost price budget fee salary profit loss expense expenses value sum"
NOUN_KIND: dict[str, Expected] = {
    **dict.fromkeys(_PERSONS.split(), "person"),
    **dict.fromkeys(_PLACES.split(), "place"),
    **dict.fromkeys("year date day month century decade time".split(), "date"),
    **dict.fromkeys(_NUMBERS.split(), "number"),
    **dict.fromkeys(_MONEY.split(), "money"),
}


def is_plural(noun: str) -> bool:
    """Whether an English noun is in the plural."""
    return noun in {"people", "men", "women", "children"} or (
        noun.endswith("s") and not noun.endswith(("ss", "us", "is", "series", "species"))
    )


def singular(noun: str) -> str:
    """An English noun in the singular, so far as dropping an "s" makes it so."""
    return noun[:-1] if noun.endswith("s") and is_plural(noun) else noun
