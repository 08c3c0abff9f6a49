"""In which form does a question want its answer: as JSON, as a list, as the bare number, in one sentence?

The request is taken off the question before it is read: it says nothing of what is asked.
"""

import re

from prompts.language.asked import Format

_JOINTS = " ,，:：;；。"
_END = r"[\s.!。！]*"
_WORDED: dict[Format, str] = {
    "json": (
        r"[\s,;(]*\b(?:please\s+)?(?:(?:answer|reply|respond|return|give|write|output|format)\b[^.?!]{0,40}?\s)?"
        rf"(?:(?:as|in|using)\s+(?:a\s+)?(?:valid\s+)?json(?:\s+(?:format|object|array))?|json\s+only)\b\)?{_END}|"
        r"[，,（(；;\s]*(?:请|并)?(?:以|用|按)?(?:合法的?)?json(?:格式|形式)?(?:来)?(?:回答|输出|返回|给出|作答)?[）)]?"
    ),
    "number": (
        r"[\s,;(]*\b(?:please\s+)?(?:(?:answer|reply|respond|return|give(?: me)?|write)\s+(?:with\s+)?)?"
        rf"(?:(?:only|just)\s+(?:with\s+)?the\s+(?:number|figure)|the\s+(?:number|figure)\s+only|number\s+only)\b\)?{_END}|"
        r"[，,（(；;\s]*(?:请)?(?:只|仅)(?:需|要)?(?:回答|给出|输出|写)?(?:出)?(?:一个)?数(?:字|值)(?:即可)?[）)]?"
    ),
    "list": (
        r"[\s,;(]*\b(?:please\s+)?(?:(?:answer|reply|respond|return|give|write|format)\b[^.?!]{0,40}?\s)?"
        r"(?:as|in)\s+(?:a\s+)?(?:bullet(?:ed)?\s+|numbered\s+)?(?:list|bullet points|bullets)(?:\s+form(?:at)?)?\b\)?"
        rf"{_END}|"
        r"[，,（(；;\s]*(?:请)?(?:以|用|按)(?:项目符号)?(?:列表|清单)(?:的)?(?:格式|形式)?(?:来)?(?:回答|列出|输出|给出)?[）)]?"
    ),
    "sentence": (
        rf"[\s,;(]*\b(?:please\s+)?(?:(?:answer|reply|respond)\s+)?in\s+(?:a\s+single|one|1)\s+sentence\b\)?{_END}|"
        r"[，,（(；;\s]*(?:请)?(?:用|以)一句话(?:来)?(?:回答|概括|说明)?[）)]?"
    ),
}
_FORMATS = {form: re.compile(pattern, re.I) for form, pattern in _WORDED.items()}


def taken_off(question: str) -> tuple[str, Format]:
    """The question without its request for a form, and the form; unchanged where it asks for none.

    The request stands before all else or after it: "Which files are kept as JSON?" asks for files.
    """
    for form, pattern in _FORMATS.items():
        for found in pattern.finditer(question):
            head, tail = (side.strip(_JOINTS) for side in (question[: found.start()], question[found.end() :]))
            asked = tail in "?？" and found.group().lstrip().startswith((",", "，"))
            if head and (not tail or asked):
                return head + ("" if head.endswith(("?", "？", ".")) else tail), form
            if tail and not head:
                return tail[:1].upper() + tail[1:], form
    return question, ""
