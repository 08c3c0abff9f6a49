"""A person asks in Prefect's form and reads the answer there; no page asks another host for anything."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.prefect.browser import browser, hosts_asked
from tests.prefect.conftest import Api, wait_for

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = [pytest.mark.prefect, pytest.mark.slow]
QUESTION = "Who designed Orla Bridge?"


def reach(chrome: "Chrome", path: str) -> "WebElement":
    """The first element of an XPath that a person could click."""
    from selenium.webdriver.support.expected_conditions import element_to_be_clickable
    from selenium.webdriver.support.wait import WebDriverWait

    found: WebElement = WebDriverWait(chrome, 30).until(element_to_be_clickable(("xpath", path)))
    return found


def fill(chrome: "Chrome", name: str, text: str) -> None:
    """Type into the field of a parameter; one that may be left empty is told first that it is not."""
    field = f"//*[contains(concat(' ', @class, ' '), ' p-label ')][.//label[starts-with(normalize-space(), '{name}')]]"
    if "Optional" in reach(chrome, f"{field}//label").text:
        reach(chrome, f"{field}//button[normalize-space()='str']").click()
    reach(chrome, f"{field}//textarea").send_keys(text)


def test_a_question_typed_into_the_form_is_answered(worker: Api, workspace: Path, tmp_path: Path) -> None:
    known = {run["id"] for run in worker.runs("query/on-demand")}
    form = f"{worker.ui}/deployments/deployment/{worker.deployment('query/on-demand')['id']}/run"
    with browser(tmp_path / "profile") as chrome:
        chrome.get(form)
        reach(chrome, "//button[@type='submit']")
        fill(chrome, "question", QUESTION)
        fill(chrome, "workspace", str(workspace))
        chrome.save_screenshot(str(tmp_path / "form.png"))
        chrome.find_element("xpath", "//button[@type='submit']").click()
        started = wait_for(
            lambda: [run for run in worker.runs("query/on-demand") if run["id"] not in known], "the run to begin"
        )
        over = worker.finished(started[0]["id"])
        assert over["parameters"]["question"] == QUESTION
        answer = next(one for one in worker.artifacts(over["id"]) if one["key"] == "answer")
        chrome.get(f"{worker.ui}/artifacts/artifact/{answer['id']}")
        wait_for(lambda: "Tomas Reyd" in chrome.find_element("tag name", "body").text, "the answer on the page", 30)
        chrome.save_screenshot(str(tmp_path / "answer.png"))
        assert hosts_asked(chrome) == {"127.0.0.1"}
