"""An index run that kills itself: `python -m tests.faults.run_killed WORKSPACE SOURCE SERVER POINT
[begins|middle]`.

A point is a step (as it begins, as its first call of the storage returns, or as it ends), the end
of the name of a file or folder that is put in place, or a call of CALLS.
"""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import storage
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from tasks.watching import watched
from tests.settings import load_settings

STORAGE = str(Path(str(storage.__file__)).parent)
PUT_IN_PLACE = ("chroma-1", "manifest.json", "generation.duckdb", "000002", "CURRENT")
CALLS = {
    "chroma": "Collection.upsert",
    "cache": "Cache.put",
    "cached rows": "Cache.put executemany",
}


def called(frame: FrameType, event: str, about: object) -> str:
    """The function that is called or returns; one of C's by the function that calls it."""
    name = frame.f_code.co_qualname
    return f"{name} {getattr(about, '__name__', '')}" if event.startswith("c_") else name


def main(workspace: str, source: str, server: str, point: str, at: str = "") -> None:
    inside = False

    def die(reached: bool) -> None:
        if reached:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_step(step: str, starts: bool) -> None:
        nonlocal inside
        inside = starts and step == point
        die(at != "middle" and step == point and starts == bool(at))

    def on_call(frame: FrameType, event: str, about: object) -> None:
        if at == "middle":
            die(inside and event == "return" and frame.f_code.co_filename.startswith(STORAGE))
        else:
            events = {"call", "c_call"} if at else {"return", "c_return"}
            die(event in events and called(frame, event, about) == CALLS[point])

    if point in PUT_IN_PLACE:
        place = {"os.rename": 1, "open": 0}
        sys.addaudithook(
            lambda event, about: die(event in place and str(about[place[event]]).endswith(point))
        )
    if at == "middle" or point in CALLS:
        threading.setprofile(on_call)
        sys.setprofile(on_call)
    model = {"lm": "openai/m", "lm_base_url": server, "lm_api_key": "k"} if server else {}
    settings = load_settings({"workspace": workspace, "vector_store": "chroma", **model}, {})
    with watched(on_step):
        asyncio.run(build_index([source], IndexOptions(full=True), open_runtime(settings)))


if __name__ == "__main__":
    main(*sys.argv[1:])
