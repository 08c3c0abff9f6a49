"""fast-graphrag as a process of its own: reads a JSON object a line, answers with one.

`{"index": ["a text", …], "folder": "new"}` gives `{"entities", "relations", "cpu", "wall"}`;
`{"open": "folder"}` loads an index; `{"question": "…"}` gives `{"answer", "cpu", "wall"}`: the
processor and wall seconds of this process. Run by the interpreter of an environment that holds the
package; imports nothing of ours.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable
from importlib.metadata import version
from typing import Any


async def spent(work: Awaitable[Any]) -> tuple[Any, dict[str, float]]:
    """What some work gave, and what it took."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    result = await work
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result, {"cpu": cpu, "wall": time.monotonic() - started}


async def main(base_url: str, dimension: int) -> None:
    """Serve the lines of the standard input."""
    from fast_graphrag import GraphRAG
    from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService

    def graph(folder: str) -> Any:
        server = {"model": "scripted", "base_url": base_url, "api_key": "none"}
        embedding = OpenAIEmbeddingService(
            **server, embedding_dim=dimension, rate_limit_per_minute=False
        )
        return GraphRAG(
            working_dir=folder,
            domain="Encyclopedic passages about people, works, places and events.",
            example_queries="Who directed the film?\nWhere was the author of the book born?",
            entity_types=["person", "place", "organization", "work", "event"],
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(**server), embedding_service=embedding
            ),
        )

    print(json.dumps({"version": version("fast-graphrag")}), flush=True)
    opened: Any = None
    said: dict[str, Any]
    for line in sys.stdin:
        asked = json.loads(line)
        if "index" in asked:
            work = graph(asked["folder"]).async_insert(asked["index"], show_progress=False)
            (entities, relations, _), cost = await spent(work)
            said = {"entities": entities, "relations": relations, **cost}
        elif "open" in asked:
            opened = graph(asked["open"])
            said = (await spent(opened.state_manager.query_start()))[1]
        else:
            answer, cost = await spent(opened.async_query(asked["question"]))
            said = {"answer": answer.response, **cost}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
