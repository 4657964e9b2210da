"""What resolving reads of the served model."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.config import GenerationDefaults
from interlock.core.engine import EngineTraits
from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily
from interlock.families.wire.render import PromptRenderer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """context_tokens: most tokens of prompt plus output. longest_token: bytes of the longest token."""

    family: ModelFamily
    tokenizer: Tokenizer
    renderer: PromptRenderer
    defaults: GenerationDefaults
    context_tokens: int
    longest_token: int
    engine: EngineTraits = EngineTraits()
