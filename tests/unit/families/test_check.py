from __future__ import annotations

from collections.abc import Callable

from interlock.families import gemma4, generic, harmony, minimax_m3, qwen3
from interlock.families.base import ModelFamily
from interlock.families.check import self_check
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]


def check(family: ModelFamily, description: ModelDescription) -> tuple[str, ...]:
    return self_check(family, description.tokenizer, PromptRenderer(family, description))


def test_a_family_that_fits_its_model_passes(
    templates: Callable[[str], str], describe: Describe, chatml: str
) -> None:
    assert check(qwen3.FAMILY, describe(templates("Qwen-Qwen3-0.6B"))) == ()
    assert check(generic.FAMILY, describe(chatml)) == ()


def test_what_does_not_work_is_said(templates: Callable[[str], str], describe: Describe, chatml: str) -> None:
    problems = check(gemma4.FAMILY, describe(templates("google-gemma-4-31B-it")))
    assert len(problems) == 1
    assert problems[0].startswith("the vocabulary has no token for ")
    assert '<|"|>' in problems[0]
    (problem,) = check(qwen3.FAMILY, describe(chatml))
    assert "neither tools nor calls" in problem
    tokens = (
        "<|im_end|>",
        "<|start|>",
        "<|end|>",
        "<|message|>",
        "<|channel|>",
        "<|constrain|>",
        "<|return|>",
        "<|call|>",
    )
    assert check(harmony.FAMILY, describe(templates("openai-gpt-oss-120b"), byte_tokenizer(tokens))) == ()


def test_a_marker_that_is_no_token_is_told_and_matched_as_text(
    templates: Callable[[str], str], describe: Describe
) -> None:
    (problem,) = check(minimax_m3.FAMILY, describe(templates("MiniMax-M3")))
    assert "no token for ]<]minimax[>[" in problem
    assert "matched as text" in problem
