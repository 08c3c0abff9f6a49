"""Measures of answers: correctness, retrieved evidence, citations and cost.

Each measure has a name, a source and what it needs of the question set; it gives None where it has
nothing to say. The judge's measures get their points from `tasks/evaluate/judge.py`.
"""

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations
from statistics import mean
from typing import Any, Literal

import Stemmer
from rapidfuzz.distance import LCSseq
from scipy.cluster.hierarchy import fcluster, linkage

from prompts.engine.bridge import run_sync
from prompts.judge import RUBRICS, Grade
from prompts.text.words import STOPWORDS, fold, is_han
from storage.answer_records import Answer, FilterCounts, RouteDecision, Trace
from storage.errors import UsageError, did_you_mean
from storage.evaluation_records import EvaluatedAnswer, EvaluationQuestion, plain
from storage.records import by_key
from storage.run_records import Usage
from tasks.evaluate.judge import LOONG, judged_points
from tasks.grounding import Scorer, ground, sentences_of, word_coverage

Need = Literal["answers", "values", "gold", "judge"]
ScoreOf = Callable[[EvaluationQuestion, Answer], float | None]

CUTS = (1, 2, 5, 8, 10)
SAME_CLAIM = 0.5  # The ROUGE-L from which two claims say the same (GraphRAG tries .2 to .5)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_HAN = re.compile(r"([\u3400-\u9fff])")
_WORD = re.compile(r"\w+")
_LETTERS = re.compile(r"[^\W_]+")
_PORTER = Stemmer.Stemmer("porter")
_VERDICTS = frozenset({"yes", "no", "noanswer", "是", "否"})


@dataclass(frozen=True)
class Measure:
    """A measure, the paper that defines it, and what it `needs` to be known of a question.

    `score(question, answer)` is None where it has nothing to say. `more_is_better` is False for
    costs.
    """

    name: str
    source: str
    score: ScoreOf
    needs: tuple[Need, ...] = ()
    more_is_better: bool = True


# --- the right answer -----------------------------------------------------------------------------


def normalised(text: str) -> str:
    """Normalise a text by HotpotQA's rules: lower case, no punctuation, articles or extra spaces.

    Each Chinese character becomes a word, as in CMRC 2018's evaluation.
    """
    kept = "".join(
        c
        for c in text.lower()
        if c not in string.punctuation and not unicodedata.category(c).startswith("P")
    )
    return " ".join(_ARTICLES.sub(" ", _HAN.sub(r" \1 ", kept)).split())


def prediction(answer: Answer) -> str:
    """Return the bare values of an answer; without any, its text without markers."""
    return ", ".join(answer.values) or plain(answer.answer)


def token_f1(predicted: str, gold: str) -> float:
    """Return HotpotQA's F1 of two texts' words; yes and no match only themselves."""
    own, other = normalised(predicted), normalised(gold)
    if own != other and _VERDICTS & {own, other}:
        return 0.0
    words, wanted = own.split(), other.split()
    shared = (Counter(words) & Counter(wanted)).total()
    return 2 * shared / (len(words) + len(wanted)) if shared else 0.0


