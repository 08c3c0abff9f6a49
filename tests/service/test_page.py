"""The page in Chromium: questions, documents, graph, reports, runs and health.

Nothing waits for a time: each step waits for what it needs to see.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from flows.service.access import new_key
from tests.flows.conftest import row
from tests.server.client import Server
from tests.service.serving import Served, served, served_workspace

pytest.importorskip(
    "playwright", reason="the page's tests need playwright: pip install 'trellis-rag[dev]'"
)
from playwright.sync_api import Browser, FilePayload, Locator, Page, Position, Route, expect

pytestmark = pytest.mark.slow
WAIT = 300_000  # milliseconds
expect.set_options(timeout=WAIT)
ROOT = Path(__file__).resolve().parents[2]
RUN = "document.body.dataset.ran=1"
EVIL = f'<img src=x onerror="{RUN}"><script>{RUN}</script>'
BRIDGE = "Orla Bridge was designed by Tomas Reyd. It opened in 1931."
REYD = "Tomas Reyd was born in Velin. He studied under Ana Korb in Velin."
KORB = "Ana Korb taught in Velin. A. Korb also built Holm Light in 1902."
ROWS = (
    {"id": "bridge", "title": "Orla Bridge", "text": BRIDGE},
    {"id": "reyd", "title": "Tomas Reyd", "text": REYD},
    {"id": "korb", "title": "Ana Korb", "text": KORB},
    {"s": "Ana Korb", "p": "taught", "o": "Tomas Reyd"},
    {"s": "A. Korb", "p": "built", "o": "Holm Light"},
    {"s": "Tomas Reyd", "p": "designed", "o": "Orla Bridge"},
)
# What a browser makes of files that are dropped on a page.
DROP = """text => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "orla.txt", {type: "text/plain"}));
    return transfer;
}"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page"), ROWS) as service:
        yield service


@contextmanager
def opened(
    browser: Browser, service: Served, width: int = 1200, **context: object
) -> Iterator[Page]:
    """A page; an error in its console or a request to another host fails the test."""
    inside = browser.new_context(
        viewport={"width": width, "height": 900},
        locale="en-GB",
        **context,  # type: ignore[arg-type]
    )
    inside.set_default_timeout(WAIT)
    page, errors, requests = inside.new_page(), list[str](), list[str]()
    page.on("console", lambda message: errors.extend([message.text] * (message.type == "error")))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(service.url)
    yield page
    assert not errors
    assert not [address for address in requests if not address.startswith(service.url)]
    assert page.locator("body").get_attribute("data-ran") is None
    inside.close()


def show(page: Page, tab: str) -> None:
    page.get_by_role("link", name=tab, exact=True).click()


def press(place: Page | Locator, button: str) -> None:
    place.get_by_role("button", name=button).click()


def ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Your question").fill(question)
    page.keyboard.press("Enter")


def asked(page: Page, question: str) -> None:
    """Ask, and wait for the whole answer."""
    turns = page.locator(".turn").count()
    ask(page, question)
    expect(page.locator(".turn").nth(turns).locator(".foot")).to_be_visible()


def file_of(name: str, kind: str, content: bytes) -> FilePayload:
    return FilePayload(name=name, mimeType=kind, buffer=content)


# --- questions ---


def test_an_answer_opens_its_source_and_stays_over_a_reload(
    browser: Browser, service: Served
) -> None:
    with opened(browser, service) as page:
        asked(page, "Who designed Orla Bridge?")
        expect(page.locator(".answer")).to_contain_text("Tomas Reyd")
        page.locator(".cite").first.click()
        marked = page.locator("#source mark.here")
        expect(marked).to_be_in_viewport()
        assert "Tomas Reyd" in marked.inner_text()
        page.keyboard.press("Escape")
        expect(page.locator("#source")).to_be_hidden()
        expect(page.locator(".cite").first).to_be_focused()
        page.get_by_text("How this answer was found").click()
        expect(page.locator(".way dl")).to_contain_text("Version of the index")
        asked(page, "Where was he born?")
        expect(page.locator(".turn").last.locator(".answer")).to_contain_text("Velin")
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        page.get_by_role("button", name="Not helpful").last.click()
        page.get_by_placeholder("What should it have said?").last.fill("In the town of Velin.")
        page.get_by_role("button", name="Save").last.click()
        expect(page.locator("#notice")).to_contain_text("kept for evaluation")
    (rated,) = httpx.get(f"{service.url}/api/v1/feedback").json()
    assert rated["answers"] == ["In the town of Velin."]


