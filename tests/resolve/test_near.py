"""Are near names found, the same ones every time?"""

import numpy as np
import pytest
from numpy.typing import NDArray

from prompts.engine.embedders import open_embedder
from tasks.resolve.candidates import near_pairs

Floats = NDArray[np.float32]


def unit(vectors: NDArray[np.float64]) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / length, np.float32)


def test_every_pair_is_found_in_order_and_a_name_is_not_its_own() -> None:
    vectors = unit(np.random.default_rng(11).normal(size=(2_500, 8)))
    names = [str(number) for number in range(len(vectors))]
    rows, columns = np.nonzero(vectors @ vectors.T >= 0.95)
    exact = [(names[one], names[two]) for one, two in zip(rows, columns, strict=True) if one < two]
    assert len(exact) > 100
    assert near_pairs(names, vectors, 0.95) == exact
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