def holds(text: str, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in a text as whole words.

    Case, articles and punctuation do not count; in Chinese, neither do spaces.
    """
    return any(_within(answer, text) for answer in answers)


def _within(answer: str, text: str) -> bool:
    comparable = squeezed if is_han(answer) or is_han(text) else _words
    wanted = comparable(answer)
    return bool(wanted.strip()) and wanted in comparable(text)


def squeezed(text: str) -> str:
    """Return the letters and figures of a text, without case and width."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _words(text: str) -> str:
    words = (word for word in _WORD.findall(fold(text)) if word not in {"a", "an", "the"})
    return f" {' '.join(words)} "


def word_recall(text: str, gold: str) -> float:
    """Return the share of a right answer's content words that a text holds, 0 to 1."""
    wanted = _content(gold)
    return len(wanted & _content(text)) / max(len(wanted), 1)


def _content(text: str) -> set[str]:
    return {word for word in _letters(text) if word not in STOPWORDS}


def _letters(text: str) -> list[str]:
    """Return the words of letters and digits; each Chinese character is one."""
    return _LETTERS.findall(_HAN.sub(r" \1 ", fold(text)))


def rouge_l(predicted: str, gold: str) -> float:
    """Return the F1 of the longest common subsequence of two texts' words (Porter's stems)."""
    words, wanted = (
        [_PORTER.stemWord(word) if len(word) > 3 else word for word in _letters(text)]
        for text in (predicted, gold)
    )
    return 2 * LCSseq.similarity(words, wanted) / max(1, len(words) + len(wanted))


def span_f1(predicted: str, gold: str) -> float:
    """Return CMRC 2018's F1: of the longest run of words that both texts have."""
    words, wanted = normalised(predicted).split(), normalised(gold).split()
    run = SequenceMatcher(None, words, wanted, autojunk=False).find_longest_match()
    return 2 * run.size / max(1, len(words) + len(wanted))


def _exact_match(question: EvaluationQuestion, answer: Answer) -> float | None:
    return _best(question, lambda gold: float(normalised(prediction(answer)) == normalised(gold)))


def _f1(question: EvaluationQuestion, answer: Answer) -> float | None:
    return _best(question, partial(token_f1, prediction(answer)))


def _best(question: EvaluationQuestion, score: Callable[[str], float]) -> float | None:
    return max(map(score, question.answers)) if question.answers and question.answerable else None


def _span_f1(question: EvaluationQuestion, answer: Answer) -> float | None:
    return _best(question, partial(span_f1, prediction(answer)))


def _answer_words(question: EvaluationQuestion, answer: Answer) -> float | None:
    return _best(question, partial(word_recall, plain(answer.answer)))


def _rouge_l(question: EvaluationQuestion, answer: Answer) -> float | None:
    return _best(question, partial(rouge_l, plain(answer.answer)))


def _passage_words(k: int, question: EvaluationQuestion, answer: Answer) -> float | None:
    found = "\n".join(passage.text for passage in answer.passages[:k])
    return _best(question, partial(word_recall, found))


def _in_text(question: EvaluationQuestion, answer: Answer) -> float | None:
    """Whether an answer stands in the text; yes and no must be a value or the first word."""
    if not question.answers or not question.answerable:
        return None
    gold = {normalised(known) for known in question.answers}
    if gold & _VERDICTS:
        return float(normalised(prediction(answer)).partition(" ")[0] in gold)
    return float(holds("\n".join([answer.answer, *answer.values]), question.answers))


def set_f1(values: Iterable[str], wanted: Iterable[str]) -> float:
    """Return the F1 (0 to 1) of two sets of values."""
    own, gold = set(map(normalised, values)), set(map(normalised, wanted))
    return 2 * len(own & gold) / (len(own) + len(gold)) if own or gold else 1.0


def _values_f1(question: EvaluationQuestion, answer: Answer) -> float | None:
    return set_f1(answer.values, question.values) if question.values else None


def _values_exact(question: EvaluationQuestion, answer: Answer) -> float | None:
    return float(set_f1(answer.values, question.values) == 1.0) if question.values else None


def _values_hit(question: EvaluationQuestion, answer: Answer) -> float | None:
    gold = set(map(normalised, question.values))
    return float(bool(gold & set(map(normalised, answer.values[:1])))) if gold else None


def _abstention(question: EvaluationQuestion, answer: Answer) -> float:
    return float((answer.fallback == "abstained") is not question.answerable)


# --- the evidence that was retrieved --------------------------------------------------------------


def _recall(k: int, question: EvaluationQuestion, answer: Answer) -> float | None:
    gold = set(question.gold_documents)
    return len(gold & _ranked(answer, k).keys()) / len(gold) if gold else None


def _all_gold(k: int, question: EvaluationQuestion, answer: Answer) -> float | None:
    gold = set(question.gold_documents)
    return float(gold <= _ranked(answer, k).keys()) if gold else None


def _ndcg(k: int, question: EvaluationQuestion, answer: Answer) -> float | None:
    gold = set(question.gold_documents)
    if not gold:
        return None
    ranks = (rank for document, rank in _ranked(answer, k).items() if document in gold)
    return _gain(ranks) / _gain(range(min(k, len(gold))))


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / math.log2(rank + 2) for rank in ranks)