def test_mode_lazy_alone_asks_for_its_budget(browser: Browser, service: Served) -> None:
    with opened(browser, service) as page:
        page.get_by_text("Options", exact=True).click()
        mode, budget = (page.locator(f"select[name={name}]") for name in ("mode", "budget"))
        expect(budget).to_be_hidden()
        mode.select_option("lazy")
        budget.select_option("100")
        for chosen, sent in (("lazy", 100), ("local", None)):
            mode.select_option(chosen)
            with page.expect_request("**/api/v1/ask") as request:
                asked(page, "Who designed Orla Bridge?")
            body = request.value.post_data_json or {}
            assert (body.get("mode"), body.get("budget")) == (chosen, sent)
        expect(budget).to_be_hidden()


def test_an_empty_workspace_says_how_to_begin_and_takes_a_file(
    browser: Browser, tmp_path: Path
) -> None:
    # A script of a string makes the dropped file, which the page's policy would forbid.
    with (
        served_workspace(tmp_path / "ws") as service,
        opened(browser, service, bypass_csp=True) as page,
    ):
        for tab in ("Graph", "Reports", "Ask"):
            show(page, tab)
            expect(page.locator("main")).to_contain_text("Nothing is indexed yet.")
        page.get_by_role("link", name="Add documents").click()
        transfer = page.evaluate_handle(DROP, BRIDGE)
        page.locator(".drop").dispatch_event("drop", {"dataTransfer": transfer})
        expect(page.locator(".card")).to_contain_text("1 added")
        press(page, "Update from sources (1)")
        expect(page.locator(".card")).to_contain_text("0 added, 0 changed, 0 removed, 1 unchanged")
        show(page, "Ask")
        asked(page, "Who designed Orla Bridge?")
        expect(page.locator(".answer")).to_contain_text("Tomas Reyd")


