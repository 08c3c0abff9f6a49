"""Every regular expression of the product takes linear time on 100,000 characters."""

import pytest

from tests.hostile.patterns import patterns, too_slow

# Modules whose patterns were exponential: on a line of dashes, and on "known known known".
WORST = ("prompts.text.terms_zh.", "tasks.load.rows.")


def slow(*modules: str) -> dict[str, str]:
    return {
        name: text
        for name, pattern in patterns().items()
        if name.startswith(modules) and (text := too_slow(name, pattern))
    }


def test_patterns_that_were_exponential_are_linear() -> None:
    assert slow(*WORST) == {}


@pytest.mark.patient
def test_every_pattern_is_linear() -> None:
    assert len(patterns()) > 200
    assert slow("") == {}