def _ranked(answer: Answer, k: int) -> dict[str, int]:
    """Return the first rank of each document among the first k passages."""
    ranks: dict[str, int] = {}
    for rank, passage in enumerate(answer.passages[:k]):
        ranks.setdefault(passage.document, rank)
    return ranks


def _evidence_cited(question: EvaluationQuestion, answer: Answer) -> float | None:
    cited = [
        any(
            c.document == span.document and c.start < span.end and span.start < c.end
            for c in answer.citations
        )
        for span in question.gold_spans
    ]
    return mean(cited) if cited else None


# --- citations and grounding ----------------------------------------------------------------------


@dataclass(frozen=True)
class CitationScores:
    """ALCE's recall and precision of one answer, 0 to 1."""

    recall: float
    precision: float


def citation_scores(
    question: str, text: str, cited: Mapping[str, str], scorer: Scorer
) -> CitationScores | None:
    """Return how well citations support the statements of an answer; None where it has none.

    Recall is the share of statements that their citations together support. Precision is the
    share of citations of a supported statement that support it alone, or without which it would
    not be supported. `scorer` judges support: the grounding check's words and figures, or a model
    of natural language inference as in ALCE.
    """

    def supports(claim: str, markers: Sequence[str]) -> bool:
        own = {marker: cited[marker] for marker in markers}
        flags = ground(f"{claim} {''.join(own)}", own, list(own.values()), question, scorer)
        return bool(flags) and all(flag.supported for flag in flags)

    recalled, precise = list[bool](), list[bool]()
    for sentence in sentences_of(text):
        if not sentence.claim:
            continue
        markers = [marker for marker in sentence.markers if marker in cited]
        supported = bool(markers) and supports(sentence.claim, markers)
        recalled.append(supported)
        for marker in markers:
            others = [other for other in markers if other != marker]
            needed = (
                not others
                or supports(sentence.claim, [marker])
                or not supports(sentence.claim, others)
            )
            precise.append(supported and needed)
    if not recalled:
        return None
    return CitationScores(recall=mean(recalled), precision=mean(precise) if precise else 0.0)


def cited_texts(answer: Answer) -> dict[str, str]:
    """Return the text behind each marker: the passage where the answer has it, else the quote."""
    passages = {passage.chunk: passage.text for passage in answer.passages}
    texts = by_key(
        (citation.marker, passages.get(citation.chunk) or citation.quote)
        for citation in answer.citations
    )
    return {marker: "\n".join(dict.fromkeys(own)) for marker, own in texts.items()}


def _citations(
    part: Literal["recall", "precision"],
    scorer: Scorer,
    question: EvaluationQuestion,
    answer: Answer,
) -> float | None:
    if answer.fallback == "abstained":
        return None
    scores = citation_scores(question.question, answer.answer, cited_texts(answer), scorer)
    return None if scores is None else scores.recall if part == "recall" else scores.precision


def _grounding_share(question: EvaluationQuestion, answer: Answer) -> float | None:
    flags = answer.grounding
    if not flags and answer.passages:
        offered = [passage.text for passage in answer.passages]
        flags = ground(answer.answer, cited_texts(answer), offered, question.question)
    checked = [flag.supported for flag in flags if flag.supported is not None]
    return mean(checked) if checked and answer.fallback != "abstained" else None


def claims_of(answer: Answer) -> list[str]:
    """Return the claims of an answer: its sentences that cite something."""
    return [row.claim for row in sentences_of(answer.answer) if row.claim and row.markers]


def claim_clusters(claims: Sequence[str]) -> int:
    """Count the different things that claims say (GraphRAG).

    Clusters are made by complete linkage at a distance of 1 - ROUGE-L.
    """
    words = [normalised(claim).split() for claim in claims]
    if len(words) < 2:
        return len(words)
    distances = [
        1 - 2 * LCSseq.similarity(a, b) / max(1, len(a) + len(b)) for a, b in combinations(words, 2)
    ]
    return int(fcluster(linkage(distances, "complete"), 1 - SAME_CLAIM, "distance").max())


# --- cost -----------------------------------------------------------------------------------------


def _spent(
    read: Callable[[Usage], float | None], question: EvaluationQuestion, answer: Answer
) -> float | None:
    """Read the usage of an answer; None for a recorded one that came without usage."""
    usage = answer.usage
    return read(usage) if usage.seconds or usage.calls or usage.cached_calls else None


