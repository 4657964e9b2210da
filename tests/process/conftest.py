"""Ten model families, each with its chat template, a vocabulary, and its own way to write calls by hand.

What is spelt here does not come from the declarations in ``interlock.families``: it is what the models write.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig, FakeConfig, HttpConfig, ServerConfig, SpeculativeConfig
from interlock.launch import BackgroundServer

Call = tuple[str, dict[str, Any]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _qwen3(calls: list[Call]) -> str:
    bodies = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)


def _qwen3_coder(calls: list[Call]) -> str:
    def call(name: str, arguments: dict[str, Any]) -> str:
        lines = "".join(
            f"<parameter={key}>\n{_text(value)}\n</parameter>\n" for key, value in arguments.items()
        )
        return f"<tool_call>\n<function={name}>\n{lines}</function>\n</tool_call>"

    return "\n".join(call(*one) for one in calls)


def _deepseek_v4(calls: list[Call]) -> str:
    def call(name: str, arguments: dict[str, Any]) -> str:
        lines = (
            f'<｜DSML｜parameter name="{key}" string="{json.dumps(isinstance(value, str))}">{_text(value)}</｜DSML｜parameter>'
            for key, value in arguments.items()
        )
        return "\n".join((f'<｜DSML｜invoke name="{name}">', *lines, "</｜DSML｜invoke>"))

    return "\n\n" + "\n".join(("<｜DSML｜tool_calls>", *(call(*one) for one in calls), "</｜DSML｜tool_calls>"))


def _kimi_k2(calls: list[Call]) -> str:
    bodies = (
        f"<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>{json.dumps(arguments)}<|tool_call_end|>"
        for number, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{''.join(bodies)}<|tool_calls_section_end|>"


def _gemma4(calls: list[Call]) -> str:
    def spell(value: Any) -> str:
        if isinstance(value, str):
            return f'<|"|>{value}<|"|>'
        if isinstance(value, list):
            return f"[{','.join(map(spell, value))}]"
        return json.dumps(value)

    def call(name: str, arguments: dict[str, Any]) -> str:
        fields = ",".join(f"{key}:{spell(value)}" for key, value in arguments.items())
        return f"<|tool_call>call:{name}{{{fields}}}<tool_call|>"

    return "".join(call(*one) for one in calls)


def _harmony(calls: list[Call]) -> str:
    name, arguments = calls[0]  # a call ends the turn
    header = f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
    return header + json.dumps(arguments)


def _llama3(calls: list[Call]) -> str:
    return "; ".join(json.dumps({"name": name, "parameters": arguments}) for name, arguments in calls)


_JSON_TYPES = {str: "string", int: "number", list: "array"}


def _kimi_k3(calls: list[Call]) -> str:
    def argument(key: str, value: Any) -> str:
        head = f'<|open|>argument key="{key}" type="{_JSON_TYPES[type(value)]}"<|sep|>'
        return f"{head}{_text(value)}<|close|>argument<|sep|>"

    def call(number: int, name: str, arguments: dict[str, Any]) -> str:
        fields = "".join(argument(*field) for field in arguments.items())
        return f'<|open|>call tool="{name}" index="{number}"<|sep|>{fields}<|close|>call<|sep|>'

    bodies = "".join(call(number, *one) for number, one in enumerate(calls, 1))
    answer = "<|open|>response<|sep|><|close|>response<|sep|>"
    return f"{answer}<|open|>tools<|sep|>{bodies}<|close|>tools<|sep|><|close|>message<|sep|>"


def _cohere_command(calls: list[Call]) -> str:
    bodies = ",\n    ".join(
        json.dumps({"tool_call_id": str(number), "tool_name": name, "parameters": arguments})
        for number, (name, arguments) in enumerate(calls)
    )
    return f"<|START_ACTION|>[\n    {bodies}\n]<|END_ACTION|>"


def _cohere_cofl(calls: list[Call]) -> str:
    def value(key: str, found: Any) -> str:
        kind = "raw" if isinstance(found, str) else "json"
        return f'<cofl:value name="{key}" type="{kind}">{_text(found)}</cofl:value>'

    def call(number: int, name: str, arguments: dict[str, Any]) -> str:
        fields = "".join(value(*field) for field in arguments.items())
        return f'<cofl:tool_call id="{number}" name="{name}">{fields}</cofl:tool_call>'

    return (
        f"<cofl:tool_calls>{''.join(call(number, *one) for number, one in enumerate(calls))}</cofl:tool_calls>"
    )


@dataclass(frozen=True, kw_only=True)
class Model:
    """spell: calls as the model writes them. think: a thought around ``{}``, ``""`` where it has none.
    thinking: ``chat_template_kwargs`` that switch thinking on. added: tokens that its vocabulary has and the one at
    hand lacks. calls_end_thinking: a call inside a thought is a call. parallel: it writes several calls in a turn. guesses: it is
    served with guesses of tokens ahead. answer: an answer around ``{}``. family: where the template does not say it.
    bare: calls have no marker."""

    spell: Callable[[list[Call]], str]
    vocabulary: str
    template: str
    stop: str
    think: str = ""
    thinking: dict[str, Any] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    calls_end_thinking: bool = False
    parallel: bool = True
    guesses: bool = False
    answer: str = "{}"
    family: str | None = None
    bare: bool = False


MODELS = {
    "qwen3": Model(
        spell=_qwen3,
        vocabulary="qwen3",
        template="Qwen-Qwen3-0.6B",
        stop="<|im_end|>",
        think="<think>\n{}\n</think>\n\n",
    ),
    "qwen3_coder": Model(
        spell=_qwen3_coder,
        vocabulary="qwen3",
        template="Qwen3.5-4B",
        stop="<|im_end|>",
        think="{}\n</think>\n\n",  # the prompt has opened it
        thinking={"enable_thinking": True},
    ),
    "deepseek_v4": Model(
        spell=_deepseek_v4,
        vocabulary="deepseek_v4",
        template="deepseek-ai-DeepSeek-V4",
        stop="<｜end▁of▁sentence｜>",
        think="{}</think>",
        thinking={"thinking": True},
        calls_end_thinking=True,
    ),
    "kimi_k2": Model(
        spell=_kimi_k2,
        vocabulary="qwen3",
        template="Kimi-K2-Thinking",
        stop="<|im_end|>",
        think="<think>{}</think>",
        added=(
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            "<|im_system|>",
            "<|im_user|>",
            "<|im_assistant|>",
            "<|im_middle|>",
        ),
        calls_end_thinking=True,
        guesses=True,
    ),
    "gemma4": Model(
        guesses=True,
        spell=_gemma4,
        vocabulary="gemma3",
        template="google-gemma-4-31B-it",
        stop="<turn|>",
        think="<|channel>thought\n{}\n<channel|>",
        thinking={"enable_thinking": True},
        added=(
            "<|tool_call>",
            "<tool_call|>",
            "<|channel>",
            "<channel|>",
            '<|"|>',
            "<|turn>",
            "<turn|>",
            "<|tool>",
            "<tool|>",
            "<|think|>",
            "<|tool_response>",
            "<tool_response|>",
        ),
    ),
    "harmony": Model(
        spell=_harmony,
        vocabulary="gptoss",
        template="openai-gpt-oss-120b",
        stop="<|return|>",
        think="<|channel|>analysis<|message|>{}<|end|><|start|>assistant",
        parallel=False,
    ),
    "llama3": Model(
        spell=_llama3,
        vocabulary="llama3_1",
        template="meta-llama-Llama-3.1-8B-Instruct",
        stop="<|eot_id|>",
        bare=True,
    ),
}


# Served with a vocabulary of bytes, in which every word of a marker is several tokens.
OTHERS = {
    "kimi_k3": Model(
        spell=_kimi_k3,
        vocabulary="bytes",
        template="Kimi-K3",
        stop="<|end_of_msg|>",
        think="{}<|close|>think<|sep|>",  # the prompt has opened it
        thinking={"thinking": True},
        added=("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
        answer="<|open|>response<|sep|>{}<|close|>response<|sep|><|close|>message<|sep|>",
    ),
    "cohere_command": Model(
        spell=_cohere_command,
        vocabulary="bytes",
        template="CohereForAI-c4ai-command-r7b-12-2024-tool_use",
        stop="<|END_OF_TURN_TOKEN|>",
        think="<|START_THINKING|>{}<|END_THINKING|>",
        thinking={"enable_thinking": True},
        added=(
            "<|END_OF_TURN_TOKEN|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
        ),
        answer="<|START_RESPONSE|>{}<|END_RESPONSE|>",
    ),
    "cohere_cofl": Model(
        spell=_cohere_cofl,
        vocabulary="bytes",
        template="Cohere2MoE",
        stop="<|END_OF_TURN_TOKEN|>",
        think="{}<|END_THINKING|>",  # the prompt has opened it
        thinking={"reasoning": True},
        added=(
            "<|END_OF_TURN_TOKEN|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|START_TEXT|>",
            "<|END_TEXT|>",
        ),
        answer="<|START_TEXT|>{}<|END_TEXT|>",
        family="cohere_cofl",
    ),
}


def _tokenizer(vocabulary: str, shared: Path) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Contents of ``tokenizer.json``, and of what is read of its settings."""
    if vocabulary == "bytes":
        printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        letters = {byte: byte for byte in printed}
        letters |= {byte: 0x100 + at for at, byte in enumerate(b for b in range(0x100) if b not in letters)}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        vocab = {chr(letters[byte]): byte for byte in range(0x100)}
        model = {"type": "BPE", "vocab": vocab, "merges": []}
        known = {"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": level, "decoder": level}
        return known, {"bos_token": None}
    source = shared / "data/tokenizers" / vocabulary
    known = json.loads(lzma.decompress((source / "tokenizer.json.xz").read_bytes()))
    return known, json.loads((source / "tokenizer_config.json").read_text())


