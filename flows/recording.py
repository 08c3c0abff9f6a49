"""What of Prefect do the flows use, and how does nothing leave the machine?

Prefect reports its use to its makers, the client when it is imported and the server while it runs, unless the
environment says otherwise. So the environment is settled here, before the one place where flows import Prefect.
"""

import os
from typing import TypeVar, cast

# Not ours to decide where the person has decided.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

from prefect import flow
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

__all__ = ["acreate_markdown_artifact", "acreate_table_artifact", "done", "failed", "flow", "flow_run", "plain"]

R = TypeVar("R")

_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def plain(text: str) -> str:
    """Text for a Markdown artifact that stays text: no link, no picture, no heading comes out of a document."""
    return " ".join(text.translate(_MARKUP).split())


def done(message: str, result: R) -> R:
    """What a flow returns so that its run ends with a message for people; whoever called the flow gets `result`."""
    # Prefect takes a state in place of a result, and gives the result out of it to the caller.
    return cast(R, Completed(message=message, data=result))


def failed(error: Exception, kind: type[R]) -> R:
    """What a flow returns so that its run fails with the error's own words; whoever called the flow gets it raised.

    For errors raised on purpose: Prefect's own way would put a traceback between a person and the message.
    """
    return cast(R, Failed(message=str(error), data=error))  # `kind` only says what the flow promised
