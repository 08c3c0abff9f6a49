"""`make screenshots`: the pictures of the page, of the sample corpus in a service of this machine.

Needs Chromium and the extra `dev`; nothing is asked of the network.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

from flows.cli.demo import sample_folder
from tests.service.serving import served

FOLDER = Path(__file__).parent
SIZE = ViewportSize(width=1280, height=800)
QUESTION = "When was Gullstone Brewery founded?"
WAIT = 120_000  # milliseconds


def keep(page: Page, name: str) -> None:
    """The page as a small PNG."""
    page.wait_for_load_state("networkidle")
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    picture.quantize(method=Image.Quantize.MAXCOVERAGE, kmeans=2).save(
        FOLDER / f"page-{name}.png", optimize=True
    )


def take(page: Page) -> None:
    """Ask, open the source, then look at the graph."""
    page.get_by_role("textbox", name="Your question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".turn .foot").wait_for()
    page.locator(".cite").first.click()
    page.locator("mark.here").wait_for()
    page.locator(".talk").evaluate_handle("talk => talk.scrollTo(0, 0)")
    keep(page, "ask")
    page.get_by_role("link", name="Graph", exact=True).click()
    page.get_by_role("link", name="Ilse Marrand", exact=True).press("Enter")
    page.locator(".details h2").wait_for()
    keep(page, "graph")


def main() -> int:
    """Take them all."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        sys.stderr.write("No Chromium: apt-get install chromium, or another system's package.\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        with served(Path(folder), [sample_folder() / "corpus"]) as service:
            page = chromium.new_page(viewport=SIZE, locale="en-GB", bypass_csp=True)
            page.set_default_timeout(WAIT)
            page.goto(service.url)
            take(page)
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
