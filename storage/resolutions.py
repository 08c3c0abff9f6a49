"""Which thing did each name mean in each document, and which pairs of names has a model decided on?

Kept so that the next run can tell what a change touches, and pays for no decision twice.
"""

from collections.abc import Collection, Mapping

from storage.database import Column, Database

Place = tuple[str, str]  # a document and the key of a name in it
Went = tuple[str, str]  # the key of the thing that is meant there, and why it is meant
Verdict = tuple[bool, str]  # whether a pair is one thing, and why


class ResolutionReader:
    """The resolution of a generation."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def places(self) -> dict[Place, Went]:
        """Where each name went; empty for a generation that was never resolved."""
        rows = self._db.rows("SELECT document, name_key, thing, why FROM resolutions")
        return {(str(document), str(key)): (str(thing), str(why)) for document, key, thing, why in rows}

    def decisions(self) -> dict[str, Verdict]:
        """A model's decisions, by the hash of the pair."""
        rows = self._db.rows("SELECT pair, same, reason FROM decisions")
        return {str(pair): (bool(same), str(reason)) for pair, same, reason in rows}


class ResolutionWriter(ResolutionReader):
    """Adds writing."""

    def replace_places(self, documents: Collection[str] | None, places: Mapping[Place, Went]) -> None:
        """The places of these documents (None: all) in place of those they had."""
        with self._db.transaction():
            self._db.delete("resolutions", "document", documents)
            went = list(places.values())
            columns: dict[str, Column] = {
                "document": [document for document, _ in places],
                "name_key": [key for _, key in places],
                "thing": [thing for thing, _ in went],
                "why": [why for _, why in went],
            }
            self._db.insert("resolutions", columns)

    def replace_decisions(self, decisions: Mapping[str, Verdict]) -> None:
        """All decisions in place of the earlier ones."""
        with self._db.transaction():
            self._db.delete("decisions", "", None)
            said = list(decisions.values())
            columns: dict[str, Column] = {
                "pair": list(decisions),
                "same": [same for same, _ in said],
                "reason": [why for _, why in said],
            }
            self._db.insert("decisions", columns)
