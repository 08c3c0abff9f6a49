"""Settings: parameter > environment > file > default, checked, and never silently ignored."""

from dataclasses import asdict
from pathlib import Path

import pytest

from flows.settings import load_settings
from prompts.engine.effort import Effort
from storage.errors import SettingsError


def settings_file(folder: Path, text: str) -> dict[str, str]:
    path = folder / "trellis.toml"
    path.write_text(text, encoding="utf-8")
    return {"TRELLIS_CONFIG": str(path)}


def test_each_place_overrides_the_next(tmp_path: Path) -> None:
    environ = settings_file(tmp_path, 'chunk_tokens = 300\nchunk_overlap = 30\nembedding = "none"\ntau = 0.5\n')
    environ |= {"TRELLIS_CHUNK_TOKENS": "400", "TRELLIS_TAU": "0.6"}
    found = load_settings({"chunk_tokens": 500, "theta": None}, environ)
    assert (found.chunk_tokens, found.tau, found.chunk_overlap, found.embedding) == (500, 0.6, 30, "none")
    assert found.theta == 1


def test_roles_are_merged_one_by_one(tmp_path: Path) -> None:
    environ = settings_file(tmp_path, 'lm = "openai/common"\n[roles.extract]\nmodel = "openai/file"\n')
    environ |= {"TRELLIS_LM_EXTRACT_BASE_URL": "http://localhost:1/v1", "TRELLIS_LM_API_KEY": "made-up"}
    choices = load_settings({"roles": {"answer": {"model": "offline"}}}, environ).model_choices()
    assert choices["answer"] is None
    extract, route = choices["extract"], choices["route"]
    assert extract is not None
    assert route is not None
    # The common key belongs to the common server; a role with an address of its own does not send it there.
    assert (extract.name, extract.base_url, extract.api_key) == ("openai/file", "http://localhost:1/v1", None)
    assert (route.name, route.base_url) == ("openai/common", None)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"TRELLIS_CHUNK_TOKEN": "9"}, "TRELLIS_CHUNK_TOKENS"),
        ({"TRELLIS_LM_EXTRCT": "m"}, "TRELLIS_LM_EXTRACT"),
        ({"TRELLIS_CHUNK_TOKENS": "many"}, "many"),
        ({"TRELLIS_TAU": "2"}, "tau"),
        *(({f"TRELLIS_{name}": "0"}, name.lower()) for name in ("RPM", "TPM", "MAX_ATTEMPTS", "TIMEOUT", "MAX_TOKENS")),
        ({"TRELLIS_CONFIG": "/no/such/file.toml"}, "/no/such/file.toml"),
        ({"TRELLIS_CHUNK_OVERLAP": "300"}, "chunk_overlap"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(environ: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings({}, environ)


@pytest.mark.parametrize("text", ["chunk_tokens = ", "chunk_size = 9", '[roles.extrakt]\nmodel = "m"'])
def test_a_wrong_file_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError):
        load_settings({}, settings_file(tmp_path, text))


def test_keys_are_never_shown(tmp_path: Path) -> None:
    environ = {"TRELLIS_LM": "openai/m", "TRELLIS_LM_API_KEY": "made-up-secret"}
    found = load_settings({}, environ)
    assert "made-up-secret" not in repr(found) + repr(found.model_choices())
    with pytest.raises(SettingsError) as caught:
        load_settings({"lm_api_key": ["made-up-secret"]}, {})
    assert "made-up-secret" not in str(caught.value)


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_every_token_limit_grows_and_shrinks_with_the_context_window(effort: Effort) -> None:
    def limits(**more: object) -> dict[str, int]:
        return asdict(load_settings({"effort": effort, **more}, {}).policy().limits)

    usual = limits()
    assert limits(context_window=128_000) == usual
    assert limits(context_window=256_000) == {name: 2 * limit for name, limit in usual.items()}
    assert limits(context_window=8_000_000) == {name: 4 * limit for name, limit in usual.items()}
    assert max(limits(context_window=4_000).values()) <= 1_600
    for name in usual:
        assert limits(context_window=4_000, **{f"{name}_tokens": 5_000})[name] == 5_000


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings({}, {"TRELLIS_CHUNK_TOKENS": ""}).chunk_tokens == 600


def test_small_chunks_need_no_overlap_of_their_own(tmp_path: Path) -> None:
    settings = load_settings({"chunk_tokens": 60}, settings_file(tmp_path, ""))
    assert settings.chunk_overlap == 10
    with pytest.raises(SettingsError, match="chunk_overlap"):
        load_settings({"chunk_tokens": 60, "chunk_overlap": 40}, settings_file(tmp_path, ""))
