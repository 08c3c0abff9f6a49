"""JSON as models write it: found among prose, mended where nothing is lost, never completed.

json-repair mends what is out of form. It would also close what was cut off and drop what it cannot
place, so it gets only what ends by itself, and no letter may be lost.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from prompts.engine.calls import NotAsAsked

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
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_CODE = re.compile(r"\\u([0-9a-f]{4})")
_ENDS_VALUE = re.compile(
    r"(?:(?<!\\)[\"'”’]|[\]{\d]|true|false|null|none)[\s,}]*\}\Z", re.IGNORECASE
)
_OF_SO_MANY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:(?:/|out of|of)\s*\d+|\([^)]*\))\s*")


def read_object(answer: str, model: type[Model]) -> Model:
    """The one object of this form in an answer; NotAsAsked tells what is wrong.

    The same object twice counts as one; other text in braces counts as prose.
    """
    found: Model | None = None
    problem = NotAsAsked("it holds no JSON object.")
    for value, mended in _objects(answer):
        try:
            read = value if isinstance(value, NotAsAsked) else _read(model, value, mended)
        except NotAsAsked as error:
            read = error
        if isinstance(read, NotAsAsked):
            problem = read
        elif found is not None and read != found:
            raise NotAsAsked("more than one JSON object was given.")
        else:
            found = read
    if found is None:
        raise problem
    return found


def number_of(text: str) -> str:
    """The 7 of "7/10", "7 out of 10" and "7 (high)"; any other text as it is."""
    scored = _OF_SO_MANY.fullmatch(text)
    return scored[1] if scored else text


def _objects(answer: str) -> Iterator[tuple[dict[str, Any] | NotAsAsked, bool]]:
    """The objects in an answer, or what keeps one from being read; whether each was mended."""
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
            mended = _mended(answer[at:])
            told = f"the JSON is broken at character {error.pos}: {error.msg}."
            yield mended or NotAsAsked(told), True
            if mended or '"' in answer[at : at + 5]:  # what is whole inside it is no answer
                return
            at += 1
        except (RecursionError, ValueError) as error:  # or a figure of thousands of digits
            yield NotAsAsked(f"the JSON is nested too deeply: {str(error)[:80]}."), False
            return


def _mended(text: str) -> dict[str, Any] | None:
    """The object that json-repair makes of this; None where something would be lost."""
    text, brace, rest = text.rpartition("}")
    text += brace
    if text.count("{") > text.count("}") or _GOES_ON.search(rest):
        return None
    if not any(_ENDS_VALUE.search(last) for last in (text, _COMMENT.sub(" ", text))):
        return None  # its last text has no end
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
    """The answer, out of the one JSON string that it may be."""
    try:
        inner = json.loads(answer) if answer.lstrip()[:1] == '"' else answer
    except ValueError:
        return answer
    return inner if isinstance(inner, str) else answer


def _read(model: type[Model], value: dict[str, Any], mended: bool) -> Model:
    """The value as the model, also where it is the only field's own value, or wrapped once.

    A mended value has no key too many: that could be a part of a text.
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
            return _validated(model, reading, mended)
        except ValidationError as error:
            problems.append(error)
    first = problems[0].errors(include_url=False)[0]
    place, said = ".".join(map(str, first["loc"])), str(first["input"])[:80]
    raise NotAsAsked(f"{place} is {said!r}: {first['msg']}.") from problems[0]


def _validated(model: type[Model], value: object, mended: bool) -> Model:
    try:
        return model.model_validate(value, extra="forbid" if mended else None)
    except ValidationError as error:
        fitted = copy.deepcopy(value)
        if not all(_fitted(fitted, problem) for problem in error.errors(include_url=False)):
            raise
        return model.model_validate(fitted, extra="forbid" if mended else None)


def _fitted(value: Any, problem: ErrorDetails) -> bool:
    """Whether the value at the problem's place has one reading; it is put there."""
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
