"""A language model in one file as a role's model: `gguf/PATH`, computed by llama.cpp.

llama.cpp runs in a process of its own, which ends with the one that started it: loading a model
stops every thread of a Python process, and an error in llama.cpp ends the process. It speaks
OpenAI's protocol on a port of this machine that the system chooses, and asks for a key that no
other user of the machine knows.

Processes of one user that want the same file with the same settings share one model. Whoever holds
the lock on a file in the user's temporary folder has started it, and writes the address into the
file. The system frees the lock when its holder ends, however it ends; the next that asks takes
over.
"""

import fcntl
import hashlib
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from prompts.engine.errors import ModelMisconfigured, ModelUnavailable
from prompts.engine.gguf_process import Order
from prompts.engine.models import GgufSettings
from prompts.engine.providers import GGUF

_LOADING = 600.0  # seconds that a model may take to be read from a slow disk
_SILENT = 15.0  # seconds in which a model that is ready must answer
_PAUSE = 0.2
_NO_SHARING = "Set TMPDIR to a folder that is yours."


class Served(BaseModel):
    """Where a model is served, as the lock's file names it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    url: str
    key: str


@dataclass(frozen=True, slots=True)
class Running:
    """A model that this process has started, and the process that computes it."""

    url: str
    process: subprocess.Popen[str]

    def end(self) -> None:
        """End the process that computes it."""
        self.process.kill()
        self.process.wait()


# Starts a model with a key for its server.
Start = Callable[[Path, GgufSettings, str], Running]


def file_of(name: str) -> Path:
    """The file of the model `gguf/PATH`; ModelMisconfigured where it is no GGUF file."""
    path = Path(name.removeprefix(GGUF)).expanduser()
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except OSError as error:
        raise ModelMisconfigured(
            f"The model file {str(path)!r} cannot be read: {error.strerror}.",
            f"Write {GGUF}PATH, the path of a .gguf file: whole, or from the folder that you are in.",
        ) from error
    if begins != b"GGUF":
        raise ModelMisconfigured(
            f"{str(path)!r} is not a GGUF file: it begins with {begins!r}.",
            "Name a model in llama.cpp's form (.gguf). A folder of safetensors is transformers/PATH.",
        )
    return path.resolve()


def address_of_file(name: str) -> str:
    """The model's name and when its file was written: an earlier file gave other answers."""
    return f"{name}@{file_of(name).stat().st_mtime_ns}"


@cache
def shared_model(address: str, settings: GgufSettings) -> "SharedModel":
    """The one of this process for the file with this `address_of_file`."""
    return SharedModel(file_of(address.rpartition("@")[0]), settings)


