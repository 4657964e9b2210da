"""The special tokens that a model of a family has, as far as its declaration shows them."""

from __future__ import annotations

import re

from interlock.families.base import ModelFamily

_TOKEN = re.compile(
    r"<\|[^|<>]*\|>|<｜[^｜<>]*｜>|<\|[a-z_\"]+>|<[a-z_]+\|>|｜DSML｜|\]<\]minimax\[>\[|\[/?[A-Z_]+\]"
    r"|</?(?:seed:|mm:|minimax:)?(?:think|tool_call|tool_calls)>|<(?:start|end)_function_call>|<escape>"
)


def family_tokens(family: ModelFamily) -> tuple[str, ...]:
    texts = "\n".join((*family.markers(), *family.stop_tokens))
    return tuple(dict.fromkeys(("<|im_end|>", *_TOKEN.findall(texts))))
