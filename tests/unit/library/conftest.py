"""A model of bytes, whose family is Qwen3."""

from __future__ import annotations

import pytest

from interlock import Model
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

TEMPLATE = """{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{%- if tools %}{{ tools | tojson }}{% endif %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}"""


@pytest.fixture(scope="session")
def model() -> Model:
    tokenizer = byte_tokenizer(
        ("<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
    )
    description = ModelDescription(
        tokenizer=tokenizer,
        architecture="qwen3",
        name="bytes",
        chat_template=TEMPLATE,
        context_tokens=4096,
        bos_token="",
        eos_token="<|im_end|>",
    )
    return Model(description, family="qwen3")
