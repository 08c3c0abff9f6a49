"""LightRAG's API server beside ours: the same passages, questions, clients and model server.

Its environment is made by hand: `python -m venv ENV && ENV/bin/pip install
'lightrag-hku[api]==1.5.7'`.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles

import httpx
from aiohttp import web

from benchmarks.overhead import PASSAGES, passages, questions_about
from benchmarks.runner import Cell, DataMissingError, Run, measure, option, whole_number
from benchmarks.service import indexed, served
from benchmarks.sets import write_rows
from tests.server import app, wire
from tests.server.answers import answer_step
from tests.server.faults import Reply

ROOT = Path(__file__).resolve().parents[1]
COLUMN = "<|#|>"
END = "<|COMPLETE|>"
TICKS = os.sysconf("SC_CLK_TCK")
STRIDE = 7  # so that each round has questions of all classes
KINDS = ["Person", "Location", "Organization", "Event", "Artifact"]


@measure(
    option(
        "--environment", type=Path, required=True, metavar="ENV", help="where LightRAG is installed"
    ),
    option("--passages", type=whole_number, default=100, metavar="N", help="(100)"),
    option("--clients", type=whole_number, default=10, metavar="N", help="that ask at once (10)"),
    option(
        "--questions",
        type=whole_number,
        default=4,
        metavar="N",
        help="of each client in a round (4)",
    ),
    option(
        "--rounds", type=whole_number, default=5, metavar="N", help="of each server in turn (5)"
    ),
    files=[PASSAGES],
)
def lightrag(run: Run) -> None:
    """What does a question cost LightRAG's API server, and what ours, beside the same model server
    without latency?

    Both answer in LightRAG's mode `mix`, ours in `auto` too, with no cache and no memory. The
    rounds of the servers alternate; processor seconds are those of the server's process and, apart,
    those that the model server took for it.
    """
    options, folder = run.options, run.workspace("lightrag")
    program = options.environment / "bin" / "lightrag-server"
    if not program.exists():
        raise DataMissingError(
            f"{program} is not there. Install it: pip install 'lightrag-hku[api]==1.5.7'."
        )
    rows = passages(options.data, options.passages)
    questions = list(
        dict.fromkeys(
            question for _, question in questions_about([row["title"] for row in rows], 40)
        )
    )
    each = options.clients * options.questions
    with _models() as (models, model_process):
        key = {"LM": "openai/m", "EMBEDDING": "openai/m"}
        for role, name in key.items():
            os.environ |= {f"TRELLIS_{role}": name, f"TRELLIS_{role}_BASE_URL": f"{models}/v1"}
            os.environ |= {f"TRELLIS_{role}_API_KEY": "none"}
        os.environ |= {
            "TRELLIS_MEMORY": "off",
            "TRELLIS_ANSWER_CACHE": "false",
            "TRELLIS_CONCURRENCY": "16",
        }
        write_rows(rows, folder / "corpus.jsonl")
        with (
            served(folder / "ws") as (ours, our_process),
            _lightrag(program, folder, models) as (theirs, process),
        ):
            index: dict[str, dict[str, Cell]] = {}
            for name, pid, work in (
                ("LightRAG", process.pid, _put(theirs, rows)),
                ("Trellis", our_process.pid, indexed(ours, folder / "corpus.jsonl")),
            ):
                index[name] = _spent([pid, model_process.pid], lambda work=work: asyncio.run(work))  # type: ignore[misc]
            run.table("index run", index)
            systems: Mapping[str, tuple[str, Callable[[str], dict[str, object]], int]] = {
                "LightRAG mix": (
                    f"{theirs}/query",
                    lambda text: {"query": text, "mode": "mix"},
                    process.pid,
                ),
                "Trellis mix": (
                    f"{ours}/api/v1/ask",
                    lambda text: {"question": text, "mode": "mix"},
                    our_process.pid,
                ),
                "Trellis auto": (
                    f"{ours}/api/v1/ask",
                    lambda text: {"question": text},
                    our_process.pid,
                ),
            }
            rounds: dict[str, list[dict[str, Cell]]] = {name: [] for name in systems}
            for number in range(options.rounds + 1):
                for name, (address, body, pid) in systems.items():
                    asked = [
                        questions[(number * each + at) * STRIDE % len(questions)]
                        for at in range(each)
                    ]
                    figures = _round(
                        address,
                        [body(text) for text in asked],
                        options.clients,
                        pid,
                        model_process.pid,
                    )
                    rounds[name] += (
                        [{**figures, **_calls(models, each)}] if number else []
                    )  # the first one warms up
            run.table(
                "questions, medians of the rounds",
                {name: _medians(own) for name, own in rounds.items()},
            )


def _round(
    address: str, bodies: Sequence[dict[str, object]], clients: int, pid: int, models: int
) -> dict[str, Cell]:
    """What clients got that share out the questions, and what a question took."""
    times: list[float] = []
    failed: list[str] = []

    async def load() -> None:
        async with httpx.AsyncClient(timeout=600, trust_env=False) as http:

            async def client(own: Sequence[dict[str, object]]) -> None:
                for body in own:
                    started = time.monotonic()
                    response = await http.post(address, json=body)
                    times.append(time.monotonic() - started)
                    found = response.json() if response.is_success else {}
                    if not (found.get("response") or found.get("answer")):
                        failed.append(response.text)

            await asyncio.gather(*(client(bodies[at::clients]) for at in range(clients)))

    spent = _spent([pid, models], lambda: asyncio.run(load()))
    seconds = {
        name: float(value or 0) / len(bodies) for name, value in spent.items() if name != "wall s"
    }
    return {
        "errors": len(failed),
        **{f"{name} each": value for name, value in seconds.items()},
        "a second": len(bodies) / float(spent["wall s"] or 1),
        "p50 s": median(times),
        "p95 s": quantiles(times, n=20)[-1],
    }


def _medians(rounds: Sequence[Mapping[str, Cell]]) -> dict[str, Cell]:
    figures: dict[str, Cell] = {
        name: median(float(row[name] or 0) for row in rounds) for name in rounds[0]
    }
    return {**figures, "errors": sum(int(row["errors"] or 0) for row in rounds)}


def _spent(pids: Sequence[int], work: Callable[[], object]) -> dict[str, Cell]:
    """Seconds of the wall, and of the processor in the server and in the model server."""
    before, started = [_cpu(pid) for pid in pids], time.monotonic()
    work()
    server, models = (_cpu(pid) - first for pid, first in zip(pids, before, strict=True))
    return {
        "server cpu s": server,
        "model server cpu s": models,
        "wall s": time.monotonic() - started,
    }


def _cpu(pid: int) -> float:
    """Seconds of the processor of a process, and of those that it has started and that have
    ended.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def _calls(models: str, questions: int) -> dict[str, Cell]:
    """The calls and tokens of a question, by the model server's counters, which begin anew."""
    found = httpx.get(f"{models}/stats", trust_env=False).json()
    httpx.post(f"{models}/reset", json={}, trust_env=False)
    calls = sum(row["calls"] for row in found["steps"].values())
    return {"calls each": calls / questions, "tokens in each": found["prompt_tokens"] / questions}