def _brought(from_memory: bool, question: EvaluationQuestion, answer: Answer) -> float | None:
    """Count the passages that memory brought, or those that the search brought."""
    used = bool(answer.trace.trigger) and all(
        decision.use_memory for decision in answer.trace.trigger
    )
    return float(len(answer.passages)) if used is from_memory else 0.0


def _filtered_out(question: EvaluationQuestion, answer: Answer) -> float | None:
    counts = answer.trace.filter
    return float(counts.contradiction + (counts.neutral if counts.tier == "entailed" else 0))


# --- the table of measures ------------------------------------------------------------------------


def _judged(name: str) -> Measure:
    def score(question: EvaluationQuestion, answer: Answer) -> float | None:
        remedy = "Score it by judged_points, or in DSPy by as_metric(measure, Grade(models))."
        raise UsageError(f"The measure {name!r} needs a judge.", remedy)

    sources = {
        "loong_score": "Wang et al. 2024 (Loong, arXiv 2406.17419)",
        "loong_em": "Wang et al. 2024 (Loong, arXiv 2406.17419): a score of 100",
    }
    source = sources.get(name, "points by a rubric (RUBRICS in prompts/judge.py)")
    return Measure(name, source, score, ("answers", "judge") if name in LOONG else ("judge",))


def measures_with(scorer: Scorer) -> Mapping[str, Measure]:
    """Return all measures by name; `scorer` judges which sentences are supported."""
    hotpot = "Yang et al. 2018 (HotpotQA), evaluation script"
    cmrc = "Cui et al. 2019 (CMRC 2018), evaluation script"
    words = "share of the right answer's content words"
    kgqa = "Liu et al. 2025 (PolyG, arXiv 2504.02112): sets of answers"
    alce = "Gao et al. 2023 (ALCE, arXiv 2305.14627), citation quality"
    graphrag = "Edge et al. 2024 (GraphRAG, arXiv 2404.16130v2), claim-based measures"
    erm4 = "the four-module RAG (ERM4): columns of cost"
    by_cut = {
        "recall": ("Manning et al. 2008, section 8.4", _recall),
        "all_gold": ("Trivedi et al. 2022 (MuSiQue): all support", _all_gold),
        "ndcg": ("Järvelin and Kekäläinen 2002", _ndcg),
    }
    spent: dict[str, Callable[[Usage], float | None]] = {
        "seconds": lambda usage: usage.seconds,
        "calls": lambda usage: usage.calls,
        "tokens_in": lambda usage: usage.input_tokens,
        "tokens_out": lambda usage: usage.output_tokens,
        "tokens": lambda usage: usage.input_tokens + usage.output_tokens,
        "cost_usd": lambda usage: usage.cost_usd,
    }
    every = [
        Measure("exact_match", hotpot, _exact_match, ("answers",)),
        Measure("f1", hotpot, _f1, ("answers",)),
        Measure("answer_in_text", "Mallen et al. 2023 (PopQA): accuracy", _in_text, ("answers",)),
        Measure("span_f1", cmrc, _span_f1, ("answers",)),
        Measure("answer_words", words, _answer_words, ("answers",)),
        Measure("rouge_l", "Lin 2004 (ROUGE-L): F1 of Porter's stems", _rouge_l, ("answers",)),
        *(
            Measure(f"passage_words@{k}", words, partial(_passage_words, k), ("answers",))
            for k in CUTS
        ),
        Measure("values_exact", kgqa, _values_exact, ("values",)),
        Measure("values_f1", kgqa, _values_f1, ("values",)),
        Measure("values_hit", kgqa, _values_hit, ("values",)),
        *(
            Measure(f"{name}@{k}", source, partial(score, k), ("gold",))
            for name, (source, score) in by_cut.items()
            for k in CUTS
        ),
        Measure(
            "evidence_cited",
            "HotpotQA's supporting facts, by citations",
            _evidence_cited,
            ("gold",),
        ),
        Measure("citation_recall", alce, partial(_citations, "recall", scorer)),
        Measure("citation_precision", alce, partial(_citations, "precision", scorer)),
        Measure(
            "grounding_share",
            "share of the checked sentences that evidence supports",
            _grounding_share,
        ),
        Measure("claims", graphrag, lambda _, answer: len(claims_of(answer))),
        Measure("claim_clusters", graphrag, lambda _, answer: claim_clusters(claims_of(answer))),
        Measure(
            "abstention", "Rajpurkar et al. 2018 (SQuAD 2.0): right to answer or not", _abstention
        ),
        *map(_judged, dict.fromkeys([*LOONG, *RUBRICS])),
        *(
            Measure(name, "the meter of each answer", partial(_spent, read), more_is_better=False)
            for name, read in spent.items()
        ),
        Measure("external", erm4, partial(_brought, False), more_is_better=False),
        Measure("from_memory", erm4, partial(_brought, True)),
        Measure("filtered_out", erm4, _filtered_out),
    ]
    return {measure.name: measure for measure in every}


