"""Words that negate or except, in the languages that people ask in."""

import re

_NEGATION = re.compile(
    r"\b(?:not|cannot|never|no(?!\.\s?\d)|none|nobody|nothing|nowhere|neither|nor|without|except|excluding"
    r"|other than|apart from|nicht|kein\w*|nie|niemals|ohne|weder|ne|pas|jamais|sans|aucun\w*|sauf"
    r"|nunca|jamás|sin|ning[uú]n\w*|salvo|non(?!-)|senza|nessun\w*|não|sem|niet|geen|zonder)\b"
    r"|n['’]t\b|\bn['’](?=\w)"
    r"|不(?!同|仅|但|过|断|久|少|锈)|没(?!收)|未(?!来)|无(?!线|锡)|非(?!常|洲)|除|以外|之外",
    re.IGNORECASE,
)


def is_negated(text: str) -> bool:
    """Whether a text holds a word that negates or excepts."""
    return _NEGATION.search(text) is not None
