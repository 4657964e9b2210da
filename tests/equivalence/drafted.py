"""Requests whose outputs must not depend on forced tokens and drafts, and a model that repeats itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from interlock.config import SpeculativeConfig, SpeculativeMethod
from interlock.constraints.lowering import lower
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineRequest, LengthClosing, ThinkingBudget
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.runners.fake import Prefix, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
SIZE = TOKENIZER.vocabulary.size
CLOSE_IDS = {
    "thinking": tuple(TOKENIZER.encode("</think>")),
    "free-thinking": tuple(TOKENIZER.encode("</think>")),
    "marker-thinking": tuple(TOKENIZER.encode("</think>end<tool_call>")),
    "free-marker-thinking": tuple(TOKENIZER.encode("</think>end<tool_call>")),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 8},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
ALL: tuple[SpeculativeMethod, ...] = ("skeleton", "ngram")


class HabitLogits:
    """A model with habits: one letter follows another nearly always, so that its text repeats itself."""

    def __init__(self, seed: int = 0, strength: float = 7.0) -> None:
        self._base = UniformLogits(SIZE, seed)
        self._strength = np.float32(strength)

    def row(self, prefix: Prefix) -> np.ndarray[Any, np.dtype[np.float32]]:
        values = self._base.row(prefix).copy()
        last = prefix.tokens[prefix.length - 1]
        values[97 + (last * 7 + 3) % 9] += self._strength
        values[ord('"')] += self._strength - 2
        return values


def grammar(lark: str, literals: tuple[str, ...] = ()) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark, literals=literals)


LITERALS = ("city", "unit", "days", "celsius", "fahrenheit")
CONSTRAINTS: dict[str, LoweredConstraint | None] = {
    "free": None,
    "json": grammar(f"start: %json {json.dumps(SCHEMA)}", LITERALS),
    "call": grammar(
        'start: <tool_call> "\\n{\\"name\\": \\"weather\\", \\"arguments\\": " args "}\\n" </tool_call>\n'
        f"args: %json {json.dumps(SCHEMA)}",
        LITERALS,
    ),
    "guarded": lower(
        ConstraintSpec(
            root=JsonValue(
                schema=json.dumps(
                    {
                        "type": "array",
                        "items": {"type": "string", "pattern": "^[a-c]{1,2}$"},
                        "uniqueItems": True,
                        "minItems": 4,
                        "maxItems": 6,
                    }
                )
            )
        ),
        TOKENIZER.special_tokens,
    ),
    "regex": grammar("start: /[a-z]{3,12}(, [a-z]{2,9}){0,3}/"),
    "choice": grammar('start: "left hand" | "left foot" | "right"', ("left hand", "left foot", "right")),
    "constant": grammar('start: "always the same"'),
    "thinking": grammar("start: /[a-z ]{0,40}/ </think> /[0-9]{4}/"),
    "free-thinking": None,
    "marker-thinking": grammar('start: /[a-z ]{0,40}/ </think> "end" <tool_call> /[0-9]{4}/'),
    "free-marker-thinking": None,
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.9, seed=11, top_p=0.9),
    "penalised": SamplingParams(
        temperature=1.0, seed=5, frequency_penalty=0.4, presence_penalty=0.2, repetition_penalty=1.1
    ),
    "biased": SamplingParams(temperature=0.0, repetition_penalty=1.3, logit_bias=((ord("b"), 3.0),)),
    "logprobs": SamplingParams(temperature=0.7, seed=3, logprobs=3),
}
LIMITS = {
    "seeded": TokenLimits(min_tokens=8, banned=(tuple(b"ab"), tuple(b"x"))),
    "biased": TokenLimits(suppressed=TOKENIZER.vocabulary.stop_ids, banned=(tuple(b"bc"),)),
}


def requests() -> list[EngineRequest]:
    made = []
    for kind, constraint in CONSTRAINTS.items():
        budget = ThinkingBudget(max_tokens=6, close_ids=CLOSE_IDS[kind]) if kind in CLOSE_IDS else None
        for way, sampling in SAMPLINGS.items():
            name = f"{kind}-{way}"
            stop_ids = TOKENIZER.vocabulary.stop_ids + ((ord("e"),) if way == "penalised" else ())
            made.append(
                EngineRequest(
                    request_id=name,
                    prompt_ids=tuple(
                        TOKENIZER.encode(f'{name}: {{"city": "abcab", "unit": "celsius"}} abcabc')
                    ),
                    sampling=sampling,
                    max_tokens=[9, 25, 60][len(made) % 3],
                    stop_ids=stop_ids,
                    constraint=constraint,
                    limits=LIMITS.get(way, TokenLimits()),
                    thinking=budget,
                    closing=LengthClosing(),
                    report_accepting=way in ("seeded", "biased"),
                )
            )
    return made


def speculative(*methods: SpeculativeMethod, tokens: int = 7, adaptive: bool = False) -> SpeculativeConfig:
    model = Path("small") if "draft_model" in methods else None
    return SpeculativeConfig(
        methods=methods, num_speculative_tokens=tokens, adaptive=adaptive, model=model, prompt_lookup_min=1
    )
