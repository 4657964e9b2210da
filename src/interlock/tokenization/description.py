"""What the program knows of a model without loading its weights."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.core.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """architecture, name: as the model's files say, ``""`` if they do not. chat_template: Jinja source.
    context_tokens: the context the model was trained for, 0 if unknown. bos_token, eos_token: spellings for
    templates, ``""`` if there is none."""

    tokenizer: Tokenizer
    architecture: str
    name: str
    chat_template: str | None
    context_tokens: int
    bos_token: str
    eos_token: str
