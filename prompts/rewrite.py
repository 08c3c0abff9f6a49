"""Rewrite: what is searched for in place of a question (ERM4, Query Rewriter+: p → (s, Q)).

One question that stands on its own with its search queries; a hypothetical passage (HyDE, arXiv 2212.10496); the keys
by which the graph is searched: low ones name things, high ones what is asked of them (LightRAG, section 3.2).
"""

from collections.abc import Iterable, Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.calls import NotAsAsked, rough_tokens
from prompts.engine.step import Step
from prompts.offline.keywords import keywords_offline
from prompts.offline.rewrite import MAX_QUERIES, rewrite_offline
from prompts.text.words import is_han

MAX_READINGS = 4
# A longer question says more than it asks: a model finds what that is.
LONG_WORDS, LONG_HAN = 50, 100
ALONE = "a short question without a history stands on its own"
LOW = "low effort: a question without a history is searched for as it is"


MAX_KEYS = 8
LONGEST = 120  # signs: what is longer is a sentence and no key
LOW_KEYS = "low effort: names and words of the question are its keys"


class Ambiguous(BaseModel):
    """Words of the question that could mean several things."""

    text: str = Field(description="Exactly as in the question.")
    readings: list[str] = Field(description=f"What they could mean, the one taken first; at most {MAX_READINGS}.")


class Rewriting(BaseModel):
    """One unambiguous question and the search queries for its aspects."""

    reasoning: str = Field(default="", description="In a sentence or two: what is left open, and what fills it.")
    question: str = Field(description="The question, complete, in its own language.")
    queries: list[str] = Field(default_factory=list, description=f"Search queries, at most {MAX_QUERIES}.")
    ambiguities: list[Ambiguous] = Field(default_factory=list, description="Mostly none.")


class RewriteQuestion(dspy.Signature):
    """Rewrite a user's question so that it can be understood, and searched for, without the conversation before it.

    The question you write is answered in place of the user's: it must ask for the same thing, no more and no less. Put
    what the conversation says in place of pronouns, of "that bridge" or "the second one", of years that are only
    meant, and of what a half question leaves out ("And in 2021?"). What was said last is meant before what was said
    earlier. Keep names, figures, dates, negations and limits of the question. Write out an abbreviation, and correct a
    slip of the pen, if there is no doubt what is meant. Drop greetings and what surrounds the question in a long
    message, unless the answer depends on it; of several questions keep all. Keep a wish for the form of the answer.
    Do not answer, and do not add what you know about the matter. A question that stands on its own already is given
    back as it is. Keep the language of the question, even where the conversation was in another one.

    The queries are what is typed into a search over the documents: short, in the words that a document would use, each
    for another aspect. A chain needs one for its first link ("designer of the Kestrel Bridge"), a comparison one for
    each thing compared, a question about a development one for its beginning and one for its end. Give synonyms, the
    full form beside the abbreviation, or the term in the language of the documents, where that helps. A question that
    one search answers needs none: the question itself is always searched for.

    Words are ambiguous if they fit several things and the conversation does not tell which: two people of one name, a
    "she" with two women before it, "last year" without a date. Take the likeliest reading in the question you write,
    and list the others. Ordinary vagueness is no ambiguity.

    Example. Conversation: "Who designed the Tarn Tunnel?", "The Tarn Tunnel was designed by Mara Holt in 1931, and
    inspected by Una Kerr." Question: "where did she train and what else is by her". Reasoning: "she is the designer,
    Mara Holt; the inspector is named in passing". Question: "Where did Mara Holt train, and what else did Mara Holt
    design?" Queries: "Mara Holt training education", "works designed by Mara Holt". Ambiguities: "she": Mara Holt, Una
    Kerr.

    例：对话“青石渡口归谁管？”“归县航运站管。”问题“那他们2020年的客流呢？”reasoning“他们指县航运站，问的是它所管渡口的客流”，
    question“县航运站管理的青石渡口2020年的客流是多少？”queries“青石渡口 2020年 客流量”，没有歧义。"""

    question: str = dspy.InputField(desc="The user's message.")
    history: list[str] = dspy.InputField(desc="Earlier questions and answers, oldest first.")
    rewriting: Rewriting = dspy.OutputField()


class Rewrite(Step):
    """A question with its history → one question, its queries, and what in it is ambiguous.

    A model is asked where there is a history, or the question is long.
    """

    step = "rewrite"
    role = "rewrite"
    task = RewriteQuestion

    async def run(self, question: str, history: Sequence[str]) -> Rewriting:
        """The model's question and ambiguities as it wrote them; its first queries."""
        if self.is_offline or not (history or self._asks_of_one(question)):
            return _by_rules(question, history)
        shown = recent(history, self.policy.limits.rate)
        written: Rewriting = (await self.acall(question=question, history=shown)).rewriting
        queries = dict.fromkeys(" ".join(query.split()) for query in written.queries)
        return Rewriting(
            question=written.question.strip(),
            queries=[query for query in queries if query][:MAX_QUERIES],
            ambiguities=[
                Ambiguous(text=ambiguity.text, readings=list(dict.fromkeys(ambiguity.readings))[:MAX_READINGS])
                for ambiguity in written.ambiguities
                if ambiguity.text.strip()
            ],
        )

    def _asks_of_one(self, question: str) -> bool:
        """Whether a model reads a question that follows nothing."""
        if is_long(question) and self.policy.effort != "low":
            return True
        return not self.spares(LOW if self.policy.effort == "low" else ALONE)

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """A rewriting without a question is asked for once more."""
        rewriting = outputs["rewriting"]
        if isinstance(rewriting, Rewriting) and not rewriting.question.strip():
            raise NotAsAsked("it has no question.")


