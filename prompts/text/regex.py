"""Regular expressions compiled at their first use: all at once they were a sixth of `import flows.query`."""

import re
from typing import Any, AnyStr, cast


class _Pattern:
    def __init__(self, written: Any, flags: int) -> None:
        self._written = written, flags

    def __getattr__(self, name: str) -> Any:
        """What the compiled pattern has by this name; it stays here, so that it is asked for once."""
        found = getattr(re.compile(*self._written), name)
        setattr(self, name, found)
        return found


def regex(written: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, for what a module keeps; one that is not well-formed raises `re.error` at its first use.

    Its methods are called (`WORD.search(text)`); functions of `re` do not take it.
    """
    return cast("re.Pattern[AnyStr]", _Pattern(written, flags))