def test_failures_are_retried_and_runs_and_answers_cancelled(
    browser: Browser, scripted: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    scripted.misbehave({"step": "extract", "text": "in 1905", "kind": "refusal"})
    rows = [row(number) for number in range(12)]
    with served(tmp_path, rows) as service, opened(browser, service) as page:
        show(page, "Documents")
        failed = page.locator("section", has_text="What failed")
        expect(failed.locator("li")).to_contain_text("d5")
        scripted.misbehave()
        press(failed, "Try again")
        expect(page.locator("#notice")).to_contain_text("1 of 1 succeeded")
        expect(failed).to_have_count(0)
        show(page, "Runs")
        expect(page.locator("tbody tr", has_text="retry")).to_contain_text("completed")

        # The run cannot end by itself.
        scripted.misbehave({"step": "extract", "kind": "hang", "seconds": 600})
        show(page, "Documents")
        late = file_of("late.txt", "text/plain", b"Late Bridge was designed by Ilse Marr.")
        page.locator("#files").set_input_files(late)
        card = page.locator(".card")
        expect(card).to_contain_text("Extracting entities")
        press(card, "Cancel")
        expect(card).to_contain_text("Cancelled. What was there before stays.")
        expect(page.locator("tbody")).to_contain_text("d5")
        expect(page.locator("tbody")).not_to_contain_text("late.txt")
        (run,) = httpx.get(f"{service.url}/api/v1/index-runs").json()
        assert run["state"] == "cancelled"
        scripted.misbehave()

        show(page, "Ask")
        scripted.settle(latency_ms=WAIT)
        ask(page, "Who planned Velin Town?")
        press(page, "Stop")
        expect(page.locator(".turn [role=alert]")).to_contain_text("Stopped.")
        scripted.settle(latency_ms=0)
        says = json.dumps({"answer": "Zeppelins of Zorba carried it.", "values": []})
        scripted.misbehave({"kind": "writes", "step": "answer", "says": says})
        ask(page, "Who planned Velin Town?")
        expect(page.locator(".badge")).to_contain_text("no source supports it")
        found = page.get_by_role("list", name="The passages that were found")
        expect(found.locator("li")).to_have_count(3)
        found.get_by_role("button").first.click()
        expect(page.locator("#source header")).to_be_visible()


# --- documents and the graph ---


def test_an_uploaded_file_is_indexed_cited_and_forgotten(browser: Browser, tmp_path: Path) -> None:
    manual = (ROOT / "examples/corpus/manuals/kestrel-bearing-manual.pdf").read_bytes()
    with served(tmp_path, ROWS) as service, opened(browser, service) as page:
        show(page, "Documents")
        expect(page.locator("tbody tr")).not_to_have_count(0)
        page.locator("#files").set_input_files(file_of("manual.pdf", "application/pdf", manual))
        expect(page.locator(".card")).to_contain_text("1 added")
        expect(page.locator("tbody")).to_contain_text("manual.pdf")
        press(page, "Compare")
        expect(page.locator(".diff")).to_contain_text("documents")
        show(page, "Ask")
        asked(page, "How are the rocker bearings greased?")
        page.locator(".cite").first.click()
        expect(page.locator("#source header")).to_contain_text(re.compile(r"manual\.pdf, page \d"))
        show(page, "Documents")
        page.get_by_role("button", name=re.compile(r"Remove: .*manual\.pdf")).click()
        press(page.get_by_role("dialog"), "Remove")
        expect(page.locator("#notice")).to_contain_text("is removed")
        expect(page.locator("tbody")).not_to_contain_text("manual.pdf")
        show(page, "Runs")
        expect(page.locator("tbody").first).to_contain_text("forget")
        expect(page.locator("tbody").last).to_contain_text("How are the rocker bearings greased?")


def test_an_entity_is_merged_and_split(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, ROWS) as service, opened(browser, service) as page:
        show(page, "Graph")
        page.get_by_role("link", name="Ana Korb", exact=True).press("Enter")
        details, notice = page.locator(".details"), page.locator("#notice")
        dialog = page.get_by_role("dialog")
        expect(details.get_by_role("heading", name="Ana Korb")).to_be_visible()
        details.locator("summary").first.click()
        details.locator(".quote").first.click()
        expect(page.locator("mark.here")).to_be_in_viewport()
        page.keyboard.press("Escape")

        press(details, "Merge")
        dialog.get_by_label("Other name").fill("A. Korb")
        press(dialog, "Merge")
        expect(notice).to_contain_text("Saved")
        expect(details).to_contain_text("Also: A. Korb")
        expect(details).to_contain_text("Holm Light")
        press(details, "Undo")
        expect(notice).to_contain_text("Undone")
        expect(details).to_contain_text("None yet.")

        press(details, "Split")
        dialog.get_by_role("textbox").fill("reyd")
        press(dialog, "Split")
        expect(details.locator("h2", has_text="Ana Korb")).to_have_count(2)
        details.get_by_role("button", name="Undo").first.click()
        expect(notice).to_contain_text("Undone")
        expect(details.locator("h2", has_text="Ana Korb")).to_have_count(1)


def test_a_path_is_shown_and_a_node_opened_by_a_click(browser: Browser, service: Served) -> None:
    with opened(browser, service) as page:
        show(page, "Graph")
        page.get_by_role("link", name="Ana Korb", exact=True).press("Enter")
        details = page.locator(".details")
        expect(details.get_by_role("heading", name="Ana Korb")).to_be_visible()
        page.get_by_label("Path to").fill("Orla Bridge")
        press(page, "Show the path")
        expect(details.get_by_role("heading", name="Ana Korb … Orla Bridge")).to_be_visible()
        expect(details).to_contain_text("designed")

        drawn = httpx.get(f"{service.url}/api/v1/picture").json()["nodes"]
        (node,) = (one for one in drawn if one["name"] == "Holm Light")
        press(page, "Overview")
        expect(details).to_contain_text("Choose an entity")
        canvas = page.locator("canvas.map")
        expect(page.get_by_role("link", name="Holm Light")).to_be_attached()
        box = canvas.bounding_box()
        assert box is not None
        x, y = 46 + node["x"] * (box["width"] - 92), 46 + node["y"] * (box["height"] - 92)
        canvas.click(position=Position(x=x, y=y))
        expect(details.get_by_role("heading", name="Holm Light")).to_be_visible()


# --- the whole page ---


def test_a_late_page_leaves_the_keyboard_where_it_is(browser: Browser, service: Served) -> None:
    with opened(browser, service) as page:
        question = page.get_by_role("textbox", name="Question")
        expect(question).to_be_focused()
        show(page, "Runs")
        expect(page.locator("main")).to_contain_text(re.compile("History|No run yet"))
        held: list[Route] = []
        # Playwright marks its handlers.
        page.route("**/about*", lambda route: held.append(route))  # noqa: PLW0108
        with page.expect_request("**/about*"):
            show(page, "Ask")
        page.get_by_role("link", name="Reports").focus()
        for route in held:
            route.continue_()
        expect(question).to_be_visible()
        expect(page.get_by_role("link", name="Reports")).to_be_focused()


def test_reports_runs_and_health_are_reached_by_keys(browser: Browser, service: Served) -> None:
    with opened(browser, service) as page:
        # The bar may be drawn again until then.
        expect(page.locator("main")).to_contain_text("documents are indexed")
        page.keyboard.press("Tab")
        page.get_by_role("link", name="Reports").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".treemap button").first).to_be_visible()
        page.locator(".tree .name").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".reports h1")).to_be_visible()
        page.locator(".reports .quote").first.click()
        expect(page.locator("mark.here")).to_be_in_viewport()
        show(page, "Runs")
        expect(page.locator("main")).to_contain_text(re.compile("History|No run yet"))
        show(page, "Health")
        expect(page.locator("main")).to_contain_text("Everything works.")


