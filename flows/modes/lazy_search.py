"""Lazy search: a question about the whole collection, over an index that no model has read.

subquestions → rank passages → test their relevance, community by community → claims → answer

Source: LazyGraphRAG (Microsoft Research, posts of 25 November 2024 and 5 June 2025). The index is
the one without a model: names (in Chinese also runs of nouns; LazyGraphRAG takes noun phrases),
which of them stand together, and their communities. All calls to models are made for the question,
and the budget of relevance tests says how many.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flows.modes.global_search import global_search, near_to, result_of
from flows.modes.query_mode import QueryMode
from flows.question import AskOptions, ModeResult, Resources, restricted
from flows.session import Session
from prompts.answer import ReduceStep
from prompts.engine.effort import Effort
from prompts.engine.messages import rough_tokens
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.lazy import MOST_QUESTIONS, Assess, Divide, LazyQuestion
from prompts.read_reports import Partial
from prompts.text.relevance import CollectionTopic
from storage.answer_records import RelevanceTests, TestedPart
from storage.errors import UsageError
from storage.run_records import QuestionForecast, StepForecast
from tasks.lazy.relevance import (
    Communities,
    Found,
    LazySearch,
    claim_texts,
    claims_of,
    divide,
    find_relevant,
    names_near,
    tokens_a_call,
)

# The budgets of LazyGraphRAG, by effort.
BUDGETS: Mapping[Effort, int] = {"low": 100, "medium": 500, "high": 1_500}
# How many calls read claims at most; a call has the tokens of a part's evidence. Chosen, not
# fitted: at medium effort about twice what mode `global` reads.
CLAIM_CALLS: Mapping[Effort, int] = {"low": 2, "medium": 6, "high": 16}
RANKED = 4  # passages that are ranked, for each that is tested
NUMBERED = 1.2  # a text with a number before each sentence, relative to the text
FILLED = 0.7  # the share of its room that a call fills, since passages are tested in rounds
# For a forecast: tokens that a model writes for a passage tested, in a call for claims, and else.
TOKENS_MARKED, TOKENS_OF_CLAIMS, TOKENS_WRITTEN = 6, 500, 800


async def lazy_search(resources: Resources) -> ModeResult:
    """Test the passages nearest to the parts of the question, and answer from the claims of those
    that help. Without a model that writes, mode `global` answers.
    """
    if not resources.writes:
        return await global_search(resources)
    question, search, models = resources.question, resources.search, resources.models
    session, limits = search.session, models.policy.limits
    near, communities = near_to(question, search), communities_of(resources)
    budget = budget_of(question.options, session, models)
    names = names_near(search.index, near.chunks)
    parts = await divide(question.text, names, Divide(models))  # subquestions
    shares = [len(range(place, budget, len(parts))) for place in range(len(parts))]
    searches = [
        await _search(part, share, resources) for part, share in zip(parts, shares, strict=True)
    ]
    found = await find_relevant(searches, communities, Assess(models))  # relevance tests
    share = CLAIM_CALLS[models.policy.effort] * limits.part // len(found)
    texts = claim_texts(
        found, communities, lambda some: _titles(some, resources), share, limits.part
    )
    points = await claims_of(texts, found, Partial(models), limits.part)  # claims
    tests = sum(one.tests for one in found)
    relevant = sum(one.relevant for one in found)
    reason = f"{tests} passages tested for relevance, {relevant} of them relevant"
    shown = texts.named([part.question for part in parts])
    result = result_of(points, shown, near.topic, search, reason)  # answer
    told = RelevanceTests(
        budget=budget,
        tests=tests,
        relevant=relevant,
        sentences=sum(len(one.sentences) for one in found),
        read=len(texts.pool),
        parts=tuple(map(_told, found)),
        forecast=_forecast(question.options, session, models),
    )
    return replace(result, relevance=told)


def budget_of(options: AskOptions, session: Session, models: Models) -> int:
    """Return the number of relevance tests: of the question, of the settings, or by effort.

    Raises UsageError for one below 1.
    """
    given = options.budget if options.budget is not None else session.runtime.settings.lazy_budget
    budget = BUDGETS[models.policy.effort] if given is None else given
    if budget < 1:
        raise UsageError(
            f"The budget of relevance tests is {budget}.", "Give a number from 1, such as 500."
        )
    return budget


def communities_of(resources: Resources) -> Communities:
    """Return the communities of the index, with what each passage names most of."""
    reports = resources.reports
    return Communities(reports.tree.roots, reports.tree.below, reports.chunks.of)


async def _search(part: LazyQuestion, tests: int, resources: Resources) -> LazySearch:
    """Rank the passages for a part by words and meaning."""
    search = resources.search
    queries = [part.question, *([part.search] if part.search else [])]
    passages = await search.ranked(queries, RANKED * max(tests, 1))
    asked = replace(resources.question, wording=part.question)
    return LazySearch(part, CollectionTopic(asked.relevance), passages, search.chunk, tests)


def _titles(communities: Sequence[str], resources: Resources) -> dict[str, str]:
    """Return what communities are called; nothing for a restricted question, since the names are
    made of all documents.
    """
    if resources.question.only is not None:
        return {}
    return {report.community: report.title for report in resources.reports.read(communities)}


def _told(found: Found) -> TestedPart:
    asked = found.search.asked
    return TestedPart(
        question=asked.question,
        search=asked.search,
        tests=found.tests,
        relevant=found.relevant,
        communities=found.communities,
    )


# --- what a question would take -------------------------------------------------------------------


def forecast_question(options: AskOptions, session: Session) -> QuestionForecast:
    """Forecast a question in mode `lazy`, whatever it asks; calls no model.

    Raises UsageError for another mode, and what `restricted` raises.
    """
    if options.mode != LAZY.name:
        raise UsageError(
            f"The mode {options.mode} tells no cost before it is asked.",
            "Ask for mode lazy: its budget says what it takes.",
        )
    runtime = session.runtime
    models = replace(runtime.query_models, policy=runtime.settings.policy(options.effort))
    return _forecast(restricted(options, session), session, models)


def _forecast(options: AskOptions, session: Session, models: Models) -> QuestionForecast:
    """Forecast a question that is restricted already: at most so much, by rule."""
    policy = models.policy
    passages = int(session.index.allowed(options.documents).sum())
    questions = 1 if policy.effort == "low" else MOST_QUESTIONS
    tests = min(budget_of(options, session, models), questions * passages)
    tested, a_call = round(tests * session.passage_tokens * NUMBERED), tokens_a_call(Assess(models))
    calls = min(tests, math.ceil(tested / (FILLED * a_call)) + questions)
    claim_calls, part = CLAIM_CALLS[policy.effort], policy.limits.part
    claims = min(claim_calls * part, tested)
    claim_calls = min(claim_calls, math.ceil(claims / part) + questions)
    steps = [
        _step(Divide(models), int(questions > 1), policy.limits.rate // 4, TOKENS_WRITTEN),
        _step(Assess(models), calls, tested, tests * TOKENS_MARKED),
        _step(Partial(models), claim_calls, claims, claim_calls * TOKENS_OF_CLAIMS),
        _step(ReduceStep(models), 1, 2 * policy.limits.points, TOKENS_WRITTEN),
    ]
    asked = [step for step in steps if step is not None]
    costs = [step.cost_usd for step in asked if step.cost_usd is not None]
    return QuestionForecast(
        tests=tests if asked else 0,
        calls=sum(step.calls for step in asked),
        input_tokens=sum(step.input_tokens for step in asked),
        output_tokens=sum(step.output_tokens for step in asked),
        cost_usd=sum(costs) if len(costs) == len(asked) else None,
        steps=tuple(asked),
    )


def _step(step: Step, calls: int, read: int, written: int) -> StepForecast | None:
    """Forecast a step that reads and writes so many tokens beside its prompt; None without calls
    or where the answer has no model.
    """
    if not calls or step.is_offline or step.models.is_offline("answer"):
        return None
    prompt = sum(rough_tokens(message.content) for message in step.module.prompt)
    lm, used = step.models.lm_or_none(step.role), (read + calls * prompt, written)
    return StepForecast(
        step=step.step,
        model=step.models.name(step.role),
        calls=calls,
        input_tokens=used[0],
        output_tokens=used[1],
        cost_usd=lm.terms.price.cost(*used) if lm and lm.terms.price else None,
        basis="rule",
    )


LAZY = QueryMode("lazy", lazy_search)
