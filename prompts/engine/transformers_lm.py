"""A language model of this machine as a role's model: `transformers/PATH`, a folder of a model or of a LoRA adapter.

torch and transformers are imported at the first call. A model answers one call at a time. Nothing is downloaded.
"""

import asyncio
import threading
from functools import cache
from pathlib import Path
from typing import Any

from dspy import lm15

from prompts.engine.embedders import Lazy
from prompts.engine.errors import ContextOverflow, ModelMisconfigured, ModelUnavailable
from prompts.engine.failures import Failure
from prompts.engine.providers import LOCAL

ADAPTER = "adapter_config.json"
_WEIGHTS = (ADAPTER, "adapter_model.safetensors", "config.json", "model.safetensors")


def load_language_model(name: str) -> tuple[Any, Any]:
    """The model and its tokenizer, of a folder or of what the Hub's cache holds under this name.

    ModelUnavailable where it is not on this machine; ModelMisconfigured where it has no chat template.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        needs = "Install trellis-rag[train], which brings peft, and " if (Path(name) / ADAPTER).exists() else ""
        raise ModelUnavailable(
            f"The language model {name!r} cannot be loaded: {str(error).splitlines()[0]}",
            f"{needs}name a folder that holds it, or fetch it once with `hf download`.",
        ) from error
    if not tokenizer.chat_template:
        raise ModelMisconfigured(
            f"The model {name!r} has no chat template: it was not made for instructions.",
            "Use a model that was (often named -Instruct).",
        )
    return model, tokenizer


def address_of_folder(name: str) -> str:
    """Where the model is and when its weights were written: answers of an earlier training are not its own."""
    files = [Path(name).expanduser() / file for file in _WEIGHTS]
    return f"{LOCAL}{name}@{max((file.stat().st_mtime_ns for file in files if file.exists()), default=0)}"


class TransformersEngine:
    """The engine of a `dspy.LM`: one request, one generated reply, without sampling at temperature 0."""

    supports_response_schema = False

    def __init__(self, name: str, timeout: float) -> None:
        self._name = str(Path(name).expanduser()) if Path(name).expanduser().is_dir() else name
        self.address = address_of_folder(self._name)
        self._timeout = timeout

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Raises Failure with ContextOverflow where the prompt and the answer do not fit into the model."""
        return await asyncio.to_thread(self._complete, request)

    def _complete(self, request: lm15.Request) -> lm15.Response:
        loaded = _loaded(self.address, self._name).get()
        with loaded.lock:
            return loaded.answer(request, self._timeout)


@cache
def _loaded(_address: str, name: str) -> "Lazy[_Loaded]":
    return Lazy(lambda: _Loaded(name))


class _Loaded:
    """A model in memory, on the accelerator where there is one."""

    def __init__(self, name: str) -> None:
        import torch

        self.name = name
        self.lock = threading.Lock()
        self._model, self._tokenizer = load_language_model(name)
        self._model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        self._context = int(getattr(self._model.config, "max_position_embeddings", 0) or 1 << 30)

    def answer(self, request: lm15.Request, timeout: float) -> lm15.Response:
        import torch

        system = [{"role": "system", "content": request.system}] if request.system else []
        turns = [{"role": turn.role, "content": _text_of(turn)} for turn in request.messages]
        read = self._tokenizer.apply_chat_template(
            [*system, *turns], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        ).to(self._model.device)
        given = int(read["input_ids"].shape[1])
        room = self._context - given
        if room < 1:
            raise Failure(
                ContextOverflow(
                    f"{LOCAL}{self.name} reads at most {self._context} tokens; the prompt has {given}.",
                    "Set TRELLIS_CONTEXT_WINDOW to what it reads, or use a model with a longer context.",
                )
            )
        most, heat = min(request.config.max_tokens or room, room), request.config.temperature or 0.0
        sampling = {"do_sample": True, "temperature": heat} if heat > 0 else {"do_sample": False}
        with torch.inference_mode():
            written = self._model.generate(
                **read, **sampling, max_new_tokens=most, max_time=timeout, pad_token_id=self._tokenizer.pad_token_id
            )[0, given:]
        ends = self._model.generation_config.eos_token_id
        ended = int(written[-1]) in (ends if isinstance(ends, list) else [ends])
        text = self._tokenizer.decode(written, skip_special_tokens=True)
        return lm15.Response(
            id=None, model=self.name, message=lm15.Message.assistant(text), finish_reason="stop" if ended else "length",
            usage=lm15.Usage(input_tokens=given, output_tokens=int(written.shape[0])),
        )  # fmt: skip


def _text_of(turn: lm15.Message) -> str:
    return "".join(part.text for part in turn.parts if isinstance(part, lm15.TextPart))
