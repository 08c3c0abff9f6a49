"""Reads the setting of the schema: its table in the settings file, or classes of pydantic."""

import importlib
import inspect
from typing import TypeGuard

from pydantic import BaseModel

from prompts.schema import Schema, schema_of
from prompts.tailoring import Unfit

_FORM = "a module with classes of pydantic: package.module, or package.module:Name of one of them"


def read_schema(value: object) -> object:
    """Return the schema of a module, if the value names one; a table is returned as it is.

    `module` stands for all classes of pydantic that are defined in it, `module:Name` for one class
    and those that its fields name, or for a `Schema`. Raises Unfit.
    """
    if not isinstance(value, str):
        return value
    path, _, name = value.strip().partition(":")
    try:
        module = importlib.import_module(path)
    except (ImportError, ValueError) as error:
        raise Unfit(
            value, f"{_FORM}; it must be importable, and {path!r} is not ({error})"
        ) from error
    if name:
        named = getattr(module, name, None)
        if isinstance(named, Schema):
            return named
        classes = [named] if _is_class(named) else []
    else:
        classes = [
            one
            for one in vars(module).values()
            if _is_class(one) and one.__module__ == module.__name__
        ]
    if not classes:
        raise Unfit(value, _FORM)
    return schema_of(classes)


def _is_class(value: object) -> TypeGuard[type[BaseModel]]:
    return inspect.isclass(value) and issubclass(value, BaseModel) and value is not BaseModel
