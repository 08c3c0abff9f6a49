"""Every error says what happened and what to do, and keeps both across processes."""

import pickle

import pytest

from storage import errors
from storage.errors import TrellisError

EVERY = [
    (errors.SourceNotFound("notes/"), 2, "notes/", "forget"),
    (errors.NotFound("No report 'x'.", "Nearest: y."), 2, "'x'", "Nearest"),
    (errors.NoGeneration("ws"), 2, "ws", "trellis index SOURCE"),
    (errors.UnknownGeneration(7, [1, 2]), 2, "7", "1, 2"),
    (errors.UnknownDocument("a", ["b"]), 2, "'a'", "b"),
    (
        errors.SettingsError("TRELLIS_TAU", 3, "a number from 0 to 1"),
        2,
        "TRELLIS_TAU",
        "a number from 0 to 1",
    ),
    (errors.DuplicateDocument("a", "x.md", "y.md"), 2, "y.md", "another `id`"),
    (errors.WorkspaceFormatError("ws", 9, 1), 2, "version 9", "Upgrade"),
    (errors.WorkspaceFormatError("ws", 0, 1), 2, "version 0", "again"),
    (errors.RemovalRefused(4, 10), 2, "4 of 10", "--allow-removals"),
    (errors.SourceEmptied("docs", 4), 2, "docs holds no document now; 4", "--allow-removals"),
    (
        errors.BudgetReached(1_200, 1_000, "tokens", 70),
        3,
        "1,200 of 1,000 tokens, and the next call may take 70",
        "Ra",
    ),
    (errors.WorkspaceLocked("ws", 12, "host", "now"), 4, "process 12 on host", "Wait"),
    (errors.FailureGate("extract", 6, 10, 0.5), 5, "6 of 10", "TRELLIS_FAILURE_LIMIT"),
    (
        errors.NothingToIndex(["docs"], ["a.bin: no text"]),
        5,
        "docs holds nothing that can be read: a.bin",
        "formats",
    ),
    (errors.EvaluationGate(["naive: em fell by .2"]), 6, "em fell by .2", "--accept"),
    (
        errors.UnknownSetting("TRELLIS_MODE", ["TRELLIS_LM"]),
        2,
        "TRELLIS_MODE",
        "one that exists: TRELLIS_LM",
    ),
    (
        errors.SettingsFileError("trellis.toml", ValueError("a quote is open")),
        2,
        "trellis.toml",
        "Mend it",
    ),
    (
        errors.FilterError("year >>", 5, "a value is missing", "Write year > 2020."),
        2,
        "character 6",
        "year > 2020",
    ),
    (errors.NothingMatches("year > 2050"), 2, "year > 2050", "Loosen"),
    (errors.ArchiveError("kept.tar", "it is cut off"), 2, "kept.tar", "another copy"),
    (errors.StorageError("x.duckdb", "damaged"), 1, "x.duckdb", "roll back"),
    (errors.NotPermitted("side.sqlite", "read-only"), 1, "side.sqlite", "permissions"),
    (errors.DiskFull("side.sqlite", "full"), 1, "side.sqlite", "Make room"),
    (errors.DiskFailed("side.sqlite", "I/O error"), 1, "side.sqlite", "Check the disk"),
    (
        errors.TooLittle("generation.duckdb", "Too many open files"),
        1,
        "generation.duckdb",
        "Nothing is damaged",
    ),
    (errors.InUse("side.sqlite", "locked"), 1, "side.sqlite", "again"),
    (errors.NoLocks("LOCK", "No locks available"), 1, "LOCK", "local disk"),
    (
        errors.Damaged("side.sqlite", "malformed", "Move it away."),
        1,
        "side.sqlite",
        "Move it away.",
    ),
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
    # Our own bytes: an error crosses processes.
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again)) == (type(error), str(error))


def test_every_error_is_covered() -> None:
    def below(kind: type[TrellisError]) -> set[type[TrellisError]]:
        return {kind}.union(
            *(below(k) for k in kind.__subclasses__() if k.__module__ == errors.__name__)
        )

    assert below(TrellisError) - {TrellisError, errors.UsageError, errors.FileFault} == {
        type(row[0]) for row in EVERY
    }
