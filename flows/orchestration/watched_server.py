"""A Prefect server that ends with the process that started it, also where that one is killed.

A script, not a module to import: its arguments are those of the command `prefect`, and it ends when its standard input
closes. The system closes it with whoever holds the other end, whatever that one dies of.
"""

import os
import runpy
import signal
import sys
import threading
import time

PATIENCE = 5.0  # seconds for a server to close by itself; browsers keep connections open


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)
