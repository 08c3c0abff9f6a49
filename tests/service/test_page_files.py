"""The page's files: sent with a strict policy, also without a key, and in both languages."""

import re

from flows.service.page_files import FOLDER, PATHS
from tests.service.conftest import Start

SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js")}


def test_without_a_key_only_the_page_is_sent(start: Start) -> None:
    client = start(keys=("somebody:ask:" + "0" * 64,))
    for path in PATHS:
        response = client.get(path)
        assert response.status_code == 200
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/v1/workspaces").status_code == 401
    for path in ("/..%2fapp.py", "/%2e%2e/app.py", "/page_files.py", "/.env"):
        assert client.get(path).status_code in {401, 404}


def test_nothing_foreign_is_loaded_and_no_text_becomes_html() -> None:
    for name, text in SCRIPTS.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), name
        assert not re.search(r"""(?:from|import\(|fetch\()\s*["'`]https?:""", text), name
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    style = (FOLDER / "style.css").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//", page.replace("//", "", page.count("<!--")))
    assert not re.search(r"url\(|@import", style)
    assert "<script>" not in page


def test_every_word_is_there_in_english_and_chinese() -> None:
    words = dict(re.findall(r'^  "?([\w-]+)"?: \[(.*)\],$', SCRIPTS["words.js"], re.MULTILINE))
    for key, both in words.items():
        assert len(re.findall(r'"(?:[^"\\]|\\.)+"', both)) == 2, key
    used = {key for text in SCRIPTS.values() for key in re.findall(r'\bt\("([\w-]+)"', text)}
    assert used <= words.keys()
    assert len(words) > 150
