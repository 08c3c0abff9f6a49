"""Every error says what happened and what to do, and keeps both across processes."""

import pickle

import pytest

from storage import errors
from storage.errors import TrellisError

# Each error with its exit code, a part of its message and a part of its remedy.
EVERY = [
    (errors.SourceNotFound("notes/"), 2, "notes/", "forget"),
    (errors.SourceUnreachable("s3://x/a", OSError("reset")), 1, "s3://x/a", "Nothing was removed"),
    (errors.NothingToRead(), 2, "none of the documents", "filter"),
    (errors.NotFound("No report 'x'.", "Nearest: y."), 2, "'x'", "Nearest"),
    (errors.NoGeneration("ws"), 2, "ws", "trellis index SOURCE"),
    (errors.NothingPublished("s3://x/kb"), 2, "s3://x/kb", "trellis publish s3://x/kb"),
    (errors.ReadOnlyWorkspace("ws", "s3://x/kb"), 2, "s3://x/kb", "trellis publish s3://x/kb"),
    (errors.UnknownGeneration(7, [1, 2]), 2, "7", "1, 2"),
    (errors.UnknownDocument("a", ["b"]), 2, "'a'", "b"),
    (errors.SettingsError("TRELLIS_TAU", 3, "a number"), 2, "TRELLIS_TAU", "a number"),
    (errors.UnknownSetting("MODE", ["LM"]), 2, "MODE", "one that exists: LM"),
    (errors.SettingsFileError("x.toml", ValueError("open")), 2, "x.toml", "Correct it"),
    (errors.DuplicateDocument("a", "x.md", "y.md"), 2, "y.md", "another `id`"),
    (errors.WorkspaceFormatError("ws", 9, 1), 2, "version 9", "Upgrade"),
    (errors.WorkspaceFormatError("ws", 0, 1), 2, "version 0", "again"),
    (errors.FilterError("year >>", 5, "it ends", "Write year > 1."), 2, "character 6", "year > 1"),
    (errors.NothingMatches("year > 2050"), 2, "year > 2050", "Loosen"),
    (errors.RemovalRefused(4, 10), 2, "4 of 10", "--allow-removals"),
    (errors.SourceEmptied("docs", 4), 2, "docs holds no document now; 4", "--allow-removals"),
    (errors.BudgetReached(1_200, 1_000, "USD", 70), 3, "1,200 of 1,000 USD, and the next", "Ra"),
    (errors.WorkspaceLocked("ws", 12, "host", "now"), 4, "process 12 on host", "Wait"),
    (errors.FailureGate("extract", 6, 10, 0.5), 5, "6 of 10", "TRELLIS_FAILURE_LIMIT"),
    (errors.NothingToIndex(["docs"], ["a: no text"]), 5, "can be read: a", "formats"),
    (errors.EvaluationGate(["naive: em fell by .2"]), 6, "em fell by .2", "--accept"),
    (errors.ArchiveError("kept.tar", "it is cut off"), 2, "kept.tar", "another copy"),
    (errors.StorageError("x.duckdb", "damaged"), 1, "x.duckdb", "roll back"),
    (errors.NotPermitted("x", "read-only"), 1, "x: ", "permissions"),
    (errors.DiskFull("x", "full"), 1, "x: ", "Make room"),
    (errors.DiskFailed("x", "I/O error"), 1, "x: ", "Check the disk"),
    (errors.TooLittle("x", "Too many open files"), 1, "x: ", "Nothing is damaged"),
    (errors.InUse("x", "locked"), 1, "x: ", "again"),
    (errors.NoLocks("LOCK", "No locks available"), 1, "LOCK", "local disk"),
    (errors.Damaged("x", "malformed", "Move it away."), 1, "x: ", "Move it away."),
]


@pytest.mark.parametrize(
    ("error", "exit_code", "value", "remedy"), EVERY, ids=lambda v: type(v).__name__
)
def test_an_error_names_its_value_and_remedy(
    error: TrellisError, exit_code: int, value: str, remedy: str
) -> None:
    assert error.exit_code == exit_code
    assert value in error.message
    assert remedy in error.remedy
    assert str(error) == f"{error.message} {error.remedy}"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    assert (type(again), str(again)) == (type(error), str(error))


def test_every_error_is_covered() -> None:
    def below(kind: type[TrellisError]) -> set[type[TrellisError]]:
        return {kind}.union(
            *(below(k) for k in kind.__subclasses__() if k.__module__ == errors.__name__)
        )

    assert below(TrellisError) - {TrellisError, errors.UsageError, errors.FileFault} == {
        type(row[0]) for row in EVERY
    }
