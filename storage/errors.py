"""The errors that Trellis raises on purpose. Each says what happened and what to do.

TrellisError                      .message, .remedy, .exit_code (class); str() joins both sentences
├── UsageError            exit 2  the request cannot be met as it was made
│   ├── SourceNotFound            a named source does not exist
│   ├── NotFound                  no entity, report, edit, … has that name
│   │   ├── NoGeneration          the workspace holds no index yet
│   │   │   └── NothingPublished  nor is one published at the address
│   │   ├── NothingToRead         no document passes the filter of the caller's key
│   │   ├── UnknownGeneration     this generation is not kept
│   │   └── UnknownDocument       no such document in this generation
│   ├── FilterError               a filter on documents cannot be read
│   ├── NothingMatches            no document meets a filter
│   ├── SettingsError             a setting has an invalid value
│   │   ├── UnknownSetting        there is no setting of that name
│   │   └── SettingsFileError     the settings file is not TOML
│   ├── ReadOnlyWorkspace         a workspace that only holds what is published elsewhere
│   ├── DuplicateDocument         one id with two texts in one run
│   └── WorkspaceFormatError      the stored schema is newer or older than this program
├── SourceUnreachable     exit 1  a remote source cannot be listed
├── RemovalRefused        exit 2  a run would remove more documents than it may
├── SourceEmptied         exit 2  a source that held documents holds none now
├── BudgetReached         exit 3  tokens, money or time are used up; nothing was published
├── WorkspaceLocked       exit 4  another index run holds the workspace
├── FailureGate           exit 5  too many items failed to publish the rest
├── NothingToIndex        exit 5  the sources hold nothing that can be read
├── EvaluationGate        exit 6  a measure fell by more than its margin
├── ArchiveError          exit 2  a file is no sound archive, or none can be written
└── StorageError          exit 1  stored state cannot be used
    └── FileFault
        ├── NotPermitted          a file or its disk may not be read or written
        ├── DiskFull              there is no room left
        ├── DiskFailed            the disk does not do what it should
        ├── TooLittle             the process has too little memory or too few open files
        ├── InUse                 another process holds it for too long
        ├── NoLocks               the disk supports no locks
        └── Damaged               the content is not what was written
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar


class TrellisError(Exception):
    """Base of all errors: `message` says what happened, `remedy` what to do (it may be empty)."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # Subclasses take values, not sentences, so the default could not unpickle them.
        return _rebuild, (type(self), self.message, self.remedy)


