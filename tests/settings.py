"""The settings as a test sets the environment."""

import os
from collections.abc import Mapping

import pytest

from flows import settings
from flows.settings import PREFIX, Settings


def load_settings(
    parameters: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """The settings with `environment` in place of our variables; None leaves those as they are."""
    with pytest.MonkeyPatch.context() as patch:
        if environment is not None:
            for name in [name for name in os.environ if name.startswith(PREFIX)]:
                patch.delenv(name)
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        return settings.load_settings(parameters)
