"""Prefect's own pages in Chromium: what somebody sees of an index run, of a question, and of a run
that failed.

One server for all, and one process that does the runs. Nothing waits for a time, but for what is to
be seen.
"""

import io
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.flows.recorded.conftest import FINAL, ROOT, Api
from tests.patience import PATIENCE, wait_for

pytest.importorskip(
    "playwright", reason="the pages' tests need playwright: pip install 'trellis-rag[dev]'"
)
from playwright.sync_api import Browser, Page, expect

pytestmark = [pytest.mark.prefect, pytest.mark.slow]
expect.set_options(timeout=PATIENCE * 1000)
CORPUS = ROOT / "examples" / "corpus"
QUESTION = "Which bridges did Ilse Marrand design?"
# Chunks are small, so that they are extracted in several batches.
RUNS = f"""
import asyncio, sys
from flows.index import index
from flows.query import query
from storage.errors import SourceNotFound
async def runs():
    await index({str(CORPUS)!r}, workspace="ws")
    await query({QUESTION!r}, workspace="ws")
    try:
        await index("nowhere", workspace="ws")
    except SourceNotFound:
        sys.exit(0)
asyncio.run(runs())
"""
RED, GREEN = 0, 1
# Icons that Prefect's pages ask for and its server does not have.
NOT_THERE = re.compile(r"/(favicon|ico/undefined)\.\w+$")
# A run's graph goes on drawing for a moment after its page was left, and finds that it has been
# taken down.
TAKEN_DOWN = re.compile(r"Cannot read properties of null \(reading '(position|scale)'\)")


@pytest.fixture(scope="module")
def runs(api: Api, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The three runs, as the server knows them, by the first word of their names."""
    folder = tmp_path_factory.mktemp("runs")
    done = subprocess.run(
        [sys.executable, "-c", RUNS],
        env=api.environment(TRELLIS_CHUNK_TOKENS="200", TRELLIS_CHUNK_OVERLAP="0"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    found = api.post("flow_runs/filter", {"sort": "START_TIME_DESC"}).raise_for_status().json()
    names = {
        "index": f"index {CORPUS} into ws",
        "question": "question in mode auto",
        "failed": "index nowhere into ws",
    }
    return {name: next(run for run in found if run["name"] == full) for name, full in names.items()}


@dataclass(frozen=True)
class Seen:
    """The page of a run, with what it asked the server for to draw its graph."""

    page: Page
    graph: dict[str, Any]

    @property
    def arrows(self) -> Counter[tuple[str, frozenset[str]]]:
        """The name of each node with the names of those from which arrows lead to it."""
        nodes = dict(self.graph["nodes"])
        return Counter(
            (node["label"], frozenset(nodes[parent["id"]]["label"] for parent in node["parents"]))
            for node in nodes.values()
        )

    def draws(self, colour: int) -> bool:
        """Whether bars of steps in a colour are on the canvas, above the strip that tells the run's
        own.
        """
        picture = Image.open(io.BytesIO(self.page.locator("canvas").first.screenshot())).convert(
            "RGB"
        )
        above = picture.crop((0, 0, picture.width, picture.height * 9 // 10))
        pixels = numpy.asarray(above, int)
        others = numpy.delete(pixels, colour, axis=2).max(axis=2)
        return int((pixels[:, :, colour] > others + 60).sum()) > 100

    def artifact(self, key: str) -> str:
        """The text of an artifact as it is shown, after a click on its card."""
        self.page.get_by_text("Artifacts", exact=True).last.click()
        self.page.get_by_role("link", name=key).first.click()
        self.page.wait_for_url("**/artifacts/artifact/*")
        expect(self.page.locator("main, body").first).to_contain_text("State Message")
        return self.page.locator("body").inner_text()


@contextmanager
def seen(browser: Browser, api: Api, run: Any, last: str) -> Iterator[Seen]:
    """The page as soon as the server, which learns of steps a moment later, knows that of the name
    `last` is over.

    Fails the test for an error in the console of the page, and for a request to anywhere but the
    server.
    """

    def known() -> bool:
        nodes = [node for _, node in api.get(f"flow_runs/{run['id']}/graph-v2")["nodes"]]
        return (
            last in {node["label"] for node in nodes}
            and {node["state_type"] for node in nodes} <= FINAL
        )

    wait_for(known, f"the end of {last}")
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, locale="en-GB")
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    wrong: list[str] = []

    def failed(error: Any) -> None:
        if "/runs/flow-run/" in page.url or not TAKEN_DOWN.fullmatch(error.message):
            wrong.append(str(error))

    page.on("pageerror", failed)
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((api.ui, "data:", "blob:")) else wrong.append(asked.url)
        ),
    )

    def said(message: Any) -> None:
        if message.type == "error" and not NOT_THERE.search(message.location.get("url", "")):
            wrong.append(message.text)

    page.on("console", said)
    with page.expect_response(lambda answer: answer.url.endswith("/graph-v2")) as graph:
        page.goto(f"{api.ui}/runs/flow-run/{run['id']}")
    yield Seen(page, json.loads(graph.value.body()))
    assert not wrong
    context.close()


def test_an_index_run_draws_the_diagram_and_shows_what_it_made(
    browser: Browser, api: Api, runs: dict[str, Any]
) -> None:
    with seen(browser, api, runs["index"], "publish") as shown:
        arrows = shown.arrows
        assert arrows.pop(("extract", frozenset({"chunk"}))) > 1, "batches, side by side"
        assert arrows == Counter(
            {
                ("load", frozenset()): 1,
                ("sync", frozenset({"load"})): 1,
                ("chunk", frozenset({"sync"})): 1,
                ("dedupe", frozenset({"extract"})): 1,
                ("summarize", frozenset({"dedupe"})): 1,
                ("detect-communities", frozenset({"summarize"})): 1,
                ("report", frozenset({"detect-communities"})): 1,
                ("publish", frozenset({"report"})): 1,
            }
        )
        wait_for(lambda: shown.draws(GREEN), "bars of steps that are done")
        expect(shown.page.locator("body")).to_contain_text("Published generation 1 (23 added;")
        text = shown.artifact("index-summary")
        expect(shown.page.get_by_role("heading", name="Models")).to_be_visible()
        assert "recorded/" in text


def test_a_failed_run_says_why_in_words_and_shows_no_traceback(
    browser: Browser, api: Api, runs: dict[str, Any]
) -> None:
    with seen(browser, api, runs["failed"], "load") as shown:
        assert shown.arrows == Counter({("load", frozenset()): 1})
        wait_for(lambda: shown.draws(RED), "the bar of a step that failed")
        body = shown.page.locator("body")
        expect(body).to_contain_text("The run failed. Generation 1 of")
        expect(body).to_contain_text("Source not found: nowhere. Check the path.")
        assert "Traceback" not in body.inner_text()