def is_long(question: str) -> bool:
    """Whether a question is longer than one that asks for something and says no more."""
    return len(question) > LONG_HAN if is_han(question) else len(question.split()) > LONG_WORDS


def recent(history: Sequence[str], most: int) -> list[str]:
    """The last turns that fit into so many tokens, oldest first.

    Of a turn that is longer than half of what is left both ends are shown: a long answer names its things there.
    """
    shown: list[str] = []
    for turn in reversed(history):
        folded = " ".join(turn.split())
        if shown and most < 2:
            break
        size = rough_tokens(folded)
        if size > most // 2:
            half = max(1, len(folded) * most // (4 * size))
            folded = f"{folded[:half]} … {folded[-half:]}"
        shown.append(folded)
        most -= rough_tokens(folded)
    return shown[::-1]


def _by_rules(question: str, history: Sequence[str]) -> Rewriting:
    rewriting = rewrite_offline(question, history)
    # The rules read a question in one line; where they fill nothing in, its own lines and spaces stay.
    question_text = question.strip() if rewriting.question == " ".join(question.split()) else rewriting.question
    ambiguities = [Ambiguous(text=doubt.text, readings=list(doubt.readings)) for doubt in rewriting.ambiguities]
    return Rewriting(question=question_text, queries=rewriting.queries, ambiguities=ambiguities)


class WriteHypothesis(dspy.Signature):
    """Write the passage that somebody who looks for the answer to a question hopes to find.

    Nobody reads it: it is turned into a vector, and real passages near to it are searched for. So it has to look like
    them. Write three to five plain sentences of the sort of text in which the answer would stand: an entry of an
    encyclopedia for a fact, a manual for a procedure, minutes or a report for a matter of an organisation, a review for
    an opinion. State the answer as if it were known, with the terms, names and kinds of figures that such a text would
    use, and with what usually stands beside them. Repeat the names of the question. If you do not know the answer, make
    one up that is plausible: wording counts here, not truth. Write in the language of the question, without any remark
    about the task.

    Example. "Why was the Holm ferry given up?": "The Holm ferry ceased operation after the opening of the road tunnel,
    when passenger numbers fell sharply. The ferry company reported losses for several years and sold its boats. The
    last crossing took place in autumn; the landing stage was later used by anglers."

    例：“青石渡口有多少船？”写作“青石渡口现有渡船若干艘，由县航运站统一调度，其中机动船用于载客，其余用于载货。渡船每年进坞检修一次。”"""

    question: str = dspy.InputField()
    passage: str = dspy.OutputField()


class Hypothesize(Step):
    """A question → a hypothetical passage; there is no offline version, since it would be invented."""

    step = "hypothesize"
    role = "rewrite"
    task = WriteHypothesis

    async def run(self, question: str) -> str:
        """The passage, white space folded."""
        passage: str = (await self.acall(question=question)).passage
        return " ".join(passage.split())


class Keys(BaseModel):
    """The keys of a question, the most telling first."""

    high: list[str] = Field(
        default_factory=list, description=f"Themes and relations that it asks about, at most {MAX_KEYS}."
    )
    low: list[str] = Field(default_factory=list, description=f"Specific things in it, at most {MAX_KEYS}.")


class FindKeys(dspy.Signature):
    """Find the keys by which a knowledge graph is searched for a question.

    The graph holds things (people, places, organisations, works, events, terms) under their names, and relations
    between things under short phrases for what they are about.

    High keys are compared with the relations: what is asked of the things, and the themes behind it. Write each as a
    short phrase, as an index would have it: "burial place", "loss of fishing grounds". Go beyond the words of the
    question where the theme has a usual name: "who taught her" is "teacher and pupil", "is it bad for the lungs" is
    "effects on breathing". Start with the key that matters most.

    Low keys are compared with the names of things: every name in the question, in full and as a document would write
    it; figures, dates and technical terms that single something out; the kind of thing that is looked for ("lock",
    "harbour master") where nothing is named. Give an abbreviation and its full form as two keys, if you know it. Do not
    put what only links words ("relationship", "difference") here.

    Two to five keys of each sort are usual, one will do for a short question. A wide question may have no low keys, a
    bare name no high ones; greetings and requests without content have none. Keep the language of the question.

    Examples. "How did the closing of Holm Quay change the lives of ferrymen?" high: "closure of a quay", "livelihood of
    ferrymen", "loss of work". low: "Holm Quay", "ferrymen". "Which WHO rules apply to well water?" high: "standards for
    drinking water", "water safety". low: "WHO", "World Health Organization", "well water".

    例：“青石渡口改建对两岸商户有什么影响？”high：“渡口改建”“对商户的影响”“客流变化”；low：“青石渡口”“商户”。"""

    question: str = dspy.InputField()
    found: Keys = dspy.OutputField()


class Keywords(Step):
    """A question → its keys, by one short answer of a model."""

    step = "keywords"
    role = "rewrite"
    task = FindKeys

    async def run(self, question: str) -> Keys:
        """The model's keys, each once, the first `MAX_KEYS` of each sort."""
        if self.is_offline or (self.policy.effort == "low" and self.spares(LOW_KEYS)):
            low, high = keywords_offline(question)
            return Keys(high=high, low=low)
        keys: Keys = (await self.acall(question=question)).found
        return Keys(high=_bounded(keys.high), low=_bounded(keys.low))


def _bounded(keys: Iterable[str]) -> list[str]:
    """Distinct keys of a bearable length, the first ones."""
    folded = dict.fromkeys(" ".join(key.split()) for key in keys)
    return [key for key in folded if 0 < len(key) <= LONGEST][:MAX_KEYS]