MEASURES: Mapping[str, Measure] = measures_with(word_coverage)


def measures_named(names: Sequence[str]) -> list[Measure]:
    """Return the measures of these names; UsageError for one that does not exist."""
    for name in names:
        if name not in MEASURES:
            near = did_you_mean(name, MEASURES)
            raise UsageError(
                f"There is no measure {name!r}.", f"{near}The measures are {', '.join(MEASURES)}."
            )
    return [MEASURES[name] for name in names]


def needs_met(questions: Sequence[EvaluationQuestion]) -> frozenset[Need]:
    """Return what is known of the questions, as measures need it."""
    known: dict[Need, bool] = {
        "answers": any(question.answers for question in questions),
        "values": any(question.values for question in questions),
        "gold": any(question.gold_documents or question.gold_spans for question in questions),
        "judge": True,
    }
    return frozenset(need for need, is_known in known.items() if is_known)


def rubrics_of(measures: Iterable[Measure]) -> list[str]:
    """Return the rubrics that a judge needs for these measures."""
    named = (
        LOONG[0] if measure.name in LOONG else measure.name
        for measure in measures
        if "judge" in measure.needs
    )
    return list(dict.fromkeys(named))


# --- other programs -------------------------------------------------------------------------------


def plain_answer(question: str, text: str, values: Sequence[str] = ()) -> Answer:
    """Make an answer of a bare text: without citations and costs, abstained where it is empty."""
    route = RouteDecision(type="chunk", confidence=1.0, margin=1.0, reason="an answer from outside")
    trace = Trace(
        mode="recorded",
        rewritten=question,
        queries=(question,),
        trigger=(),
        filter=FilterCounts(),
        question_type="nested",
        route=route,
        structure="",
        subquestions=(),
    )
    return Answer(
        question=question,
        answer=text,
        values=tuple(values),
        citations=(),
        passages=(),
        fallback="none" if text.strip() else "abstained",
        trace=trace,
        usage=Usage(),
        generation=0,
    )


def as_metric(measure: Measure, judge: Grade | None = None) -> Callable[..., float]:
    """Make a measure a metric of DSPy; `judge` gives the points of those that need one.

    The example has the fields of an EvaluationQuestion (`answer` is its only answer, others are
    ignored); the prediction has an Answer, or a text and perhaps `values`, under `answer`. A
    measure that has nothing to say scores 0.
    """

    def metric(example: Mapping[str, object], prediction: object, trace: object = None) -> float:
        given = dict(example.items())
        known = {"id": str(given.get("question", "")), **given}
        if isinstance(given.get("answer"), str):
            known.setdefault("answers", (given["answer"],))
        question = EvaluationQuestion.model_validate(
            {name: known[name] for name in EvaluationQuestion.model_fields if name in known}
        )
        fields: dict[str, Any] = (
            dict(prediction.items()) if hasattr(prediction, "items") else {"answer": prediction}
        )
        answer = fields.get("answer", "")
        if not isinstance(answer, Answer):
            answer = plain_answer(question.question, str(answer), fields.get("values", ()))
        if judge is None or "judge" not in measure.needs:
            return float(measure.score(question, answer) or 0)
        return run_sync(points(question, answer, judge))

    async def points(question: EvaluationQuestion, answer: Answer, judge: Grade) -> float:
        answered = EvaluatedAnswer(system="", question=question.id, answer=answer)
        scores = await judged_points([question], [answered], judge, rubrics_of([measure]))
        return next(row.value for row in scores if row.measure == measure.name) or 0.0

    return metric
