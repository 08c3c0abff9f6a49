"""Reads JSON as models write it: among prose, repaired where nothing is lost, never completed.

json-repair would also close what was cut off and drop what it cannot place, so it gets only text
that has an end, and its result must keep every letter.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from prompts.engine.messages import NotAsAsked

Model = TypeVar("Model", bound=BaseModel)

_MOST_TRIED = 200  # braces at which an object may begin
# A backslash before anything that is no escape of JSON is LaTeX's, and so are these words.
_LATEX = re.compile(
    r"(\\(?:u[0-9a-fA-F]{4}|[\"'\\/]|n(?!abla|eq|otin)|r(?!ho|ight|angle)"
    r"|t(?!imes|heta|ext|au|riangle)))|\\"
)
_TYPOGRAPHIC = str.maketrans(dict.fromkeys("“”„‟＂", '"') | dict.fromkeys("‘’‚‛", "'"))
_GOES_ON = re.compile(r"[\"'”’]\s*[,:\]}]")  # the text before this was within a string
_CHOICE = re.compile(r"'([^']*)'")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CODE = re.compile(r"\\u([0-9a-f]{4})")
_ENDS_VALUE = re.compile(
    r"(?:(?<!\\)[\"'”’]|[\]{\d]|true|false|null|none)[\s,}]*\}\Z", re.IGNORECASE
)
_SCORE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:(?:/|out of|of)\s*\d+|\([^)]*\))\s*")


def read_object(answer: str, model: type[Model]) -> Model:
    """The one object of this form in an answer; NotAsAsked tells what is wrong.

    The same object twice counts as one; other text in braces counts as prose.
    """
    found: Model | None = None
    problem = NotAsAsked("it holds no JSON object.")
    for value, repaired in _objects(answer):
        try:
            if isinstance(value, NotAsAsked):
                raise value
            read = _read(model, value, repaired)
        except NotAsAsked as error:
            problem = error
            continue
        if found is not None and read != found:
            raise NotAsAsked("more than one JSON object was given.")
        found = read
    if found is None:
        raise problem
    return found


def number_of(text: str) -> str:
    """The 7 of "7/10", "7 out of 10" and "7 (high)"; any other text unchanged."""
    scored = _SCORE.fullmatch(text)
    return scored[1] if scored else text


def _objects(answer: str) -> Iterator[tuple[dict[str, Any] | NotAsAsked, bool]]:
    """The objects in an answer, or what is wrong with one; and whether each was repaired."""
    answer = _LATEX.sub(lambda escape: escape[1] or "\\\\", _unquoted(answer))
    decoder = json.JSONDecoder(strict=False)  # a quoted source may hold control characters
    at = 0
    for _ in range(_MOST_TRIED):
        at = answer.find("{", at)
        if at < 0:
            return
        try:
            value, at = decoder.raw_decode(answer, at)
            yield value, False
        except json.JSONDecodeError as error:
            repaired = _repaired(answer[at:])
            problem = f"the JSON is broken at character {error.pos}: {error.msg}."
            yield repaired or NotAsAsked(problem), True
            if repaired or '"' in answer[at : at + 5]:  # an object inside it is no answer
                return
            at += 1
        except (RecursionError, ValueError) as error:  # or a figure of thousands of digits
            yield NotAsAsked(f"the JSON is nested too deeply: {str(error)[:80]}."), False
            return


def _repaired(text: str) -> dict[str, Any] | None:
    """The object that json-repair makes of a text; None where something would be lost."""
    text, brace, rest = text.rpartition("}")
    text += brace
    if text.count("{") > text.count("}") or _GOES_ON.search(rest):
        return None
    if not any(_ENDS_VALUE.search(last) for last in (text, _COMMENT.sub(" ", text))):
        return None  # its last value has no end
    if '"' not in text:
        text = text.translate(_TYPOGRAPHIC)
    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    kept = json.dumps(value, ensure_ascii=False)
    return None if _letters(_COMMENT.sub(" ", text)) - _letters(kept) else value


def _letters(text: str) -> Counter[str]:
    text = _CODE.sub(lambda code: chr(int(code[1], 16)), text.casefold())
    return Counter(filter(str.isalnum, re.sub(r"\bnone\b", "null", text)))


def _unquoted(answer: str) -> str:
    """The answer, decoded where all of it is one JSON string."""
    try:
        inner = json.loads(answer) if answer.lstrip()[:1] == '"' else answer
    except ValueError:
        return answer
    return inner if isinstance(inner, str) else answer


def _read(model: type[Model], value: dict[str, Any], repaired: bool) -> Model:
    """The value as the model, also where it is wrapped once, or is that of the only field.

    A repaired value may have no unknown key, which could be a part of a text.
    """
    readings: list[object] = [value]
    if len(value) == 1:
        readings += [inner for inner in value.values() if isinstance(inner, dict)]
    (name, field), *more = model.model_fields.items()
    inner_fields = getattr(field.annotation, "model_fields", {})
    if not more and value and value.keys() <= inner_fields.keys():
        readings.insert(0, {name: value})
    problems = []
    for reading in readings:
        try:
            return _validated(model, reading, "forbid" if repaired else None)
        except ValidationError as error:
            problems.append(error)
    first = problems[0].errors(include_url=False)[0]
    place, given = ".".join(map(str, first["loc"])), str(first["input"])[:80]
    raise NotAsAsked(f"{place} is {given!r}: {first['msg']}.") from problems[0]


def _validated(model: type[Model], value: object, extra: Literal["forbid"] | None) -> Model:
    try:
        return model.model_validate(value, extra=extra)
    except ValidationError as error:
        corrected = copy.deepcopy(value)
        if not all(_correct(corrected, problem) for problem in error.errors(include_url=False)):
            raise
        return model.model_validate(corrected, extra=extra)


def _correct(value: Any, problem: ErrorDetails) -> bool:
    """Put the one thing that can be meant at the problem's place; False where there is none."""
    *way, last = problem["loc"]
    given: Any = problem["input"]
    meant: object = None
    if problem["type"] in {"list_type", "tuple_type"}:
        meant = [] if given is None else [given]
    elif problem["type"] in {"int_parsing", "float_parsing"}:
        meant = number_of(given) if number_of(given) != given else None
    elif problem["type"] == "literal_error" and isinstance(given, str):
        choices = _CHOICE.findall(problem["ctx"]["expected"])
        word = given.strip().casefold()
        meant = next((choice for choice in choices if choice.casefold() == word), None)
    try:
        for step in way:
            value = value[step]
        if meant is None or value[last] != given:
            return False
        value[last] = meant
    except (KeyError, IndexError, TypeError):
        return False
    return True