def _write_model(model: Model, shared: Path, folder: Path) -> None:
    """The files of a model, without weights."""
    tokenizer, settings = _tokenizer(model.vocabulary, shared)
    added = tokenizer["added_tokens"]
    first = 1 + max((*tokenizer["model"]["vocab"].values(), *(token["id"] for token in added)))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for number, content in enumerate(model.added):
        added.append({"id": first + number, "content": content, **flags})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    kept = {"bos_token": settings["bos_token"], "eos_token": model.stop}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    template = shared / "data/chat_templates" / f"{model.template}.jinja"
    (folder / "chat_template.jinja").write_text(template.read_text("utf-8"))


@pytest.fixture(scope="module", params=MODELS)
def model_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def model(model_name: str) -> Model:
    return (MODELS | OTHERS)[model_name]


Serve = Callable[[dict[str, str]], AbstractContextManager[str]]


@pytest.fixture(scope="module")
def serve_script(
    model_name: str, model: Model, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Serve:
    """Serves the model: a prompt that holds ``[key]`` is answered with the text of that key. Gives the URL."""
    folder = tmp_path_factory.mktemp(model_name)
    _write_model(model, shared, folder)

    @contextmanager
    def serve(script: dict[str, str]) -> Iterator[str]:
        entries = [{"when": f"[{key}]", "say": [text]} for key, text in script.items()]
        (folder / "script.json").write_text(json.dumps(entries))
        fake = FakeConfig(mode="scripted", script=folder / "script.json", tokenizer=folder)
        guesses = SpeculativeConfig(methods=("skeleton", "ngram"), adaptive=False) if model.guesses else None
        engine = EngineConfig(
            model=folder,
            runner="fake",
            slots=8,
            context_tokens=4096 if model.vocabulary != "bytes" else 16384,
            fake=fake,
            speculative=guesses,
        )
        server = BackgroundServer(
            ServerConfig(
                served_name=model_name,
                family=model.family,
                engine=engine,
                http=HttpConfig(port=0, drain_s=1),
            )
        )
        yield server.start()
        server.stop()

    return serve
