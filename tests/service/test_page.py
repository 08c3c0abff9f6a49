"""The page: Chromium drops a file, asks, opens a citation's source, merges and undoes, and looks
into every room.

Nothing waits for a time: each step waits for what it needs to see.
"""

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
from playwright.sync_api import Browser, FilePayload, Page, Position, Route, expect

pytestmark = pytest.mark.slow
WAIT = 300_000  # milliseconds
expect.set_options(timeout=WAIT)
ROOT = Path(__file__).resolve().parents[2]
EVIL = (
    '<img src=x onerror="document.body.dataset.ran=1"><script>document.body.dataset.ran=1</script>'
)
ROWS = (
    {
        "id": "bridge",
        "title": "Orla Bridge",
        "text": "Orla Bridge was designed by Tomas Reyd. It opened in 1931.",
    },
    {
        "id": "reyd",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin. He studied under Ana Korb in Velin.",
    },
    {
        "id": "korb",
        "title": "Ana Korb",
        "text": "Ana Korb taught in Velin. A. Korb also built Holm Light in 1902.",
    },
    {"s": "Ana Korb", "p": "taught", "o": "Tomas Reyd"},
    {"s": "A. Korb", "p": "built", "o": "Holm Light"},
    {"s": "Tomas Reyd", "p": "designed", "o": "Orla Bridge"},
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("page"), ROWS) as service:
        yield service


@contextmanager
def opened(
    browser: Browser, service: Served, width: int = 1200, **context: object
) -> Iterator[Page]:
    """A page that fails the test for an error in its console, and for a request to anywhere but the
    service.
    """
    inside = browser.new_context(
        viewport={"width": width, "height": 900},
        locale="en-GB",
        **context,  # type: ignore[arg-type]
    )
    inside.set_default_timeout(WAIT)
    page = inside.new_page()
    errors: list[str] = []
    strange: list[str] = []
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request",
        lambda request: (
            strange.append(request.url) if not request.url.startswith(service.url) else None
        ),
    )
    page.goto(service.url)
    yield page
    assert not errors
    assert not strange
    assert page.locator("body").get_attribute("data-ran") is None
    inside.close()


def asked(page: Page, question: str) -> None:
    """Ask, and wait for the whole answer."""
    turns = page.locator(".turn").count()
    page.get_by_role("textbox", name="Your question").fill(question)
    page.keyboard.press("Enter")
    expect(page.locator(".turn").nth(turns).locator(".foot")).to_be_visible()


def test_an_answer_opens_its_source_at_the_marked_place_and_stays_over_a_reload(
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
        page.get_by_text("How this answer came about").click()
        expect(page.locator(".way dl")).to_contain_text("Generation")
        asked(page, "Where was he born?")
        expect(page.locator(".turn").last.locator(".answer")).to_contain_text("Velin")
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        page.get_by_role("button", name="Not helpful").last.click()
        page.get_by_placeholder("What should it have said?").last.fill("In the town of Velin.")
        page.get_by_role("button", name="Save").last.click()
        expect(page.locator("#notice")).to_contain_text("kept for evaluation")
    (rated,) = service.feedback()
    assert (rated.helpful, rated.note, rated.history[0]) == (
        False,
        "In the town of Velin.",
        "Who designed Orla Bridge?",
    )
    assert rated.as_question.answers == ("In the town of Velin.",)


def test_a_dropped_file_is_indexed_found_compared_and_forgotten(
    browser: Browser, tmp_path: Path
) -> None:
    manual = (ROOT / "examples/corpus/manuals/kestrel-bearing-manual.pdf").read_bytes()
    with served(tmp_path, ROWS) as service, opened(browser, service) as page:
        page.get_by_role("link", name="Documents").click()
        expect(page.locator("tbody tr")).not_to_have_count(0)
        page.locator("#files").set_input_files(
            FilePayload(name="manual.pdf", mimeType="application/pdf", buffer=manual)
        )
        expect(page.locator(".card")).to_contain_text("1 added")
        expect(page.locator("tbody")).to_contain_text("manual.pdf")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(".diff")).to_contain_text("documents")
        page.get_by_role("link", name="Ask").click()
        asked(page, "How are the rocker bearings greased?")
        page.locator(".cite").first.click()
        expect(page.locator("#source header")).to_contain_text(re.compile(r"manual\.pdf, page \d"))
        page.get_by_role("link", name="Documents").click()
        page.get_by_role("button", name=re.compile(r"Forget: .*manual\.pdf")).click()
        page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        expect(page.locator("#notice")).to_contain_text("is forgotten")
        expect(page.locator("tbody")).not_to_contain_text("manual.pdf")
        page.get_by_role("link", name="Runs").click()
        expect(page.locator("tbody")).to_contain_text("forget")


