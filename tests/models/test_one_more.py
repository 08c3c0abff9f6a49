"""One document more costs its own passages on a model, and little else."""

import shutil
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.settings import load_settings
from storage.graph_records import Report
from storage.run_records import IndexReport
from tests.server.client import Server

CORPUS = Path(__file__).resolve().parents[2] / "examples" / "corpus"
MORE = (
    "# Sluice Lane\n\nJonas Oke inspected Sluice Lane Bridge in 2021. Petra Valk, a diver from Norrick, assisted him."
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    shutil.copytree(CORPUS, folder, ignore=shutil.ignore_patterns("*.pdf", "*.docx", "*.pptx", "*.xlsx"))
    return folder


def runtime(workspace: Path, server: Server) -> Runtime:
    given = {
        "workspace": workspace, "lm": "openai/scripted", "lm_base_url": server.base_url, "lm_api_key": "k",
        "embedding": "none",
    }  # fmt: skip
    return open_runtime(load_settings(given, {}))


async def indexed(corpus: Path, workspace: Path, server: Server) -> tuple[IndexReport, dict[str, Report]]:
    opened = runtime(workspace, server)
    report = await build_index([corpus], IndexOptions(), opened)
    with opened.workspace.read() as generation:
        return report, {one.community: one for one in generation.communities.reports()}


async def test_one_document_more_asks_about_itself_alone(corpus: Path, tmp_path: Path, model_server: Server) -> None:
    first, before = await indexed(corpus, tmp_path / "ws", model_server)
    model_server.reset()
    (corpus / "sluice-lane.md").write_text(MORE, "utf-8")
    report, after = await indexed(corpus, tmp_path / "ws", model_server)
    steps = report.usage.by_step
    assert steps["extract"].calls == 1
    assert report.usage.calls <= 1 + 3, {name: step.calls for name, step in steps.items()}
    assert report.usage.input_tokens < first.usage.input_tokens / 5, "the corpus is small: a report is a tenth of it"
    assert model_server.stats()["calls"] == report.usage.calls
    told = {(one.title, one.summary) for one in before.values()}
    written = [one for one in after.values() if (one.title, one.summary) not in told]
    assert len(written) <= 3 < len(after) / 5, [one.title for one in written]


async def test_a_second_run_asks_nothing(corpus: Path, tmp_path: Path, model_server: Server) -> None:
    await indexed(corpus, tmp_path / "ws", model_server)
    model_server.reset()
    report, _ = await indexed(corpus, tmp_path / "ws", model_server)
    assert not report.published
    assert model_server.stats()["calls"] == 0
