"""Evidence is a set: pairs of passages are ranked, by how they hang together and what they hold between them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tasks.retrieve.passage_sets import Bridges, Signs, Weights, choose, pair_scores

# Passage 0 is about a and names b; 1 is about b; 2 is about c, and 3 about d; 2 and 3 name the same rare e, and all a.
NAMED = csr_matrix([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 1], [1, 0, 0, 1, 1]])
BRIDGES = Bridges(NAMED, [(0,), (1,), (2,), (3,)])


def signs_of(holds: list[list[bool]], subject: list[float]) -> Signs:
    count = len(holds)
    return Signs(
        walked=np.ones(count),
        meaning=np.zeros(count),
        subject=np.array(subject),
        holds=np.array(holds),
        rarity=np.full(len(holds[0]), 1 / len(holds[0])),
        mentions=np.zeros((count, count), bool),
        shared=np.zeros((count, count)),
        cues=np.zeros((count, count)),
    )


def test_the_next_passages_share_rare_things_that_the_question_did_not_name() -> None:
    further = BRIDGES.further([2], [0])
    assert further[3] > 0
    assert further[1] == 0


def test_what_two_passages_hold_together_counts_once() -> None:
    signs = signs_of([[True, False, False], [True, False, False], [False, True, False]], [0, 0, 0])
    scores = pair_scores(signs, Weights(walked=0, meaning=0, subject=0, covered=0, together=3, mention=0, shared=0))
    assert scores[0, 1] == pytest.approx(1.0)
    assert scores[0, 2] == pytest.approx(2.0)


def test_the_best_pair_comes_first_and_its_partners_next() -> None:
    pairs = np.array([[0, 1, 5, 0], [1, 0, 1, 0], [5, 1, 0, 4], [0, 0, 4, 0]], float)
    assert choose(pairs, np.zeros(4)) == [0, 2, 3, 1]


def test_two_named_things_get_a_second_half_each() -> None:
    # 0 and 1 are named; 2 and 3 go with 0, and 4, a little less, with 1.
    pairs = np.full((5, 5), -5.0)
    for one, two, score in [(0, 1, 3.0), (0, 2, 2.0), (0, 3, 1.7), (1, 4, 1.5)]:
        pairs[one, two] = pairs[two, one] = score
    named = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    assert choose(pairs, named, 4)[2:] == [2, 4]
    assert choose(pairs, np.ones(5), 4)[2:] == [2, 3]
