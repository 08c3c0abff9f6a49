"""The errors of models and embedders.

EngineError
├── ModelMisconfigured: trying again cannot help
│   ├── BadKey
│   ├── UnknownModel
│   └── QuotaExhausted
├── BudgetSpent
├── ModelUnavailable: trying again later can help
└── ModelRefused
    ├── BatchTooLarge
    └── NoUsableAnswer: another model, or another text, can help
        ├── ContextOverflow
        ├── AnswerTruncated
        ├── AnswerMalformed
        └── AnswerWithheld
"""


class EngineError(Exception):
    """Base: what happened, and what to do about it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class ModelMisconfigured(EngineError):
    """A name, key, address or setting of a model is wrong."""


class BadKey(ModelMisconfigured):
    """The server does not accept the key."""


class UnknownModel(ModelMisconfigured):
    """The server does not serve a model of this name."""


class QuotaExhausted(ModelMisconfigured):
    """The account has no credit left."""


class BudgetSpent(EngineError):
    """Too little is left of the budget for the next call; `unit` is "tokens" or "USD"."""

    def __init__(self, spent: float, budget: float, needed: float, unit: str) -> None:
        super().__init__(
            f"{spent:,} of {budget:,} {unit} are spent; the next call may take {needed:,}."
        )
        self.spent = spent
        self.budget = budget
        self.needed = needed
        self.unit = unit


class ModelUnavailable(EngineError):
    """A model cannot be reached, or did not answer in time."""


class ModelRefused(EngineError):
    """A model's answer is not of the asked form."""


class BatchTooLarge(ModelRefused):
    """A server of embeddings takes fewer texts in one request."""


class NoUsableAnswer(ModelRefused):
    """A model gave nothing that can be used; a step that only helps goes on without it."""


class ContextOverflow(NoUsableAnswer):
    """The request is longer than the model can read."""


class AnswerTruncated(NoUsableAnswer):
    """The answer was cut at the limit of tokens."""


class AnswerMalformed(NoUsableAnswer):
    """The answer is not of the asked form."""


class AnswerWithheld(NoUsableAnswer):
    """The provider's filter let no answer through."""
