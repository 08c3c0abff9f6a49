"""Every regular expression of the product takes linear time on 100,000 characters."""

from tests.hostile.patterns import patterns, too_slow


def test_every_pattern_is_linear() -> None:
    found = patterns()
    assert len(found) > 200
    slow = {name: text for name, one in found.items() if (text := too_slow(name, one))}
    assert slow == {}
