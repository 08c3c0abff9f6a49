"""Settings: parameter > environment > file > default, checked, and never silently ignored."""

from dataclasses import asdict
from pathlib import Path

import pytest

from flows.runtime import open_runtime
from prompts.engine.effort import Effort
from prompts.engine.models import ModelChoice
from storage.errors import SettingsError
from tests.settings import load_settings


def settings_file(folder: Path, text: str) -> dict[str, str]:
    path = folder / "trellis.toml"
    path.write_text(text, encoding="utf-8")
    return {"TRELLIS_CONFIG": str(path)}


def test_each_place_overrides_the_next(tmp_path: Path) -> None:
    environ = settings_file(tmp_path, "chunk_tokens = 300\nchunk_overlap = 30\ntau = 0.5\n")
    environ |= {"TRELLIS_CHUNK_TOKENS": "400", "TRELLIS_TAU": "0.6", "TRELLIS_SEED": ""}
    found = load_settings({"chunk_tokens": 500, "theta": None}, environ)
    assert (found.chunk_tokens, found.tau, found.chunk_overlap) == (500, 0.6, 30)
    assert (found.theta, found.seed) == (1, None), "what is empty is not set"


def test_a_role_sends_no_key_to_another_server(tmp_path: Path) -> None:
    environ = settings_file(
        tmp_path, 'lm = "openai/common"\n[roles.extract]\nmodel = "openai/file"\n'
    )
    own, common = "http://localhost:1/v1", "http://localhost:2/v1"
    environ |= {
        "TRELLIS_LM_EXTRACT_BASE_URL": own,
        "TRELLIS_LM_BASE_URL": common,
        "TRELLIS_LM_API_KEY": "made-up",
    }
    roles = {"answer": {"model": "offline"}, "report": {"model": "mistral/other"}}
    choices = load_settings({"roles": roles}, environ).model_choices()
    assert choices["answer"] is None
    assert choices["extract"] == ModelChoice("openai/file", own, None)
    assert choices["route"] == ModelChoice("openai/common", common, "made-up")
    assert choices["report"] == ModelChoice("mistral/other", None, None)


def test_a_role_s_sampling_overrides_the_common_one(tmp_path: Path) -> None:
    environ = settings_file(
        tmp_path, "temperature = 0.2\n[roles.answer.model_options]\nmin_p = 0.1\n"
    )
    environ |= {
        "TRELLIS_MODEL_OPTIONS": '{"min_p": 0.05, "repeat_penalty": 1.1}',
        "TRELLIS_LM_ANSWER_TEMPERATURE": "0.7",
        "TRELLIS_SEED": "7",
    }
    sampling = load_settings({}, environ).call_settings().sampling
    common = {"min_p": 0.05, "repeat_penalty": 1.1, "temperature": 0.2, "seed": 7}
    assert sampling["extract"] == common
    assert sampling["answer"] == {**common, "min_p": 0.1, "temperature": 0.7}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MODEL_OPTIONS", "min_p=1", "an object of JSON"),
        ("MODEL_OPTIONS", '{"messages": []}', "messages"),
        ("LM_ANSWER_TOP_P", "2", "top_p"),
        ("CHUNK_TOKEN", "9", "TRELLIS_CHUNK_TOKENS"),
        ("LM_EXTRCT", "m", "TRELLIS_LM_EXTRACT"),
        ("CHUNK_TOKENS", "many", r"chunk_tokens \(TRELLIS_CHUNK_TOKENS\) cannot be 'many'"),
        ("TAU", "2", "tau"),
        ("PROFILE", "tiny", "'auto', 'small' or 'large'"),
        ("RPM", "0", "rpm"),
        ("TIMEOUT", "0", "timeout"),
        ("CONFIG", "/no/such/file.toml", "/no/such/file.toml"),
        ("CHUNK_OVERLAP", "300", "chunk_overlap"),
        ("EMBEDDING_INPUT_TYPES", "query", "Use two with a semicolon between"),
    ],
)
def test_a_wrong_variable_is_named_with_its_remedy(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings({}, {f"TRELLIS_{name}": value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[roles.answer]\ntop_p = 2\n", r"roles\.answer\.top_p \(.+trellis\.toml\) cannot be 2"),
        ("[roles.extrat]\nmodel = 'offline'\n", r"'extrat'.+one of the roles: extract"),
        ("lm = ", r"trellis\.toml"),
    ],
)
def test_a_wrong_value_in_the_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings({}, settings_file(tmp_path, text))


def test_a_wrong_parameter_has_no_place() -> None:
    with pytest.raises(SettingsError, match="Setting tau cannot be 2"):
        load_settings({"tau": 2}, {})


def test_keys_are_never_shown() -> None:
    found = load_settings({}, {"TRELLIS_LM": "openai/m", "TRELLIS_LM_API_KEY": "made-up-secret"})
    assert "made-up-secret" not in repr(found) + repr(found.model_choices())
    with pytest.raises(SettingsError) as caught:
        load_settings({"lm_api_key": ["made-up-secret"]}, {})
    assert "made-up-secret" not in str(caught.value)


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_token_limits_follow_the_context_window(effort: Effort) -> None:
    def limits(**more: object) -> dict[str, int]:
        return asdict(load_settings({"effort": effort, **more}, {}).policy().limits)

    usual = limits()
    for window, times in ((128_000, 1), (256_000, 2), (8_000_000, 4)):
        scaled = {name: times * limit for name, limit in usual.items()}
        assert limits(context_window=window) == scaled
    small = limits(context_window=4_000)
    assert small.pop("structures") == usual["structures"], "many calls share it"
    assert max(small.values()) <= 1_600
    for name in usual:
        assert limits(context_window=4_000, **{f"{name}_tokens": 5_000})[name] == 5_000


def test_steps_of_an_index_run_keep_the_set_limits(tmp_path: Path) -> None:
    settings = load_settings({"workspace": tmp_path, "effort": "high", "rate_tokens": 777}, {})
    makers = open_runtime(settings).makers
    assert {step.policy.limits.rate for step in makers.values()} == {777}
    assert makers["resolve"].policy == settings.policy()


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ({"lm": "openai/gpt-4.1"}, 6_000),
        ({"lm": "openai/gpt-4"}, int(0.4 * 8192)),
        ({"lm": "openai/gpt-4", "lm_base_url": "http://127.0.0.1:1/v1"}, 6_000),
    ],
)
def test_the_known_window_of_a_provider_shrinks_limits(more: dict[str, object], limit: int) -> None:
    assert load_settings(more, {}).policy().limits.answer == limit