def test_an_entity_leads_to_its_sources_and_is_merged_and_parted_again(
    browser: Browser, tmp_path: Path
) -> None:
    with served(tmp_path, ROWS) as service, opened(browser, service) as page:
        page.get_by_role("link", name="Graph").click()
        page.get_by_role("link", name="Ana Korb", exact=True).press("Enter")
        details = page.locator(".details")
        expect(details.get_by_role("heading", name="Ana Korb")).to_be_visible()
        details.locator("summary").first.click()
        details.locator(".quote").first.click()
        expect(page.locator("mark.here")).to_be_in_viewport()
        page.keyboard.press("Escape")

        details.get_by_role("button", name="Merge").click()
        page.get_by_role("dialog").get_by_label("Other name").fill("A. Korb")
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
        expect(page.locator("#notice")).to_contain_text("Kept")
        expect(details).to_contain_text("Also: A. Korb")
        expect(details).to_contain_text("Holm Light")
        details.get_by_role("button", name="Undo").click()
        expect(page.locator("#notice")).to_contain_text("Undone")
        expect(details).to_contain_text("None yet.")

        details.get_by_role("button", name="Split").click()
        page.get_by_role("dialog").get_by_role("textbox").fill("reyd")
        page.get_by_role("dialog").get_by_role("button", name="Split").click()
        expect(details.locator("h2", has_text="Ana Korb")).to_have_count(2)
        details.get_by_role("button", name="Undo").first.click()
        expect(page.locator("#notice")).to_contain_text("Undone")
        expect(details.locator("h2", has_text="Ana Korb")).to_have_count(1)

        page.get_by_label("Path to").fill("Orla Bridge")
        page.get_by_role("button", name="Show the path").click()
        expect(details.get_by_role("heading", name="Ana Korb … Orla Bridge")).to_be_visible()
        expect(details).to_contain_text("designed")

        drawn = httpx.get(f"{service.url}/api/v1/picture").json()["nodes"]
        (node,) = (one for one in drawn if one["name"] == "Holm Light")
        page.get_by_role("button", name="Overview").click()
        expect(details).to_contain_text("Choose an entity")
        canvas = page.locator("canvas.map")
        expect(page.get_by_role("link", name="Holm Light")).to_be_attached()
        box = canvas.bounding_box()
        assert box is not None
        x, y = 46 + node["x"] * (box["width"] - 92), 46 + node["y"] * (box["height"] - 92)
        canvas.click(position=Position(x=x, y=y))
        expect(details.get_by_role("heading", name="Holm Light")).to_be_visible()


def test_a_page_that_is_drawn_late_leaves_the_keyboard_where_it_was_moved_to(
    browser: Browser, service: Served
) -> None:
    with opened(browser, service) as page:
        question = page.get_by_role("textbox", name="Question")
        expect(question).to_be_focused()
        page.get_by_role("link", name="Runs").click()
        expect(page.locator("main")).to_contain_text(re.compile("History|No run yet"))
        held: list[Route] = []
        # Playwright marks its handlers.
        page.route("**/about*", lambda route: held.append(route))  # noqa: PLW0108
        with page.expect_request("**/about*"):
            page.get_by_role("link", name="Ask").click()
        page.get_by_role("link", name="Reports").focus()
        for route in held:
            route.continue_()
        expect(question).to_be_visible()
        expect(page.get_by_role("link", name="Reports")).to_be_focused()


def test_reports_runs_and_health_are_shown_and_reached_by_keys(
    browser: Browser, service: Served
) -> None:
    with opened(browser, service) as page:
        expect(page.locator("main")).to_contain_text(
            "generation 1"
        )  # until then the bar may be drawn again
        page.keyboard.press("Tab")
        page.get_by_role("link", name="Reports").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".treemap button").first).to_be_visible()
        page.locator(".tree .name").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".reports h1")).to_be_visible()
        page.locator(".reports .quote").first.click()
        expect(page.locator("mark.here")).to_be_in_viewport()
        page.get_by_role("link", name="Runs").click()
        expect(page.locator("main")).to_contain_text(re.compile("History|No run yet"))
        page.get_by_role("link", name="Health").click()
        expect(page.locator("main")).to_contain_text("Everything works.")


def test_html_and_script_in_documents_titles_questions_and_names_do_not_run(
    browser: Browser, tmp_path: Path
) -> None:
    evil = (
        {
            "id": f"e{EVIL}",
            "title": f"Title {EVIL}",
            "text": f"{EVIL} Orla Bridge was designed by Tomas Reyd. {EVIL}",
        },
        {"s": f"Ana {EVIL}", "p": EVIL, "o": "Orla Bridge"},
    )
    with served(tmp_path, evil) as service, opened(browser, service) as page:
        asked(page, f"Who designed Orla Bridge? {EVIL}")
        expect(page.locator(".turn h2")).to_contain_text("<img src=x")
        page.locator(".cite").first.click()
        expect(page.locator("#source .text")).to_contain_text("<script>")
        for tab in ("Documents", "Graph", "Reports", "Runs", "Health"):
            page.get_by_role("link", name=tab).click()
            expect(page.locator("main .empty", has_text="Loading")).to_have_count(0)
        page.get_by_role("link", name="Graph").click()
        page.get_by_label("Find an entity").fill(f"Ana {EVIL}")
        page.get_by_role("button", name="Open").click()
        expect(page.locator(".details h2")).to_contain_text("<img")
        assert page.locator("main img, #source img, main script").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (900, "light"), (1600, "dark")])
