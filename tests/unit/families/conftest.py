"""Models of the two families: a real vocabulary where shared data is there, bytes else."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.hf import hf_tokenizer

# Time is bounded by tests of their own; a busy machine must not fail the others.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def _describe(template: str | None, tokenizer: Tokenizer | None = None, **names: str) -> ModelDescription:
    return ModelDescription(
        tokenizer=tokenizer or byte_tokenizer(),
        architecture=names.get("architecture", ""),
        name="",
        chat_template=template,
        context_tokens=0,
        bos_token=names.get("bos_token", ""),
        eos_token=names.get("eos_token", "<|im_end|>"),
    )


@pytest.fixture(scope="session")
def describe() -> Callable[..., ModelDescription]:
    return _describe


@pytest.fixture
def chatml() -> str:
    """A chat template that ignores tools."""
    return CHATML


@pytest.fixture(scope="session")
def templates(shared: Path) -> Callable[[str], str]:
    """Chat templates as models ship them, by file name."""
    return lambda name: (shared / "data" / "chat_templates" / f"{name}.jinja").read_text("utf-8")


@pytest.fixture(scope="session")
def qwen3_json(shared: Path) -> str:
    return lzma.decompress((shared / "data/tokenizers/qwen3/tokenizer.json.xz").read_bytes()).decode()


@pytest.fixture(scope="session")
def qwen3_tokenizer(qwen3_json: str) -> Any:
    return hf_tokenizer(qwen3_json, turn_ends=["<|im_end|>"])
