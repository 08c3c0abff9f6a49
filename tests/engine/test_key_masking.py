"""Keys are masked however they are written, in texts, errors, logs and drafts."""

import base64
import html
import io
import json
import logging
import traceback
from contextlib import redirect_stderr
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter, ValidationError

from prompts.engine.errors import BadKey
from prompts.engine.key_masking import (
    MASK,
    keep_secret,
    mask_error,
    mask_keys,
    mask_logs,
    secrets_of_address,
    secrets_of_environment,
)
from prompts.engine.streaming import ShownText

KEY = 'sk-proj/Ab+0815"x\\yü'
PLAIN = "sk-plain-4711-0815"


@pytest.fixture(autouse=True)
def kept() -> None:
    keep_secret((KEY, PLAIN))


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        PLAIN,
        quote(KEY, safe=""),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(KEY))[3:-3],
        html.escape(KEY),
        KEY.lower(),
    ],
)
def test_a_key_is_masked_however_it_is_written(written: str) -> None:
    for said in ("your key is Bearer {}.", '{{"key": "{}"}}', "{}", "100 % of {}"):
        assert mask_keys(said.format(written)) == said.format(MASK)


@pytest.mark.parametrize(
    "word", ["", "x", "none", "EMPTY", "ollama", "sk-1234", "lm-studio", "Not-Needed", "password"]
)
def test_a_word_that_is_no_secret_is_not_masked(word: str) -> None:
    keep_secret((word, None))
    text = f"x none of the {word} is EMPTY: {word}word"
    assert mask_keys(text) == text


def test_the_secrets_of_an_address_are_masked() -> None:
    in_query = "api-version=2024-02-15&api_key=in-the-query"
    keep_secret(secrets_of_address(f"https://me:pa%2Fss-4711@host/v1?{in_query}"))
    keep_secret(secrets_of_address("https://a-token-alone@host/v1"))
    keep_secret(secrets_of_address("https://you:short@host/v1"))
    assert list(secrets_of_address("http://[broken")) == list(secrets_of_address(None)) == []
    basic = base64.b64encode(b"me:pa/ss-4711").decode().rstrip("=")
    written = "pa/ss-4711 pa%2Fss-4711 in-the-query a-token-alone you:short".split()
    for secret in (*written, basic):
        assert mask_keys(f"<{secret}>") == f"<{MASK}>"
    assert mask_keys("a short text of 2024-02-15") == "a short text of 2024-02-15"


def test_the_keys_in_the_environment_are_found_by_name() -> None:
    keys = {"ANTHROPIC_API_KEY": "1", "HF_TOKEN": "2", "AWS_SECRET_ACCESS_KEY": "3"}
    others = {"TRELLIS_MAX_TOKENS": "no", "POSTGRES_PASSWORD": "no"}
    assert list(secrets_of_environment(keys | others)) == ["1", "2", "3"]


@pytest.mark.parametrize("size", [1, 2, 7, 18])
def test_a_key_in_a_streamed_answer_is_never_shown(size: int) -> None:
    shown: list[str] = []
    streamed = ShownText(shown.append)
    text = f"Your key is {PLAIN}, say it. 你的密钥是{PLAIN}。"
    for at in range(0, len(text), size):
        streamed.add(text[at : at + size])
    assert len(shown) > 3, "a draft is shown while it is written"
    streamed.end()
    assert "".join(shown) == f"Your key is {MASK}, say it. 你的密钥是{MASK}。"


def raised() -> Exception:
    """An error with the key in all places of it and of its causes."""
    try:
        try:
            TypeAdapter(int).validate_python(PLAIN)
        except ValidationError as error:
            error.add_note(f"noted {PLAIN}")
            raise FileNotFoundError(2, f"no {PLAIN}", f"{PLAIN}.txt") from error
    except FileNotFoundError as error:
        others = [BadKey(f"bad {PLAIN}"), RuntimeError({"headers": [PLAIN]}, PLAIN.encode())]
        group = ExceptionGroup("both", others)
        group.__context__ = error
        return group
    raise AssertionError("it was raised")


def test_an_error_and_its_causes_are_masked() -> None:
    error = raised()
    assert PLAIN in "".join(traceback.format_exception(error))
    assert mask_error(error) is error
    written = "".join(traceback.format_exception(error))
    assert PLAIN not in written
    assert PLAIN not in repr(error)
    for part in (f"bad {MASK}", f"no {MASK}", "ValidationError: 1 validation error"):
        assert part in written
    error.__cause__ = error  # a circle ends
    assert mask_error(error) is error


def test_what_nobody_handles_is_logged_without_keys() -> None:
    mask_logs()
    mask_logs()
    assert logging.lastResort is not None
    assert len(logging.lastResort.filters) == 1
    error = raised()
    info = (type(error), error, error.__traceback__)
    with redirect_stderr(io.StringIO()) as written:
        logging.lastResort.handle(logging.LogRecord("x", 40, "", 1, "said %s", (PLAIN,), info))
    assert f"said {MASK}" in written.getvalue()
    assert "Traceback" in written.getvalue()
    assert PLAIN not in written.getvalue()