class SharedModel:
    """A file with its settings, computed once for all processes of this user.

    `start` starts it, `folder` holds the locks, and `patience` is how many seconds a process that
    has written an address may leave it unanswered.
    """

    def __init__(
        self,
        path: Path,
        settings: GgufSettings,
        start: "Start | None" = None,
        folder: Path | None = None,
        patience: float = _SILENT,
    ) -> None:
        written = path.stat()
        means = f"{path}\0{written.st_size}\0{written.st_mtime_ns}\0{settings}"
        name = hashlib.sha256(means.encode()).hexdigest()[:16]
        folder = folder or folder_of_user(Path(tempfile.gettempdir()))
        self.lock_file = folder / f"{path.stem}-{name}.json"
        self._path = path
        self._settings = settings
        self._start = start or start_llama_cpp
        self._patience = patience
        self._turn = threading.Lock()
        self._descriptor = -1
        self._running: Running | None = None
        self._served: Served | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this process has started it."""
        return self._descriptor >= 0

    def served(self) -> Served:
        """Where it is served now; it is started here where no other process serves it.

        Raises ModelUnavailable where the process that holds the lock does not serve.
        """
        with self._turn:
            told: Served | None = None
            since = time.monotonic()
            while not (self.is_ours or self._take_lock()):
                found = self._read()
                if found is not None and _answers(found):
                    return found
                if found != told:
                    told, since = found, time.monotonic()
                self._check_patience(told, time.monotonic() - since)
                time.sleep(_PAUSE)
            return self._started()

    def close(self) -> None:
        """End the model where this process has started it, and leave it to others to start."""
        with self._turn:
            if self._running is not None:
                self._running.end()
            self._release()

    def _take_lock(self) -> bool:
        descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)  # what a dead holder has written
        self._descriptor = descriptor
        return True

    def _release(self) -> None:
        self._running = self._served = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _started(self) -> Served:
        if self._running is None or self._running.process.poll() is not None:
            os.ftruncate(self._descriptor, 0)
            key = secrets.token_urlsafe(24)
            try:
                self._running = self._start(self._path, self._settings, key)
            except BaseException:
                self._release()
                raise
            self._served = Served(pid=os.getpid(), url=self._running.url, key=key)
            os.pwrite(self._descriptor, self._served.model_dump_json().encode(), 0)
        assert self._served is not None  # noqa: S101 - set with the running model
        return self._served

    def _read(self) -> Served | None:
        """What the holder has written; None while it loads the model."""
        try:
            return Served.model_validate_json(self.lock_file.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _check_patience(self, told: Served | None, waited: float) -> None:
        if told is not None and waited > self._patience:
            raise ModelUnavailable(
                f"Process {told.pid} serves {self._path} at {told.url}, and nothing answers there.",
                f"End that process, or remove {self.lock_file}.",
            )
        if waited > _LOADING:
            raise ModelUnavailable(
                f"Another process has been loading {self._path} for {waited:.0f} s.",
                f"Run again later; where that process hangs, end it or remove {self.lock_file}.",
            )


def start_llama_cpp(path: Path, settings: GgufSettings, key: str) -> Running:
    """Load the model in a process of its own. Raises ModelMisconfigured where that cannot be."""
    if find_spec("xllamacpp") is None:
        raise ModelMisconfigured(
            f"{GGUF}{path} needs llama.cpp, which is not installed.",
            "Install it: pip install 'trellis-rag[local]'.",
        )
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            # -P: a folder `prompts` where the user stands is not ours
            [sys.executable, "-P", "-m", "prompts.engine.gguf_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # an interrupt from the keyboard is for the one who started it
        )
        try:
            url = _ordered(process, Order(path=str(path), settings=settings, key=key))
            if not url:
                process.wait()
                said.seek(0)
                raise _not_loaded(path, said.read(), process.returncode)
            _check_context(path, settings.context, url, key)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return Running(url, process)


def _ordered(process: subprocess.Popen[str], order: Order) -> str:
    """The address that the process serves at; empty where it has ended instead."""
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    assert process.stdout is not None  # noqa: S101
    with suppress(BrokenPipeError):
        process.stdin.write(f"{order.model_dump_json()}\n")
        process.stdin.flush()  # it stays open: the process ends when it closes
    return process.stdout.readline().strip()


def _not_loaded(path: Path, said: str, code: int) -> ModelMisconfigured:
    """The error of a model that llama.cpp did not load, with the first error that it wrote."""
    errors = [line.partition(" E ")[2] for line in said.splitlines() if " E " in line]
    last = said.strip().splitlines()[-1:]
    words = next(iter([*errors, *last]), f"its process ended with {code}")
    return ModelMisconfigured(
        f"llama.cpp {version('xllamacpp')} cannot load {path}: {words}",
        "Where the file may be cut, compare its SHA-256 with its publisher's; where memory is short, "
        "lower TRELLIS_GGUF_CONTEXT or TRELLIS_GGUF_SLOTS; where the model is newer, run "
        "pip install -U xllamacpp.",
    )


def _check_context(path: Path, context: int, url: str, key: str) -> None:
    """ModelMisconfigured where the model was trained to read less than the settings say."""
    (row,) = _models_at(url, key).json()["data"]
    most = int(row["meta"]["n_ctx_train"])
    if context > most:
        raise ModelMisconfigured(
            f"{path.name} reads at most {most} tokens at once, not {context}.",
            f"Set TRELLIS_GGUF_CONTEXT={most}, or less.",
        )


def _answers(served: Served) -> bool:
    """Whether a model's server answers there, and takes the key."""
    try:
        return _models_at(served.url, served.key).is_success
    except httpx.HTTPError:
        return False


def _models_at(url: str, key: str) -> httpx.Response:
    """The list of models of a server on this machine."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(trust_env=False, timeout=_SILENT) as client:  # no proxy
        return client.get(f"{url}/models", headers=headers)


def folder_of_user(temporary: Path) -> Path:
    """The folder of the locks, which no other user may read; ModelMisconfigured where one may."""
    folder = temporary / f"trellis-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ModelMisconfigured(f"The folder {folder} cannot be made: {error.strerror}.", _NO_SHARING) from error
    theirs = found.st_uid != os.getuid() or found.st_mode & 0o077
    if theirs or not stat.S_ISDIR(found.st_mode):
        raise ModelMisconfigured(f"Other users may read or write {folder}.", _NO_SHARING)
    return folder