# --- the servers ----------------------------------------------------------------------------------


@contextmanager
def _process(
    words: Sequence[str], folder: Path, log: Path, **environment: str
) -> Iterator["subprocess.Popen[str]"]:
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603 -- Python itself, and the program that was named
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _models() -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The model server that answers both: its address, and its process."""
    with _process([sys.executable, "-m", __name__], ROOT, Path(os.devnull)) as process:
        yield process.stdout.readline().strip() if process.stdout else "", process


@contextmanager
def _lightrag(
    program: Path, folder: Path, models: str
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """LightRAG's API server on an empty store, without caches, reranker and a second look for
    entities.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {
        "HOST": "127.0.0.1",
        "PORT": port,
        "WORKING_DIR": str(folder / "store"),
        "LOG_LEVEL": "WARNING",
    }
    environment |= {
        "INPUT_DIR": str(folder / "inputs"),
        "ENABLE_LLM_CACHE": "false",
        "RERANK_BINDING": "null",
    }
    environment |= {
        "MAX_GLEANING": "0",
        "MAX_ASYNC": "16",
        "EMBEDDING_FUNC_MAX_ASYNC": "16",
        "EMBEDDING_DIM": "384",
    }
    for role in ("LLM", "EMBEDDING"):
        environment |= {
            f"{role}_BINDING": "openai",
            f"{role}_BINDING_HOST": f"{models}/v1",
            f"{role}_MODEL": "m",
        }
        environment[f"{role}_BINDING_API_KEY"] = "none"
    # Its tokenizer would be fetched from the network; litellm, which asks the network when
    # imported, brings the file.
    brought = find_spec("litellm")
    tokenizers = (
        Path(brought.origin if brought and brought.origin else ".").parent
        / "litellm_core_utils/tokenizers"
    )
    environment["TIKTOKEN_CACHE_DIR"] = str(tokenizers)
    with _process([str(program)], folder, folder / "log", **environment) as process:
        for _ in range(1200):
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).is_success:
                    break
            if process.poll() is not None:
                raise DataMissingError(
                    f"LightRAG's server ended: {(folder / 'log').read_text(encoding='utf-8')}"
                )
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}", process


