"""An index run that kills itself: `python -m tests.faults.run_killed WORKSPACE SOURCE MODEL_SERVER POINT [begins]`.

A point is a step (killed as it begins, or as it ends), or the end of the name of a file or folder that is put in place.
"""

import asyncio
import os
import signal
import sys

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
from tasks.step import watched

PUT_IN_PLACE = ("seal.json", "manifest.json", "generation.duckdb", "000002", "CURRENT")


def main(workspace: str, source: str, server: str, point: str, begins: str = "") -> None:
    def die(reached: bool) -> None:
        if reached:
            os.kill(os.getpid(), signal.SIGKILL)

    if point in PUT_IN_PLACE:
        place = {"os.rename": 1, "open": 0}
        sys.addaudithook(lambda event, about: die(event in place and str(about[place[event]]).endswith(point)))
    model = {"lm": "openai/m", "lm_base_url": server, "lm_api_key": "k"} if server else {}
    settings = load_settings({"workspace": workspace, "vector_store": "chroma", **model}, {})
    with watched(lambda step, starts: die(step == point and starts == bool(begins))):
        asyncio.run(build_index([source], IndexOptions(full=True), open_runtime(settings)))


if __name__ == "__main__":
    main(*sys.argv[1:])
