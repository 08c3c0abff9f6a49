"""Records that stay columns are the same records, and none is made before it is looked at."""

from storage.columns import ById, Columns, column_of, with_column
from storage.graph_records import Entity

ENTITIES = [Entity(f"ent_{name}", name, "thing", f"{name}.", 1, 2) for name in ("Orla", "Velin", "Kestrel")]


def held(made: list[str]) -> Columns[Entity]:
    def make(*values: object) -> Entity:
        made.append(str(values[0]))
        return Entity(*values)  # type: ignore[arg-type]

    fields = ("id", "name", "kind", "description", "mentions", "degree")
    return Columns(make, {field: [getattr(entity, field) for entity in ENTITIES] for field in fields})


def test_columns_are_the_records_that_they_were_made_of() -> None:
    columns = held([])
    assert columns == ENTITIES
    assert [*columns] == ENTITIES
    assert (columns[1], columns[-1], columns[:2], len(columns)) == (ENTITIES[1], ENTITIES[2], ENTITIES[:2], 3)
    assert columns != ENTITIES[:2]
    assert columns != [*ENTITIES[:2], ENTITIES[0]]


def test_no_record_is_made_before_it_is_looked_at() -> None:
    made: list[str] = []
    by_id = ById(held(made))
    assert "ent_Velin" in by_id
    assert "ent_none" not in by_id
    assert column_of(by_id.records, "name") == ["Orla", "Velin", "Kestrel"]
    assert ([*by_id], len(by_id)) == (["ent_Orla", "ent_Velin", "ent_Kestrel"], 3)
    assert made == []
    assert by_id["ent_Velin"] == ENTITIES[1]
    assert made == ["ent_Velin"]


def test_a_field_is_replaced_in_columns_and_in_lists_alike() -> None:
    for records in (held([]), ENTITIES):
        assert [entity.description for entity in with_column(records, "description", "")] == ["", "", ""]
        assert column_of(with_column(records, "kind", "place"), "name") == ["Orla", "Velin", "Kestrel"]
