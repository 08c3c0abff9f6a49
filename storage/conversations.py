"""Conversations that the page keeps: each belongs to one user of the service, its owner."""

import json
from collections.abc import Callable
from functools import partial

from storage.answer_records import Answer
from storage.errors import NotFound
from storage.records import Record
from storage.sqlite import SqliteFile


class Turn(Record):
    """A question with its answer; `asked` is a UTC time in ISO form, `helpful` a rating."""

    asked: str
    answer: Answer
    helpful: bool | None = None


class ListedConversation(Record):
    """A conversation without its turns.

    The title is the first question until the conversation is renamed; `turns` counts them, `asked`
    is the time of the last.
    """

    id: str
    title: str
    turns: int
    asked: str


class Conversation(Record):
    """A conversation with its turns, oldest first."""

    id: str
    title: str
    turns: tuple[Turn, ...]


class UnknownConversation(NotFound):
    """The owner has no such conversation; somebody else may have one of this id."""

    def __init__(self, conversation: str) -> None:
        super().__init__(
            f"You have no conversation {conversation!r}.",
            "It was deleted, or its documents were forgotten. GET conversations lists yours.",
        )


_MINE = "owner = ? AND conversation = ?"
_LISTED = """
    WITH listed AS (
        SELECT conversation, max(title) AS title, count(*) AS turns,
            min(number) AS first, max(number) AS last
        FROM turns WHERE owner = ? GROUP BY conversation)
    SELECT listed.conversation,
        coalesce(nullif(listed.title, ''), json_extract(first.turn, '$.answer.question')),
        listed.turns, json_extract(last.turn, '$.asked')
    FROM listed JOIN turns AS first ON first.number = listed.first
        JOIN turns AS last ON last.number = listed.last
    ORDER BY last.number DESC
"""


class Conversations:
    """The turns of all conversations; every method but `forget_where` sees those of one owner."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, owner: str, conversation: str, turn: Turn, most: int) -> None:
        """Add a turn to a conversation, which begins with it if there is none of this id; remove
        the owner's oldest turns beyond `most`.
        """
        row = (owner, conversation, turn.model_dump_json(), owner, conversation)
        with self._file.transaction() as connection:
            title = f"(SELECT coalesce(max(title), '') FROM turns WHERE {_MINE})"
            sql = f"INSERT INTO turns (owner, conversation, turn, title) VALUES (?, ?, ?, {title})"
            connection.execute(sql, row)
            newest = "SELECT number FROM turns WHERE owner = ? ORDER BY number DESC LIMIT ?"
            sql = f"DELETE FROM turns WHERE owner = ? AND number NOT IN ({newest})"
            connection.execute(sql, (owner, owner, most))

    def listed(self, owner: str) -> list[ListedConversation]:
        """Return the conversations, that with the latest turn first."""
        names = list(ListedConversation.model_fields)
        return self._file.read(
            _LISTED, lambda *row: ListedConversation(**dict(zip(names, row, strict=True))), [owner]
        )

    def get(self, owner: str, conversation: str) -> Conversation:
        """Return a conversation. Raises UnknownConversation."""
        read = partial(Turn.model_validate_json, extra="ignore")  # of other versions
        sql = f"SELECT title, turn FROM turns WHERE {_MINE} ORDER BY number"
        rows = self._file.read(sql, lambda *row: (row[0], read(row[1])), [owner, conversation])
        if not rows:
            raise UnknownConversation(conversation)
        turns = tuple(turn for _, turn in rows)
        title = rows[0][0] or turns[0].answer.question
        return Conversation(id=conversation, title=title, turns=turns)

    def rename(self, owner: str, conversation: str, title: str) -> None:
        """Give a conversation a title. Raises UnknownConversation."""
        self._change(f"UPDATE turns SET title = ? WHERE {_MINE}", (title, owner, conversation))

    def remove(self, owner: str, conversation: str) -> None:
        """Remove a conversation. Raises UnknownConversation."""
        self._change(f"DELETE FROM turns WHERE {_MINE}", (owner, conversation))

    def _change(self, sql: str, parameters: tuple[str, ...]) -> None:
        with self._file.transaction() as connection:
            if not connection.execute(sql, parameters).rowcount:
                raise UnknownConversation(parameters[-1])

    def remove_all(self, owner: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM turns WHERE owner = ?", [owner])

    def rate(self, owner: str, conversation: str, answer: tuple[str, str], helpful: bool) -> None:
        """Store the owner's rating beside an answer, given as its question and its text."""
        sql = f"""
            UPDATE turns SET turn = json_set(turn, '$.helpful', json(?)) WHERE {_MINE}
                AND json_extract(turn, '$.answer.question') = ?
                AND json_extract(turn, '$.answer.answer') = ?
        """
        with self._file.transaction() as connection:
            connection.execute(sql, (json.dumps(helpful), owner, conversation, *answer))

    def forget_where(self, holds: Callable[[str], bool]) -> int:
        """Remove the turns of all owners that `holds` accepts, and titles that it accepts, for
        which the first question stands again; return how many turns were removed.
        """
        titles = self._file.read("SELECT DISTINCT title FROM turns WHERE title <> ''", str)
        with self._file.transaction() as connection:
            for title in filter(holds, titles):
                connection.execute("UPDATE turns SET title = '' WHERE title = ?", [title])
        return self._file.delete_where("turns", "turn", holds)