def test_html_and_scripts_in_texts_do_not_run(browser: Browser, tmp_path: Path) -> None:
    text = f"{EVIL} Orla Bridge was designed by Tomas Reyd. {EVIL}"
    rows = (
        {"id": f"e{EVIL}", "title": f"Title {EVIL}", "text": text},
        {"s": f"Ana {EVIL}", "p": EVIL, "o": "Orla Bridge"},
    )
    with served(tmp_path, rows) as service, opened(browser, service) as page:
        asked(page, f"Who designed Orla Bridge? {EVIL}")
        expect(page.locator(".turn h2")).to_contain_text("<img src=x")
        page.locator(".cite").first.click()
        expect(page.locator("#source .text")).to_contain_text("<script>")
        for tab in ("Documents", "Reports", "Runs", "Health", "Graph"):
            page.get_by_role("link", name=tab).click()
            expect(page.locator("main .empty", has_text="Loading")).to_have_count(0)
        page.get_by_label("Find an entity").fill(f"Ana {EVIL}")
        press(page, "Open")
        expect(page.locator(".details h2")).to_contain_text("<img")
        assert page.locator("main img, #source img, main script").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (900, "light"), (1600, "dark")])
def test_every_tab_fits_its_width(
    browser: Browser, service: Served, width: int, scheme: str
) -> None:
    # `evaluate_all` is a script of a string, which the page's policy would forbid.
    with opened(browser, service, width, color_scheme=scheme, bypass_csp=True) as page:
        for tab in ("Ask", "Documents", "Graph", "Reports", "Runs", "Health"):
            page.get_by_role("link", name=tab).click()
            expect(page.locator("main .empty", has_text="Loading")).to_have_count(0)
            widest = page.locator("main *:visible").evaluate_all(
                "all => Math.max(...all.filter(one => !one.closest('.table, svg, pre'))"
                ".map(one => one.getBoundingClientRect().right))"
            )
            assert widest <= width + 1, tab


