"""How is an answer shown while a model writes it, and taken back where it turns out to be none?"""

from collections.abc import Callable


class Withdrawn:
    """What was shown so far does not hold: another answer follows, or an error."""


Show = Callable[[str | Withdrawn], None]


class Draft:
    """What one caller sees of an answer; without `show` nobody watches."""

    def __init__(self, show: Show | None = None) -> None:
        self._show = show
        self._shown = False

    @property
    def watched(self) -> bool:
        return self._show is not None

    def add(self, piece: str) -> None:
        """Show a further piece."""
        if self._show is not None:
            self._shown = True
            self._show(piece)

    def withdraw(self) -> bool:
        """Take back what was shown; False where nothing was."""
        if not self._shown or self._show is None:
            return False
        self._shown = False
        self._show(Withdrawn())
        return True
