"""Records of a run: its budget, its forecast, what it used, and its report."""

from typing import Literal

from pydantic import Field

from storage.records import Record, Skipped


class StepUsage(Record):
    """Model use of one step."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_calls: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0


class UsageRow(StepUsage):
    """Model use of one step with one model."""

    step: str
    model: str


class Usage(StepUsage):
    """Model use of a whole run, and by step."""

    by_step: dict[str, StepUsage] = Field(default_factory=dict)


class DocumentCounts(Record):
    """What a sync found, in documents."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0


class Budget(Record):
    """A limit in tokens (input and output together) and US dollars; None is unlimited."""

    tokens: int | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)


NO_BUDGET = Budget()


class StepForecast(Record):
    """What one step will use of one model.

    `basis` says what the output tokens are estimated from; `cost_usd` is None where the price is
    unknown.
    """

    step: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    basis: Literal["history", "rule"]


class Forecast(Record):
    """What an index run would do.

    Calls, tokens and cost are sums over all steps. `seconds` is what the forecast itself took,
    `run_seconds` what the run would take at the `rate`, which is in words.
    """

    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    chunks_to_extract: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    steps: tuple[StepForecast, ...]
    seconds: float
    run_seconds: float
    rate: str


class QuestionForecast(Record):
    """What a question in mode `lazy` would take at most, by rule: relevance tests, calls, tokens,
    and dollars (None where a price is unknown); `steps` has the parts of these sums.
    """

    tests: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    steps: tuple[StepForecast, ...]


class KeptPrompts(Record):
    """Steps whose prompts have changed since the index was made; the index was not changed."""

    steps: tuple[str, ...]


class CommunityQuality(Record):
    """How well the coarsest communities divide the graph, as cdlib measures it.

    `coarsest` counts those of two or more entities. `modularity` (Newman and Girvan 2004) and
    `coverage`, the share of all weight inside communities, are better the higher they are;
    `conductance`, the mean share of a community's edge ends that lead out of it, the lower it is.
    """

    algorithm: str
    levels: int
    coarsest: int
    modularity: float
    conductance: float
    coverage: float


class AnswerChange(Record):
    """How the answer to a watched question has changed with a publication, or why it failed.

    `diff` holds lines of the answer, removed ones after "- " and new ones after "+ "; `cited` and
    `no_longer_cited` are documents.
    """

    id: str
    question: str
    generation: int
    before: int | None = None
    diff: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    no_longer_cited: tuple[str, ...] = ()
    error: str = ""


class IndexReport(Record):
    """What an index run did.

    `kept_prompts` holds what `--remake` would make anew (None: nothing), `changed_answers` the
    watched questions whose answers have changed. `community_quality` is None where the graph has no
    relation.
    """

    generation: int
    published: bool
    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    entities: int
    relations: int
    claims: int
    communities: int
    community_quality: CommunityQuality | None = None
    reports: int
    dead_letters: int
    usage: Usage
    seconds: float
    kept_prompts: KeptPrompts | None = None
    changed_answers: tuple[AnswerChange, ...] = ()
