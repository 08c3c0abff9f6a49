"""`re.compile` under the name that older modules import."""

from re import compile as regex

__all__ = ["regex"]
