"""Makes foreign text harmless in a prompt without losing anything of it.

A private character breaks what a prompt, a chat template or DSPy would read as a sign of its own,
and another replaces what cannot be sent or seen (controls, lone surrogates, invisible tags).
`restore` gives the original back, also of a model's quotation, which is then found in the original
text. Spans always refer to the original.
"""

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

# All are in plane 16, which is assigned to nobody and has no tokens of its own in any tokenizer.
_BREAK = "\U0010f700"
_CONTROLS = 0x10F800  # + code, for codes up to 0x9F
_TAGS = 0x10F900  # + code - 0xE0000
_SURROGATES = 0x10E000  # + code - 0xD800
_BLOCK = "\U0010e000-\U0010e7ff\U0010f700\U0010f800-\U0010f8ff\U0010f900-\U0010f97f"

_UNSEEN = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e007f"
# A sign is broken after its first character.
_SIGNS = (
    r"\[(?=\[\s*##)|#(?=#\s*\]\])"  # [[ ## field ## ]]
    # <|im_start|>, <｜begin▁of▁sentence｜>, DSPy's blocks, <<SYS>>
    r"|<(?=[|｜]|<\s*(?:CUSTOM-TYPE|SYS>|/SYS>))"
    r"|<(?=/?\s*(?:s|bos|eos|pad|unk|mask|sop|eop|cls|sep|(?:start|end)_of_turn|start_of_image"
    r"|end_of_image|think|thinking|thought|reasoning|reflection|seed:think|tool_call|tool_response"
    r"|function_call|tool_code|image|custom-type-[a-z-]*|extra_id_\d+|unused\d+|reserved_\d+)\s*>)"
    r"|◁(?=/?\s*think\s*▷)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|THINK"
    r"|IMG|IMG_BREAK|IMG_END|gMASK|MASK|CLS|SEP|PAD|BOS|EOS)\])"
)
_HARMFUL = re.compile(
    f"(?P<sign>{_SIGNS})|(?P<unseen>[{_UNSEEN}])|(?P<ours>[{_BLOCK}])", re.IGNORECASE
)
# Every match begins with one of these characters; looking for them first is ten times as fast.
_MAYBE = re.compile("[\\[#<◁\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U0010ffff]")
_HARMLESS = re.compile(f"{_BREAK}([{_BLOCK}]?)|([{_BLOCK}])")


def neutralise(text: str) -> str:
    """The text with every sign broken and every unseen character replaced."""
    return _MAYBE.sub(_if_harmful, text)


def restore(text: str) -> str:
    """The original of a neutralised text or of a quotation from it."""
    return text if text.isascii() else _HARMLESS.sub(_original, text)


def neutralised(value: object) -> object:
    """An input with every string neutralised; models become dictionaries."""
    if isinstance(value, str):
        return neutralise(value)
    if isinstance(value, BaseModel):
        return neutralised(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {neutralise(str(key)): neutralised(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [neutralised(item) for item in value]
    return value


def _if_harmful(maybe: re.Match[str]) -> str:
    harmful = _HARMFUL.match(maybe.string, maybe.start())
    return _broken(harmful) if harmful else maybe.group()


def _broken(match: re.Match[str]) -> str:
    sign = match.group()
    if match.lastgroup == "sign":
        return sign + _BREAK
    if match.lastgroup == "ours":
        return _BREAK + sign
    code = ord(sign)
    if code < 0x100:
        return chr(_CONTROLS + code)
    return chr(_SURROGATES + code - 0xD800) if code < 0xE000 else chr(_TAGS + code - 0xE0000)


def _original(match: re.Match[str]) -> str:
    literal, stands_for = match.groups()
    if stands_for is None:
        return str(literal)
    code = ord(stands_for)
    if code >= _TAGS:
        return chr(0xE0000 + code - _TAGS)
    return chr(code - _CONTROLS) if code >= _CONTROLS else chr(0xD800 + code - _SURROGATES)
