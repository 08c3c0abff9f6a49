"""The process of a Prefect server: `prefect`, ended also when its standard input closes.

The system closes the input however the owner dies, so that no killed command leaves a server.
"""

import runpy
import signal
import sys
import threading

from storage.system import send_to_itself


def main() -> None:
    """Run `prefect` with the arguments of this process."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    send_to_itself(signal.SIGTERM)


if __name__ == "__main__":
    main()
