"""A process that holds a model in one file, for the tests: `python -m tests.engine.holding_gguf FILE FOLDER`.

It says `loading`, waits for a line, starts a scripted server, writes where it serves, and waits again.
"""

import subprocess
import sys
from pathlib import Path

from prompts.engine.gguf import Running, SharedModel
from prompts.engine.models import GgufSettings

# Lists one model to whoever has the key; ends when standard input closes.
SERVER = """
import sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers["Authorization"] == "Bearer " + sys.argv[1] and self.path == "/v1/models"
        self.send_response(200 if known else 401)
        self.end_headers()
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
sys.stdin.read()
"""


def start_scripted(_path: Path, _settings: GgufSettings, key: str) -> Running:
    """A server that lists one model and computes none."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return Running(process.stdout.readline().strip(), process)


def main() -> None:
    def start(path: Path, settings: GgufSettings, key: str) -> Running:
        print("loading", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.readline()
        return start_scripted(path, settings, key)

    model = SharedModel(Path(sys.argv[1]), GgufSettings(), start, Path(sys.argv[2]))
    print(model.served().model_dump_json(), flush=True)  # noqa: T201 - the test reads it
    sys.stdin.read()


if __name__ == "__main__":
    main()
