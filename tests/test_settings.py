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
    environ = settings_file(
        tmp_path, 'chunk_tokens = 300\nchunk_overlap = 30\nembedding = "none"\ntau = 0.5\n'
    )
    environ |= {"TRELLIS_CHUNK_TOKENS": "400", "TRELLIS_TAU": "0.6"}
    found = load_settings({"chunk_tokens": 500, "theta": None}, environ)
    assert (found.chunk_tokens, found.tau, found.chunk_overlap, found.embedding) == (
        500,
        0.6,
        30,
        "none",
    )
    assert found.theta == 1
    assert load_settings({}, {"TRELLIS_CHUNK_TOKENS": ""}).chunk_tokens == 600, (
        "an empty one counts as not set"
    )
    calls = load_settings(
        {"max_attempts": 2, "timeout": 9.5, "max_tokens": 512}, {}
    ).call_settings()
    assert (calls.concurrency, calls.max_attempts, calls.timeout, calls.max_tokens) == (
        16,
        2,
        9.5,
        512,
    )


def test_roles_are_merged_one_by_one(tmp_path: Path) -> None:
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
    # The common key belongs to the common server; a role with an address of its own does not send
    # it there.
    assert choices["extract"] == ModelChoice("openai/file", own, None)
    assert choices["route"] == ModelChoice("openai/common", common, "made-up")
    assert choices["report"] == ModelChoice("mistral/other", None, None), (
        "another provider gets neither"
    )


