"""Which entities and relations a model has described, and the hash of what it described each from."""

from collections.abc import Collection, Mapping

from storage.database import Database

# Generations of earlier versions have no such table; a run that starts from one makes it.
TABLE = "CREATE TABLE IF NOT EXISTS descriptions (item VARCHAR NOT NULL, inputs VARCHAR NOT NULL)"


class DescriptionWriter:
    """The descriptions of a staging, so that no run pays for one again that still holds."""

    def __init__(self, database: Database) -> None:
        self._db = database
        database.execute(TABLE)

    def inputs(self) -> dict[str, str]:
        """By entity or relation."""
        return {str(item): str(inputs) for item, inputs in self._db.rows("SELECT item, inputs FROM descriptions")}

    def replace(self, items: Collection[str] | None, inputs: Mapping[str, str]) -> None:
        """These in place of what the items had (None: of all)."""
        with self._db.transaction():
            self._db.delete("descriptions", "item", items)
            self._db.insert("descriptions", {"item": list(inputs), "inputs": list(inputs.values())})