async def _put(address: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Have LightRAG index the passages, and wait for the end."""
    texts = {"texts": [f"{row['title']}\n{row['text']}" for row in rows]}
    async with httpx.AsyncClient(base_url=address, timeout=600, trust_env=False) as http:
        names = {"file_sources": [f"{row['id']}.txt" for row in rows]}
        (await http.post("/documents/texts", json={**texts, **names})).raise_for_status()
        counts: dict[str, int] = {}
        while counts.get("processed", 0) < len(rows):
            await asyncio.sleep(1)
            counts = (await http.get("/documents/status_counts")).json()["status_counts"]
            if counts.get("failed"):
                raise RuntimeError(f"LightRAG failed at {counts['failed']} passages.")


# --- the model server -----------------------------------------------------------------------------


class BothServer(app.ModelServer):
    """The scripted model server, which answers LightRAG's prompts by the same rules as ours."""

    async def _chat(self, call: app.Call) -> web.StreamResponse:
        if wire.step_of(call.body) is not None:
            return await super()._chat(call)
        reply = Reply(lightrag_answer(wire.texts_of(call.body)))
        call.count(reply)
        return web.json_response(app.completion(call, reply))


def lightrag_answer(texts: Sequence[str]) -> str:
    """What a model would say to the messages of LightRAG 1.5.7: entities and relations, keywords,
    or an answer.
    """
    whole, last = "\n".join(texts), texts[-1]
    if "---Input Text---" in last:
        passage = last.split("---Input Text---", 1)[1].strip().strip("`").strip()
        found = answer_step("extract", {"passage": passage, "kinds": KINDS})
        rows = [
            ["entity", row["name"], row["kind"], row["description"] or row["name"]]
            for row in found["entities"]
        ]
        rows += [
            [
                "relation",
                row["source"],
                row["target"],
                row["predicate"],
                row["description"] or row["predicate"],
            ]
            for row in found["relations"]
        ]
        return "\n".join([*map(COLUMN.join, rows), END])
    if "Description List" in whole:
        return "One of several descriptions."
    if "User Query:" in whole and "high_level_keywords" in whole:
        question = whole.rpartition("User Query:")[2].split("---Output---")[0].strip()
        found = answer_step("keywords", {"question": question})
        return json.dumps(
            {"high_level_keywords": found["high"], "low_level_keywords": found["low"]}
        )
    passages = re.findall(r'"content": ?("(?:[^"\\]|\\.)*")', whole)
    evidence = "\n\n".join(
        f"[{place}] t: {json.loads(text)}" for place, text in enumerate(passages, 1)
    )
    return (
        answer_step("answer", {"question": last, "evidence": evidence})["answer"]
        or "The documents do not say."
    )


async def _serve() -> None:
    runner = web.AppRunner(
        BothServer().app(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
