"""What can go wrong with a model?

EngineError
├── ModelMisconfigured   a name, key, address or setting is wrong: trying again cannot help
├── ModelUnavailable     the model cannot be reached or is overloaded: trying again later can help
└── ModelRefused         the model answered, but not what was asked for
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


class ModelUnavailable(EngineError):
    """A model cannot be reached, or did not answer in time."""


class ModelRefused(EngineError):
    """A model's answer is not of the asked form."""
