"""Servers of embeddings as they are: small batches, rows without numbers, vectors that are none."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from prompts.engine.embedding_api import ApiEmbedder
from prompts.engine.errors import BatchTooLarge, ModelRefused
from prompts.engine.providers import Endpoint
from prompts.engine.server_habits import HABITS
from tests.server.words import embed

MANY = ["x" * n for n in range(1, 101)]
Refuses = Callable[[dict[str, Any]], tuple[int, str] | None]
Rows = list[dict[str, Any]]


def nothing(_: dict[str, Any]) -> None:
    return None


def by_number(rows: Rows) -> Rows:
    return [dict(row, index=0) for row in rows]


def unnumbered(rows: Rows) -> Rows:
    return [{"embedding": row["embedding"]} for row in rows]


def reversed_rows(rows: Rows) -> Rows:
    return rows[::-1]


def fewer(rows: Rows) -> Rows:
    return rows[1:]


def twice_one(rows: Rows) -> Rows:
    return [rows[0], *rows[:-1]]


def zero(rows: Rows) -> Rows:
    return [{**rows[0], "embedding": [0.0] * 384}, *rows[1:]]


def no_number(rows: Rows) -> Rows:
    return [{**rows[0], "embedding": [float("nan")] * 384}, *rows[1:]]


@contextmanager
def serving(refuses: Refuses, change: Callable[[Rows], Rows] = list) -> Iterator[tuple[Endpoint, Rows]]:
    """A server that refuses some bodies and changes its rows; and the bodies that came."""
    bodies: Rows = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            status, words = refuses(body) or (200, "")
            rows = [{"index": at, "embedding": embed(text, 384)} for at, text in enumerate(body["input"])]
            told = {"object": "error", "message": words} if words else {"data": change(rows)}
            content = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is said."""

    HABITS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield Endpoint("m", "m", url, None, "text", listed=False), bodies
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "words", "most", "tried"),
    [
        (400, "batch size is invalid, it should not be larger than 10.: input", 10, [64, 10]),
        (413, "batch size 64 > maximum allowed batch size 32", 32, [64, 32]),
        (422, "input: List should have at most 32 items after validation, not 64", 32, [64, 32]),
        (400, "too many inputs", 8, [64, 32, 16, 8]),
        (413, "<h1>Request Entity Too Large</h1>", 16, [64, 32, 16]),
        (400, "max 300000 tokens per request", 16, [64, 32, 16]),
        (500, "increase the batch size", 8, [64, 32, 16, 8]),
    ],
)
def test_a_largest_batch_is_learnt_from_the_refusal(status: int, words: str, most: int, tried: list[int]) -> None:
    with serving(lambda body: (status, words) if len(body["input"]) > most else None) as (where, bodies):
        vectors = ApiEmbedder(where, sleep=lambda _: None).embed(MANY)
        assert np.allclose(vectors, [embed(text, 384) for text in MANY], atol=1e-5)
        sizes = [len(body["input"]) for body in bodies]
        assert sizes[: len(tried)] == tried
        assert sum(size for size in sizes if size <= most) == 100
        ApiEmbedder(where).embed([f"{text}!" for text in MANY])
        assert len(bodies[len(sizes)]["input"]) == most, "another run of the process knows it"


def test_a_server_that_takes_not_even_one_text_ends_the_run() -> None:
    refusing = serving(lambda _: (400, "batch too large"))
    with refusing as (where, bodies), pytest.raises(BatchTooLarge, match="batch too large"):
        ApiEmbedder(where).embed(MANY)
    assert len(bodies) == 7


def test_an_encoding_that_is_refused_is_left_out() -> None:
    words = "Unknown field: encoding_format"
    with serving(lambda body: (400, words) if len(body) == 3 else None) as (where, bodies):
        assert ApiEmbedder(where).embed(MANY).shape == (100, 384)
    assert len(bodies) == 3


@pytest.mark.parametrize("change", [by_number, unnumbered, reversed_rows])
def test_rows_are_told_apart_by_number_or_order(change: Callable[[Rows], Rows]) -> None:
    with serving(nothing, change) as (where, _):
        assert np.allclose(ApiEmbedder(where).embed(MANY), [embed(text, 384) for text in MANY], atol=1e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (fewer, "answered 64 texts for the model 'm' with 63 vectors"),
        (twice_one, "answered 64 texts"),
        (zero, "1 of them with a vector that is zero"),
        (no_number, "1 of them with a vector that is zero or no number"),
    ],
)
def test_rows_that_are_no_vectors_are_told_with_the_server(change: Callable[[Rows], Rows], told: str) -> None:
    with serving(nothing, change) as (where, _), pytest.raises(ModelRefused, match=told) as caught:
        ApiEmbedder(where).embed(MANY)
    assert "127.0.0.1:" in caught.value.message