def test_the_page_speaks_chinese(browser: Browser, service: Served) -> None:
    with opened(browser, service) as page:
        press(page, "中文")
        expect(page.get_by_role("link", name="图谱")).to_be_visible()
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.reload()
        expect(page.get_by_role("link", name="图谱")).to_be_visible()


def test_a_service_with_keys_asks_for_one(browser: Browser, tmp_path: Path) -> None:
    key, allowed = new_key("reader", "ask")
    with served(tmp_path, ROWS, keys=(allowed,)) as service:
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.goto(service.url)
        for entered in ("wrong", key):
            page.get_by_role("dialog").get_by_label("This service asks for a key").fill(entered)
            page.keyboard.press("Enter")
            expect(page.locator("dialog")).to_have_count(0 if entered == key else 1)
        expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
        asked(page, "Who designed Orla Bridge?")
        show(page, "Documents")
        press(page, "Remove: bridge")
        press(page.get_by_role("dialog"), "Remove")
        expect(page.locator("#notice .error")).to_contain_text("this needs 'edit'")
        expect(page.locator("tbody")).to_contain_text("bridge")
        page.reload()
        expect(page.locator("tbody")).to_contain_text("bridge")
        context.close()


def entered(browser: Browser, service: Served, key: str) -> Page:
    """The page in a browser of its own, with a key."""
    page = browser.new_context(locale="en-GB").new_page()
    page.set_default_timeout(WAIT)
    page.goto(service.url)
    page.get_by_role("dialog").get_by_label("This service asks for a key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
    return page


def talks_of(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Conversations").get_by_role("listitem")


def test_conversations_follow_the_key_to_any_browser(browser: Browser, tmp_path: Path) -> None:
    keys, rows = zip(*(new_key(name, "ask") for name in ("ann", "bob")), strict=True)
    with served(tmp_path, ROWS, keys=rows) as service:
        first = entered(browser, service, keys[0])
        asked(first, "Who designed Orla Bridge?")
        press(first, "New conversation")
        expect(first.get_by_role("heading", name="Ask your documents")).to_be_visible()
        asked(first, "Where was Tomas Reyd born?")
        page = entered(browser, service, keys[0])
        expect(talks_of(page)).to_have_text(
            ["Where was Tomas Reyd born?", "Who designed Orla Bridge?"]
        )
        page.get_by_role("link", name="Who designed").click()
        expect(page.locator(".answer")).to_contain_text("Tomas Reyd")
        asked(page, "When did it open?")
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        other = entered(browser, service, keys[1])
        expect(talks_of(other)).to_have_count(0)
        other.goto(page.url)
        expect(other.get_by_role("alert")).to_contain_text("You have no conversation")
        for opened_page in (first, page, other):
            opened_page.context.close()


def test_a_conversation_is_renamed_rated_and_forgotten(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, ROWS) as service, opened(browser, service) as page:
        asked(page, "Where was Tomas Reyd born?")
        press(page, "New conversation")
        expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
        asked(page, "When did Orla Bridge open?")
        press(page, "Rename this conversation: When did")
        page.get_by_role("dialog").get_by_role("textbox").fill("桥梁")
        press(page.get_by_role("dialog"), "Save")
        expect(talks_of(page)).to_have_text(["桥梁", "Where was Tomas Reyd born?"])
        press(page, "Delete this conversation: Where was")
        expect(talks_of(page)).to_have_text(["桥梁"])
        helpful = page.get_by_role("button", name="Helpful", exact=True)
        helpful.click()
        expect(helpful).to_have_attribute("aria-pressed", "true")
        page.reload()
        expect(helpful).to_have_attribute("aria-pressed", "true")
        show(page, "Documents")
        press(page, "Remove: bridge")
        press(page.get_by_role("dialog"), "Remove")
        expect(page.locator("#notice")).to_contain_text("is removed")
        show(page, "Ask")
        expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
        expect(talks_of(page)).to_have_count(0)
