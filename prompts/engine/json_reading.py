"""JSON as models write it: found among prose, mended where it has one reading, never completed.

What is out of form (trailing commas, Python's literals, comments, other quotes) json-repair mends.
It would also close what was cut off and drop what it cannot place, so it gets only what ends by
itself, and no letter may be lost.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from prompts.engine.calls import NotAsAsked
from prompts.text.regex import regex

Model = TypeVar("Model", bound=BaseModel)

_MOST_TRIED = 200  # braces at which an object may begin
# What JSON has as an escape and a model means as one. The others are LaTeX (`\(`, `\frac`), also
# where JSON would read a form feed, or a tab before "heta".
_ESCAPE = regex(
    r"(\\(?:u[0-9a-fA-F]{4}|[\"'\\/]"
    r"|n(?!(?:abla|eq|otin)\b)|r(?!(?:ho|ight|angle)\b)|t(?!(?:imes|heta|ext|au|riangle)\b)))|\\"
)
_BRACE = regex(r"\\.|[\"{}]", re.S)
_BEGINS_OBJECT = regex(r"\{\s*(?:[\"'“”‘’]|\w+\s*:)")
_COMMENT = regex(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.S)
_CODE = regex(r"\\u([0-9a-f]{4})")
_TYPOGRAPHIC = str.maketrans(dict.fromkeys("“”„‟＂", '"') | dict.fromkeys("‘’‚‛", "'"))
_FULL_WIDTH = ((regex(r"(?<=[\"'])\s*：\s*"), ": "), (regex(r"(?<=[\"'\]}])\s*，\s*(?=[\"'])"), ", "))
# How the last value of an object ends, and what shows that its end stands within a text.
_ENDS_VALUE = regex(r"(?:(?<!\\)[\"'”’]|[\]{\d]|true|false|null|none)[\s,}]*\}\Z", re.I)
_GOES_ON = regex(r"[\"'”’]\s*[,:\]}]")
_OF_SO_MANY = regex(r"\s*(\d+(?:\.\d+)?)\s*(?:(?:/|out of|of)\s*\d+|\([^)]*\))\s*")
_CHOICE = regex(r"'([^']*)'")


def read_object(answer: str, model: type[Model]) -> Model:
    """The one object of this form in an answer; NotAsAsked with what is wrong.

    The same object twice is one; what else stands in braces is prose.
    """
    found: Model | None = None
    problems = [(0, NotAsAsked("it holds no JSON object."))]
    for piece in _pieces(_unquoted(answer)):
        try:
            read = _read(model, piece)
        except NotAsAsked as problem:
            problems.append((piece.size, problem))
        else:
            if found is not None and read != found:
                raise NotAsAsked("more than one JSON object was given.")
            found = read
    if found is None:
        raise max(problems, key=lambda told: told[0])[1]
    return found


def number_of(text: str) -> str:
    """The 7 of "7/10", "7 out of 10" and "7 (high)"; any other text as it is."""
    scored = _OF_SO_MANY.fullmatch(text)
    return scored[1] if scored else text


# --- finding and mending ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Braced:
    """What stands in braces: its value, or what keeps it from being read; its length, and whether
    it had to be mended."""

    value: "dict[str, Any] | NotAsAsked"
    size: int
    mended: bool = False


def _unquoted(answer: str) -> str:
    """The answer, out of the one string of JSON that it may be."""
    if answer.lstrip()[:1] == '"':
        try:
            inner = json.loads(answer)
        except ValueError:
            return answer
        return inner if isinstance(inner, str) else answer
    return answer


def _pieces(answer: str) -> Iterator[_Braced]:
    # Control characters inside a string are a model quoting its source as it stands.
    decoder, at = json.JSONDecoder(strict=False), 0
    answer = _ESCAPE.sub(lambda escape: escape[1] or "\\\\", answer)
    ends: list[dict[int, int]] = []
    for _ in range(_MOST_TRIED):
        begin, mended = answer.find("{", at), False
        if begin < 0:
            return
        try:
            value, at = decoder.raw_decode(answer, begin)
        except json.JSONDecodeError as error:
            problem = NotAsAsked(f"the JSON is broken at character {error.pos}: {error.msg}.")
            ends = ends or [_ends(answer, quotes=True), _ends(answer, quotes=False)]
            places = [end for where in ends if (end := where.get(begin)) is not None]
            tried = ((_mended(answer, begin, end), end) for end in places)
            value, at = next(((value, end) for value, end in tried if value), (problem, 0))
            mended = value is not problem
            if value is problem and not places and _BEGINS_OBJECT.match(answer, begin):
                at = len(answer)  # it is cut off: what is whole inside of it is no answer
            at = at or max(places, default=begin + 1)
        except RecursionError as error:
            raise NotAsAsked("the JSON is nested too deeply.") from error
        except ValueError as error:  # a figure of thousands of digits
            raise NotAsAsked(f"the JSON cannot be read: {str(error)[:80]}.") from error
        yield _Braced(value, at - begin, mended)


def _ends(answer: str, quotes: bool) -> dict[int, int]:
    """Where each brace that opens is closed; those in double quotes are none where `quotes` counts.

    Both are tried: a quotation mark that is not escaped turns inside and outside around.
    """
    ends: dict[int, int] = {}
    opened: list[int] = []
    inside = False
    for sign in _BRACE.finditer(answer):
        if sign[0] == '"' and quotes and opened:
            inside = not inside
        elif sign[0] == "{" and not inside:
            opened.append(sign.start())
        elif sign[0] == "}" and not inside and opened:
            ends[opened.pop()] = sign.end()
    return ends


def _mended(answer: str, begin: int, end: int) -> dict[str, Any] | None:
    """The object that json-repair makes of this; None where something would be lost."""
    text, rest = answer[begin:end], answer[end:]
    if rest.count("}") > rest.count("{") or _GOES_ON.search(rest.partition("{")[0]):
        return None  # it ends within a text that holds a brace
    if not any(_ENDS_VALUE.search(last) for last in (text, _COMMENT.sub(" ", text))):
        return None  # its last text has no end
    if '"' not in text:
        text = text.translate(_TYPOGRAPHIC)
    for sign, plain in _FULL_WIDTH:
        text = sign.sub(plain, text)
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


# --- the form -----------------------------------------------------------------------------------


def _read(model: type[Model], piece: _Braced) -> Model:
    """The value as the model, also where it is the only field's own value, or in one wrapping."""
    value = piece.value
    if isinstance(value, NotAsAsked):
        raise value
    readings: list[object] = [value]
    if len(value) == 1:
        readings += [inner for inner in value.values() if isinstance(inner, dict)]
    (only, *more) = model.model_fields.items()
    if not more and value and value.keys() <= _fields(only[1].annotation):
        readings.append({only[0]: value})
    problems = []
    for reading in readings:
        try:
            return _validated(model, reading, "forbid" if piece.mended else None)
        except ValidationError as error:
            problems.append(error)
    first = problems[0].errors(include_url=False)[0]
    place, said = ".".join(map(str, first["loc"])), str(first["input"])[:80]
    raise NotAsAsked(f"{place} is {said!r}: {first['msg']}.") from problems[0]


def _fields(kind: object) -> set[str]:
    """The fields of a model; none of anything else."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return set(kind.model_fields)
    return set()


def _validated(model: type[Model], value: object, extra: Literal["forbid"] | None) -> Model:
    """The value as the model. A mended one has no key too many: it could be a part of a text."""
    try:
        return model.model_validate(value, extra=extra)
    except ValidationError as error:
        fitted = copy.deepcopy(value)
        if not all(_fitted(fitted, problem) for problem in error.errors(include_url=False)):
            raise
        return model.model_validate(fitted, extra=extra)


def _fitted(value: Any, problem: ErrorDetails) -> bool:
    """Whether what stands at the problem's place has one reading; it is put there."""
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
        if meant is not None and value[last] == given:
            value[last] = meant
            return True
    except (KeyError, IndexError, TypeError):
        pass
    return False