def test_a_role_s_sampling_goes_before_the_common_one(tmp_path: Path) -> None:
    environ = settings_file(
        tmp_path, "temperature = 0.2\n[roles.answer.model_options]\nmin_p = 0.1\n"
    )
    environ |= {
        "TRELLIS_MODEL_OPTIONS": '{"min_p": 0.05, "repeat_penalty": 1.1}',
        "TRELLIS_LM_ANSWER_TEMPERATURE": "0.7",
        "TRELLIS_SEED": "7",
    }
    calls = load_settings({}, environ).call_settings()
    common = {"min_p": 0.05, "repeat_penalty": 1.1, "temperature": 0.2, "seed": 7}
    assert calls.sampling["extract"] == common
    assert calls.sampling["answer"] == {**common, "min_p": 0.1, "temperature": 0.7}
    assert calls.retry_temperature == 0.5


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"TRELLIS_MODEL_OPTIONS": "min_p=1"}, "an object of JSON"),
        ({"TRELLIS_MODEL_OPTIONS": '{"messages": []}'}, "messages"),
        ({"TRELLIS_LM_ANSWER_TOP_P": "2"}, "top_p"),
        ({"TRELLIS_CHUNK_TOKEN": "9"}, "TRELLIS_CHUNK_TOKENS"),
        ({"TRELLIS_LM_EXTRCT": "m"}, "TRELLIS_LM_EXTRACT"),
        ({"TRELLIS_CHUNK_TOKENS": "many"}, "many"),
        ({"TRELLIS_TAU": "2"}, "tau"),
        ({"TRELLIS_PROFILE": "tiny"}, "'auto', 'small' or 'large'"),
        *(
            ({f"TRELLIS_{name}": "0"}, name.lower())
            for name in ("RPM", "TPM", "MAX_ATTEMPTS", "TIMEOUT", "MAX_TOKENS")
        ),
        ({"TRELLIS_CONFIG": "/no/such/file.toml"}, "/no/such/file.toml"),
        ({"TRELLIS_CHUNK_OVERLAP": "300"}, "chunk_overlap"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    environ: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings({}, environ)


def test_an_error_says_where_the_value_stands(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"chunk_tokens \(TRELLIS_CHUNK_TOKENS\) cannot be 'many'"
    ):
        load_settings({}, {"TRELLIS_CHUNK_TOKENS": "many"})
    environ = settings_file(tmp_path, "[roles.answer]\ntop_p = 2\n")
    with pytest.raises(
        SettingsError, match=r"roles\.answer\.top_p \(.+trellis\.toml\) cannot be 2"
    ):
        load_settings({}, environ)
    with pytest.raises(SettingsError, match="Setting tau cannot be 2"):
        load_settings({"tau": 2}, {})


def test_a_role_that_is_none_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'extrat'.+one of the roles: extract"):
        load_settings({}, settings_file(tmp_path, "[roles.extrat]\nmodel = 'offline'\n"))


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
    small = limits(context_window=4_000)
    assert small.pop("structures") == usual["structures"], (
        "what many calls read together is no matter of one window"
    )
    assert max(small.values()) <= 1_600
    for name in usual:
        assert limits(context_window=4_000, **{f"{name}_tokens": 5_000})[name] == 5_000


def test_steps_of_an_index_run_keep_to_the_limits_that_are_set(tmp_path: Path) -> None:
    settings = load_settings({"workspace": tmp_path, "effort": "high", "rate_tokens": 777}, {})
    makers = open_runtime(settings).makers
    assert {step.policy.limits.rate for step in makers.values()} == {777}
    assert makers["resolve"].policy == settings.policy()


@pytest.mark.parametrize(
    ("model", "effort", "times"),
    [
        ("openai/gpt-4.1", "medium", 1),
        ("openai/gpt-4.1", "high", 4),
        ("openai/no-such-model", "high", 1),
        ("anthropic/claude-sonnet-4-5", "high", 200 / 128),
    ],
)
def test_the_known_window_of_a_model_is_filled_at_high_effort_alone(
    model: str, effort: Effort, times: float
) -> None:
    usual = load_settings({"effort": effort}, {}).policy().limits
    found = load_settings({"effort": effort, "lm": model}, {}).policy().limits
    assert found.answer == int(usual.answer * times)


def test_a_small_window_that_is_known_shrinks_the_limits() -> None:
    assert load_settings({"lm": "openai/gpt-4"}, {}).policy().limits.answer == int(0.4 * 8192)
    own = {"lm": "openai/gpt-4", "lm_base_url": "http://127.0.0.1:1/v1"}
    assert load_settings(own, {}).policy().limits.answer == 6_000, (
        "who serves it may call it as they like"
    )


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("ollama/qwen2.5:0.5b", "small"),
        ("openai/Qwen2.5-Coder-1.5B-Instruct", "small"),
        ("ollama/llama3.2:1b", "small"),
        ("ollama/gemma3:270m", "small"),
        ("ollama/mistral:7b-instruct-q4_K_M", "small"),
        ("ollama/gemma3n:e4b", "small"),
        ("gguf//models-70b/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "small"),
        ("groq/llama-3.1-8b-instant", "small"),
        ("openai/phi-4:14b", "large"),
        ("ollama/gpt-oss:20b", "large"),
        ("ollama/mixtral:8x7b", "large"),
        ("ollama/qwen3:30b-a3b", "large"),
        ("together_ai/Llama-3.3-70B-4bit", "large"),
        ("openai/gpt-4o-mini", "large"),
        ("openai/gpt-4", "large"),
        ("openai/qwen", "large"),
        ("anthropic/claude-3-5-haiku-20241022", "large"),
        ("offline", "large"),
    ],
)
def test_the_profile_is_guessed_from_the_name(name: str, profile: str) -> None:
    assert load_settings({"lm": name}, {}).policy().profile == profile
    assert load_settings({"lm": name, "profile": "small"}, {}).policy().profile == "small"
    assert load_settings({"lm": name}, {"TRELLIS_PROFILE": "large"}).policy().profile == "large"


def test_a_name_without_a_size_goes_by_a_window_that_is_set() -> None:
    assert (
        load_settings({"lm": "openai/qwen", "context_window": 4_096}, {}).policy().profile
        == "small"
    )
    assert (
        load_settings({"lm": "openai/qwen", "context_window": 32_000}, {}).policy().profile
        == "large"
    )
    assert (
        load_settings({"lm": "openai/qwen-72b", "context_window": 4_096}, {}).policy().profile
        == "large"
    )


def test_one_small_model_of_a_question_makes_the_profile() -> None:
    def profile(**roles: str) -> str:
        own = {role: {"model": model} for role, model in roles.items()}
        return load_settings({"lm": "openai/gpt-4o", "roles": own}, {}).policy().profile

    assert profile(route="ollama/qwen3:4b") == "small"
    assert profile(extract="ollama/qwen3:4b") == "large", "no question asks it"
    assert profile(filter="cross-encoder/nli-1b") == "large", "it labels and writes nothing"


def test_small_chunks_need_no_overlap_of_their_own(tmp_path: Path) -> None:
    settings = load_settings({"chunk_tokens": 60}, settings_file(tmp_path, ""))
    assert settings.chunk_overlap == 10
    with pytest.raises(SettingsError, match="chunk_overlap"):
        load_settings({"chunk_tokens": 60, "chunk_overlap": 40}, settings_file(tmp_path, ""))
