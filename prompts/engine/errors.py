"""The errors of models and embedders.

EngineError
├── ModelMisconfigured   a name, key, address or setting is wrong: trying again cannot help
│   ├── BadKey               the server does not accept the key
│   ├── UnknownModel         the server does not serve this model
│   └── QuotaExhausted       what was paid for is used up
├── BudgetSpent          the next call could cost more than is left of the budget
├── ModelUnavailable     the model cannot be reached or is overloaded: trying again later can help
└── ModelRefused         the model answered, but not what was asked for
    ├── BatchTooLarge        the server takes fewer texts in one request
    └── NoUsableAnswer       another model, or another text, could have got an answer
        ├── ContextOverflow      the request is longer than the model can read
        ├── AnswerTruncated      the answer is longer than the model may write
        ├── AnswerMalformed      the answer is not of the asked form, also after one repair
        └── AnswerWithheld       the provider's filter let no answer through
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
    """The account has no credit left; waiting does not bring it back."""


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
    """The answer was cut at the limit of tokens, also at twice the limit."""


class AnswerMalformed(NoUsableAnswer):
    """The answer is not of the asked form, also after one repair."""


class AnswerWithheld(NoUsableAnswer):
    """The provider's filter let no answer through."""
