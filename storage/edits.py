"""What have people changed in the graph by hand?

Edits name things as the texts do, never by an id that another run may give: so they hold for the generations to come.
They travel with the generation, are applied in their order, and each can be undone.
"""

from typing import Literal

from storage.database import Database
from storage.errors import UsageError
from storage.records import Record

Action = Literal["merge", "split", "change"]


class Subject(Record):
    """A thing by one of its names; where several things have that name, by the documents that mean this one."""

    name: str
    documents: tuple[str, ...] = ()


class Edit(Record):
    """One change. `id` and `at` (a UTC time in ISO form) are given when it is kept.

    merge: `other` is the same thing as `subject`. split: what `names`, or `documents`, say of the subject is another
    thing. change: the subject gets this kind, name or description (None: as it was).
    """

    id: int = 0
    at: str = ""
    action: Action
    subject: Subject
    other: Subject | None = None
    names: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    kind: str | None = None
    name: str | None = None
    description: str | None = None


class EditReader:
    """The edits that hold, in their order."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def edits(self) -> list[Edit]:
        return [Edit.model_validate_json(said) for said in self._db.strings("SELECT edit FROM edits ORDER BY id")]


class EditWriter(EditReader):
    """Adds writing."""

    def add(self, edit: Edit, at: str) -> Edit:
        """Keeps an edit as the last one; returns it with its number, one above the highest that holds."""
        number = self._db.number("SELECT coalesce(max(id), 0) + 1 FROM edits")
        kept = edit.model_copy(update={"id": number, "at": at})
        self._db.insert("edits", {"id": [number], "edit": [kept.model_dump_json()]})
        return kept

    def remove(self, number: int) -> Edit:
        """Forgets an edit. Raises UsageError, which lists those there are."""
        edits = {edit.id: edit for edit in self.edits()}
        if number not in edits:
            known = ", ".join(map(str, edits)) or "none"
            raise UsageError(f"There is no edit {number}.", f"Edits: {known} (see `trellis graph edits`).")
        self._db.execute("DELETE FROM edits WHERE id = ?", [number])
        return edits[number]