def _rebuild(kind: type[TrellisError], message: str, remedy: str) -> TrellisError:
    error = kind.__new__(kind)
    TrellisError.__init__(error, message, remedy)
    return error


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a question with the nearest name and a space, or nothing where no name is close."""
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(word.casefold(), folded, n=1)
    return f"Did you mean {folded[near[0]]!r}? " if near else ""


# --- usage ---


class UsageError(TrellisError):
    exit_code = 2


class SourceNotFound(UsageError):
    def __init__(
        self,
        path: str | Path,
        remedy: str = (
            "Check the path. A missing source removes nothing; `trellis forget DOCUMENT` drops a "
            "document."
        ),
    ) -> None:
        super().__init__(f"Source not found: {path}.", remedy)


class SourceUnreachable(TrellisError):
    def __init__(self, address: str, error: Exception) -> None:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        super().__init__(
            f"{address} cannot be listed ({words}).",
            "Nothing was removed. Check the address, the network and the credentials, then index "
            "again.",
        )


class NotFound(UsageError): ...


class NoGeneration(NotFound):
    def __init__(self, workspace: str | Path) -> None:
        super().__init__(
            f"Nothing is indexed in {workspace}.",
            "Run `trellis index SOURCE` first, or name another --workspace.",
        )


class NothingToRead(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "This key may read none of the documents here.",
            "Ask who runs the service: the key has a filter, which no document passes.",
        )


class NothingPublished(NoGeneration):
    def __init__(self, address: str) -> None:
        UsageError.__init__(
            self,
            f"Nothing is published at {address}.",
            f"Check the address, or publish there first: trellis publish {address}",
        )


class UnknownGeneration(NotFound):
    def __init__(self, number: int, numbers: Sequence[int]) -> None:
        have = ", ".join(str(n) for n in numbers) or "none"
        super().__init__(
            f"Generation {number} is not in this workspace.",
            f"Kept: {have} (see `trellis generations`).",
        )


class UnknownDocument(NotFound):
    """`nearest` are similar ids, best first."""

    def __init__(self, document: str, nearest: Sequence[str] = ()) -> None:
        remedy = "See `trellis status` for what is indexed."
        if nearest:
            remedy = f"Nearest: {', '.join(nearest)}."
        super().__init__(f"No document {document!r} in this generation.", remedy)


class FilterError(UsageError):
    """`at` counts the characters of the expression from 0."""

    def __init__(self, expression: str, at: int, problem: str, remedy: str) -> None:
        super().__init__(f"Filter {expression!r}, character {at + 1}: {problem}.", remedy)


class NothingMatches(UsageError):
    """`of` names the documents that the filter was restricted to."""

    def __init__(self, expression: str, of: str = "") -> None:
        super().__init__(
            f"No document{of} meets the filter {expression!r}, so there is nothing to look into.",
            "Loosen the filter, or see `trellis status` for what is indexed.",
        )


class SettingsError(UsageError):
    """`expected` completes the sentence "Use …"; `near` is put before it."""

    def __init__(self, name: str, value: object, expected: str, near: str = "") -> None:
        super().__init__(f"Setting {name} cannot be {value!r}.", f"{near}Use {expected}.")


class UnknownSetting(SettingsError):
    def __init__(self, name: str, near: Sequence[str]) -> None:
        UsageError.__init__(
            self, f"There is no setting {name}.", f"Use one that exists: {', '.join(near)}."
        )


class SettingsFileError(SettingsError):
    def __init__(self, path: str | Path, problem: Exception) -> None:
        UsageError.__init__(
            self,
            f"{path} is no valid TOML: {str(problem).rstrip('.')}.",
            "Correct it there, or remove the line.",
        )


class ReadOnlyWorkspace(UsageError):
    def __init__(self, workspace: str | Path, address: str) -> None:
        super().__init__(
            f"{workspace} is a copy of what is published at {address}, and only read.",
            f"Change the workspace that it is published from, then `trellis publish {address}` "
            "there: readers follow.",
        )


class DuplicateDocument(UsageError):
    def __init__(self, document: str, first: str, second: str) -> None:
        super().__init__(
            f"Document {document!r} comes with one text from {first} and another from {second}.",
            "Give one of them another `id`, or leave one out of the run.",
        )


class WorkspaceFormatError(UsageError):
    def __init__(self, workspace: str | Path, version: int, supported: int) -> None:
        remedy = (
            "Upgrade trellis-rag, or name another --workspace."
            if version > supported
            else "Index the sources again into a new --workspace."
        )
        super().__init__(
            f"{workspace} has schema version {version}; this program reads version {supported}.",
            remedy,
        )


class RemovalRefused(TrellisError):
    exit_code = 2

    def __init__(self, removed: int, total: int, limit: float = 0.3) -> None:
        super().__init__(
            f"The run would remove {removed} of {total} documents, more than {limit:.0%}.",
            "Check the sources; if this is meant, add --allow-removals.",
        )


class SourceEmptied(TrellisError):
    exit_code = 2

    def __init__(self, source: str, documents: int) -> None:
        super().__init__(
            f"{source} holds no document now; {documents} came from it before. Nothing was "
            "removed.",
            "Check that it is the right place, and mounted; if this is meant, add "
            "--allow-removals.",
        )


# --- runs ---


class BudgetReached(TrellisError):
    """`unit` is "tokens", "USD" or "minutes"; the next call may take `needed` of it."""

    exit_code = 3

    def __init__(self, spent: float, budget: float, unit: str, needed: float = 0) -> None:
        more = f", and the next call may take {_amount(needed)}" if needed else ""
        super().__init__(
            f"Budget reached: {_amount(spent)} of {_amount(budget)} {unit}{more}. Nothing was "
            "published.",
            "Raise the budget and run again: calls already answered are not repeated.",
        )


def _amount(number: float) -> str:
    return f"{number:,.6f}".rstrip("0").rstrip(".")


class WorkspaceLocked(TrellisError):
    """`since` is a UTC time in ISO form; `pid` is 0 where the holder is not known yet."""

    exit_code = 4

    def __init__(self, workspace: str | Path, pid: int, host: str, since: str) -> None:
        who = f"process {pid} on {host} since {since}" if pid else "another process"
        super().__init__(
            f"{workspace} is being written by {who}.",
            "Wait until it is done, or stop that process.",
        )


class FailureGate(TrellisError):
    exit_code = 5

    def __init__(self, step: str, failed: int, total: int, limit: float) -> None:
        super().__init__(
            f"{failed} of {total} items failed in step {step}, more than {limit:.0%}. Nothing was "
            "published.",
            "Fix the cause, or raise TRELLIS_FAILURE_LIMIT, and run again: what was answered is "
            "kept.",
        )


class NothingToIndex(TrellisError):
    exit_code = 5

    def __init__(self, sources: Sequence[str], problems: Sequence[str]) -> None:
        reasons = f": {'; '.join(problems[:3])}" if problems else ""
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        super().__init__(
            f"{', '.join(sources)} holds nothing that can be read{reasons}{more}. Nothing was "
            "published.",
            "Name files or folders that hold documents; README lists the formats.",
        )


class EvaluationGate(TrellisError):
    """Each of `falls` says in words what fell."""

    exit_code = 6

    def __init__(self, falls: Sequence[str]) -> None:
        super().__init__(
            f"The evaluation gate is closed: {'; '.join(falls)}.",
            "See what differs (`trellis evaluate --show N --page FILE.html`); if this is meant: "
            "--show N --accept.",
        )


class ArchiveError(TrellisError):
    """`what` is the verb for what was not done."""

    exit_code = 2

    def __init__(
        self,
        archive: str | Path,
        problem: str,
        remedy: str = "Use another copy of it; nothing was changed.",
        what: str = "restored",
    ) -> None:
        super().__init__(f"{archive} was not {what}: {problem}.", remedy)


class StorageError(TrellisError):
    def __init__(
        self,
        place: str | Path,
        problem: str,
        remedy: str = "Index again, or roll back to another generation.",
    ) -> None:
        super().__init__(f"{place}: {problem}.", remedy)


class FileFault(StorageError):
    """A fault of a file or its disk; `words` are those of the library that met it."""

    problem: ClassVar[str]
    cure: ClassVar[str]

    def __init__(self, place: str | Path, words: str, remedy: str = "") -> None:
        super().__init__(place, f"{self.problem} ({words})", remedy or self.cure)


class NotPermitted(FileFault):
    problem = "it may not be read or written here"
    cure = (
        "Check its owner and permissions and how its disk is mounted, or name another place. "
        "Nothing is damaged."
    )


class DiskFull(FileFault):
    problem = "there is no room left for it"
    cure = (
        "Make room on its disk (or raise the quota), then run the same command again. What was "
        "stored is whole."
    )


class DiskFailed(FileFault):
    problem = "its disk failed"
    cure = (
        "Check the disk (the system's log says more), copy the workspace to a sound one, or restore"
        " an archive."
    )


class TooLittle(FileFault):
    problem = "this process may not use more of what it needs"
    cure = (
        "Give it more memory or open files (`ulimit -v`, `ulimit -n`, a container's limits). "
        "Nothing is damaged."
    )


class InUse(FileFault):
    problem = "another process holds it"
    cure = "Run the same command again when that one is done."


class NoLocks(FileFault):
    problem = "its disk keeps no locks"
    cure = (
        "Put the workspace on a local disk: network disks without `flock` locks are not supported. "
        "Nothing is damaged."
    )


class Damaged(FileFault):
    """`remedy` says what to do with the content and what is lost with it."""

    problem = "its content is damaged"
    cure = "Restore it from an archive or a backup."
