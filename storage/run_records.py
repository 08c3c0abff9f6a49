"""Records of a run: what it used, what it changed, and the report of an index run."""

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


class KeptPrompts(Record):
    """Steps whose prompts this version of the program words otherwise than the one that made the index, which stays as
    it was made."""

    steps: tuple[str, ...]


class IndexReport(Record):
    """What an index run did. `kept_prompts`: what `--remake` would make anew; None where there is nothing."""

    generation: int
    published: bool
    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    entities: int
    relations: int
    claims: int
    communities: int
    reports: int
    dead_letters: int
    usage: Usage
    seconds: float
    kept_prompts: KeptPrompts | None = None