@pytest.mark.parametrize(
    ("model", "times"),
    [
        ("openai/gpt-4.1", 4),
        ("openai/no-such-model", 1),
        ("anthropic/claude-sonnet-4-5", 200 / 128),
    ],
)
def test_high_effort_fills_the_known_window(model: str, times: float) -> None:
    usual = load_settings({"effort": "high"}, {}).policy().limits
    found = load_settings({"effort": "high", "lm": model}, {}).policy().limits
    assert found.answer == int(usual.answer * times)


@pytest.mark.parametrize(
    ("name", "window", "profile"),
    [
        ("ollama/qwen2.5:0.5b", None, "small"),
        ("openai/Qwen2.5-Coder-1.5B-Instruct", None, "small"),
        ("ollama/gemma3:270m", None, "small"),
        ("ollama/mistral:7b-instruct-q4_K_M", None, "small"),
        ("ollama/gemma3n:e4b", None, "small"),
        ("gguf//models-70b/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", None, "small"),
        ("openai/phi-4:14b", None, "large"),
        ("ollama/mixtral:8x7b", None, "large"),
        ("ollama/qwen3:30b-a3b", None, "large"),
        ("together_ai/Llama-3.3-70B-4bit", None, "large"),
        ("openai/gpt-4", None, "large"),
        ("anthropic/claude-3-5-haiku-20241022", None, "large"),
        ("offline", None, "large"),
        ("openai/qwen", 4_096, "small"),
        ("openai/qwen", 32_000, "large"),
        ("openai/qwen-72b", 4_096, "large"),
    ],
)
def test_the_profile_is_guessed_by_size_or_window(
    name: str, window: int | None, profile: str
) -> None:
    guessed = {"lm": name, "context_window": window}
    assert load_settings(guessed, {}).policy().profile == profile
    for chosen in ("small", "large"):
        assert load_settings({"lm": name, "profile": chosen}, {}).policy().profile == chosen


@pytest.mark.parametrize(
    ("role", "model", "profile"),
    [
        ("route", "ollama/qwen3:4b", "small"),
        ("extract", "ollama/qwen3:4b", "large"),  # no question asks it
        ("filter", "cross-encoder/nli-1b", "large"),  # it writes nothing
    ],
)
def test_one_small_model_of_questions_makes_the_profile(
    role: str, model: str, profile: str
) -> None:
    settings = load_settings({"lm": "openai/gpt-4o", "roles": {role: {"model": model}}}, {})
    assert settings.policy().profile == profile


def test_small_chunks_get_a_small_overlap() -> None:
    assert load_settings({"chunk_tokens": 60}, {}).chunk_overlap == 10
    with pytest.raises(SettingsError, match="chunk_overlap"):
        load_settings({"chunk_tokens": 60, "chunk_overlap": 40}, {})
