"""A language model of this machine as a role's model: `transformers/PATH`.

PATH is the folder of a model or of a LoRA adapter, or a name in the Hub's cache; nothing is
downloaded. torch and transformers are imported at the first call.
"""

import asyncio
import threading
from functools import cache
from pathlib import Path
from typing import Any

from dspy import lm15

from prompts.engine.chat_server import text_of
from prompts.engine.errors import ContextOverflow, ModelMisconfigured, ModelUnavailable
from prompts.engine.providers import LOCAL

ADAPTER = "adapter_config.json"
_WEIGHTS = (ADAPTER, "adapter_model.safetensors", "config.json", "model.safetensors")
_TURN = threading.Lock()  # the models of this machine answer one call at a time


def load_language_model(name: str) -> tuple[Any, Any]:
    """The model and its tokenizer, from a folder or from the Hub's cache.

    ModelUnavailable where it is not on this machine; ModelMisconfigured without a chat template.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer  # it takes seconds to load

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        adapted = (Path(name) / ADAPTER).exists()
        needs = "Install trellis-rag[train], which brings peft, and " if adapted else ""
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


class TransformersEngine:
    """An engine of a `dspy.LM`.

    `address` holds the time of the weights, since those of an earlier training gave other answers.
    """

    supports_response_schema = False

    def __init__(self, name: str, timeout: float) -> None:
        folder = Path(name).expanduser()
        self._name = str(folder) if folder.is_dir() else name
        files = [folder / file for file in _WEIGHTS if (folder / file).exists()]
        written = max((file.stat().st_mtime_ns for file in files), default=0)
        self.address = f"{LOCAL}{self._name}@{written}"
        self._timeout = timeout

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """One response.

        Raises ContextOverflow where the prompt does not fit into the model, ModelUnavailable where
        the time ends before the answer does.
        """
        return await asyncio.to_thread(self._complete, request)

    def _complete(self, request: lm15.Request) -> lm15.Response:
        import torch  # it takes seconds to load

        with _TURN:
            model, tokenizer = _loaded(self.address, self._name)
            turns = [{"role": it.role, "content": text_of(it.parts)} for it in request.messages]
            if request.system:
                turns.insert(0, {"role": "system", "content": request.system})
            read = tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
            ).to(model.device)
            given = int(read["input_ids"].shape[1])
            context = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
            if context <= given:
                raise ContextOverflow(
                    f"{LOCAL}{self._name} reads at most {context} tokens; the prompt has {given}.",
                    "Set TRELLIS_CONTEXT_WINDOW to what it reads, or use a model that reads more.",
                )
            heat, most = request.config.temperature or 0.0, request.config.max_tokens or context
            room = min(most, context - given)
            sampling = {"do_sample": True, "temperature": heat} if heat else {"do_sample": False}
            with torch.inference_mode():
                written = model.generate(
                    **read,
                    **sampling,
                    max_new_tokens=room,
                    max_time=self._timeout,
                    pad_token_id=tokenizer.pad_token_id,
                )[0, given:]
        ends = model.generation_config.eos_token_id
        ended = int(written[-1]) in (ends if isinstance(ends, list) else [ends])
        if not ended and len(written) < room:  # another try would be as slow
            raise ModelUnavailable(
                f"{LOCAL}{self._name}: its answer was not complete within {self._timeout:.0f} s.",
                "Raise TRELLIS_TIMEOUT (seconds), lower TRELLIS_MAX_TOKENS, or use a smaller "
                "model.",
            )
        return lm15.Response(
            id=None,
            model=self._name,
            message=lm15.Message.assistant(tokenizer.decode(written, skip_special_tokens=True)),
            finish_reason="stop" if ended else "length",
            usage=lm15.Usage(input_tokens=given, output_tokens=int(written.shape[0])),
        )


@cache
def _loaded(_address: str, name: str) -> tuple[Any, Any]:
    """A model on the accelerator where there is one, and its tokenizer."""
    import torch  # it takes seconds to load

    model, tokenizer = load_language_model(name)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), tokenizer
