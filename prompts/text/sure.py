"""Plain questions: those that ask one short thing of one named thing, for which some calls can be spared."""

from prompts.text.asked import Ask
from prompts.text.spans import names_of

MOST_WORDS = 14
_SIMPLE = frozenset({"fact", "list", "yesno"})
# Words of a question that compares or joins without the forms that the rules know.
_JOINING = frozenset("and or both same first last than between either".split())


def is_plain(ask: Ask) -> bool:
    """Whether a question asks one short thing of one named thing."""
    if ask.form not in _SIMPLE or ask.expects == "text" or ask.options:
        return False
    if ask.chinese:
        return ask.text.count("的") < 2 and not any(word in ask.text for word in ("和", "与", "还是", "都"))
    words = ask.text.lower().strip(" ?").split()
    named = sum(name.start > 0 for name in names_of(ask.text))
    return len(words) <= MOST_WORDS and named == 1 and not _JOINING & set(words)