def test_every_room_fits_its_width(
    browser: Browser, service: Served, width: int, scheme: str
) -> None:
    # `evaluate_all` is a script of a string, which the page's policy forbids like any other
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
        page.get_by_role("button", name="中文").click()
        expect(page.get_by_role("link", name="图谱")).to_be_visible()
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.reload()
        expect(page.get_by_role("link", name="图谱")).to_be_visible()


def test_a_service_with_keys_asks_for_one_and_takes_no_other(
    browser: Browser, tmp_path: Path
) -> None:
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
        page.get_by_role("link", name="Documents").click()
        page.get_by_role("button", name="Forget: bridge").click()
        page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        expect(page.locator("#notice .error")).to_contain_text("this needs 'edit'")
        expect(page.locator("tbody")).to_contain_text("bridge")
        page.reload()
        expect(page.locator("tbody")).to_contain_text("bridge")
        context.close()


def test_what_failed_is_tried_again_and_an_answer_is_stopped(
    browser: Browser, scripted: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    scripted.misbehave({"step": "extract", "text": "in 1905", "kind": "refusal"})
    with (
        served(tmp_path, [row(number) for number in range(12)]) as service,
        opened(browser, service) as page,
    ):
        page.get_by_role("link", name="Documents").click()
        failed = page.locator("section", has_text="What failed")
        expect(failed.locator("li")).to_contain_text("d5")
        scripted.misbehave()
        failed.get_by_role("button", name="Try again").click()
        expect(page.locator("#notice")).to_contain_text("1 of 1 succeeded")
        expect(page.locator("section", has_text="What failed")).to_have_count(0)
        page.get_by_role("link", name="Runs").click()
        expect(page.locator("tbody tr", has_text="retry")).to_contain_text("completed")

        scripted.misbehave(
            {"step": "extract", "kind": "hang", "seconds": 600}
        )  # the run cannot end by itself
        page.get_by_role("link", name="Documents").click()
        late = FilePayload(
            name="late.txt", mimeType="text/plain", buffer=b"Late Bridge was designed by Ilse Marr."
        )
        page.locator("#files").set_input_files(late)
        card = page.locator(".card")
        expect(card).to_contain_text("Extracting entities")
        card.get_by_role("button", name="Cancel").click()
        expect(card).to_contain_text("Cancelled. What was there before stays.")
        expect(page.locator("tbody")).to_contain_text("d5")
        expect(page.locator("tbody")).not_to_contain_text("late.txt")
        (run,) = httpx.get(f"{service.url}/api/v1/index-runs").json()
        assert run["state"] == "cancelled"
        scripted.misbehave()

        page.get_by_role("link", name="Ask", exact=True).click()
        scripted.settle(latency_ms=WAIT)
        page.get_by_role("textbox", name="Your question").fill("Who planned Velin Town?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".turn [role=alert]")).to_contain_text("Stopped.")
        scripted.settle(latency_ms=0)
        page.get_by_role("textbox", name="Your question").fill("Who planned Velin Town?")
        page.keyboard.press("Enter")
        expect(page.locator(".turn .foot")).to_be_visible()


# What a browser makes of files that are dropped on a page.
DROP = """text => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "orla.txt", {type: "text/plain"}));
    return transfer;
}"""


def test_an_empty_workspace_says_how_to_begin_and_answers_from_a_dropped_text(
    browser: Browser, tmp_path: Path
) -> None:
    # the dropped file is made by a script of a string, which the page's policy forbids like any
    # other
    with (
        served_workspace(tmp_path / "ws") as service,
        opened(browser, service, bypass_csp=True) as page,
    ):
        for tab in ("Graph", "Reports", "Ask"):
            page.get_by_role("link", name=tab, exact=True).click()
            expect(page.locator("main")).to_contain_text("Nothing is indexed yet.")
        page.get_by_role("link", name="Add documents").click()
        transfer = page.evaluate_handle(DROP, ROWS[0]["text"])
        page.locator(".drop").dispatch_event("drop", {"dataTransfer": transfer})
        expect(page.locator(".card")).to_contain_text("1 added")
        page.get_by_role("button", name="Update from sources (1)").click()
        expect(page.locator(".card")).to_contain_text("0 added, 0 changed, 0 removed, 1 as before")
        page.get_by_role("link", name="Ask", exact=True).click()
        asked(page, "Who designed Orla Bridge?")
        expect(page.locator(".answer")).to_contain_text("Tomas Reyd")
