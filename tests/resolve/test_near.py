"""Are near names found without comparing all with all, the same ones every time?"""

import numpy as np
import pytest
from numpy.typing import NDArray

from prompts.engine.embedders import open_embedder
from tasks.resolve.candidates import EXACT, near_pairs

Floats = NDArray[np.float32]


def unit(vectors: NDArray[np.float64]) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / length, np.float32)


@pytest.fixture(scope="module")
def many() -> Floats:
    """Beyond what is compared exactly: points, each with one near it, in loose groups as names are."""
    draw = np.random.default_rng(11)
    groups = draw.normal(size=(60, 64))[draw.integers(60, size=EXACT)]
    points = groups + 0.7 * draw.normal(size=groups.shape)
    return unit(np.concatenate([points, points + 0.12 * draw.normal(size=points.shape)]))


def test_hardly_a_pair_is_missed_and_none_is_made_up(many: Floats) -> None:
    names = [str(number) for number in range(len(many))]
    rows, columns = np.nonzero(many @ many.T >= 0.95)
    exact = {(names[one], names[two]) for one, two in zip(rows, columns, strict=True) if one < two}
    found = near_pairs(names, many, 0.95)
    assert len(exact) > 3_000
    assert set(found) <= exact
    assert len(found) == len(set(found)) > 0.98 * len(exact)
    assert found == near_pairs(names, many, 0.95)


def test_few_names_are_compared_exactly_and_a_name_is_not_its_own_pair() -> None:
    vectors = unit(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]))
    assert near_pairs(["a", "b", "c"], vectors, 0.99) == [("a", "c")]
    assert near_pairs([], np.zeros((0, 2), np.float32), 0.9) == []


def test_each_name_needs_its_vector() -> None:
    with pytest.raises(ValueError, match="2 names meet 1 vectors"):
        near_pairs(["a", "b"], np.ones((1, 2), np.float32), 0.9)


def test_other_forms_of_a_name_are_near_and_other_things_are_not() -> None:
    names = [
        "Tidal Research Institute", "Institute for Tidal Research", "Dept. of Fisheries", "Department of Fisheries",
        "University of Velin", "Velin University", "North Harbour", "South Harbour", "Louis XIV", "Louis XV",
    ]  # fmt: skip
    vectors = open_embedder("bundled", None, None, None, allow_download=False).embed(names)
    assert near_pairs(names, vectors, 0.88) == [tuple(names[0:2]), tuple(names[2:4]), tuple(names[4:6])]
