"""What a model's settings say where a request says nothing."""

from __future__ import annotations

from dataclasses import replace

from interlock.core.output_format import GrammarFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest
from interlock.core.sampling import SamplingOptions
from interlock.settings.model import ModelSettings

SAMPLING_KEYS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
)


def with_defaults(request: GenerateRequest, settings: ModelSettings) -> GenerateRequest:
    """``request`` with its gaps filled. The model's grammar is for requests that name no format; text is one."""
    if settings == ModelSettings():
        return request
    output_format, reasoning = request.output_format, request.reasoning
    if isinstance(output_format, TextFormat) and not output_format.asked:
        output_format = default_format(settings)
    if reasoning.budget is None:
        reasoning = replace(reasoning, budget=settings.thinking_budget)
    return replace(
        request,
        output_format=output_format,
        reasoning=reasoning,
        sampling=_filled(request.sampling, settings),
    )


def default_format(settings: ModelSettings) -> OutputFormat:
    """The format of requests that name none."""
    if settings.grammar is None:
        return TextFormat()
    return GrammarFormat(source=settings.grammar, dialect=settings.grammar_syntax or "lark", param="grammar")


def sampling_defaults(settings: ModelSettings) -> SamplingOptions:
    return _filled(SamplingOptions(), settings)


def _filled(options: SamplingOptions, settings: ModelSettings) -> SamplingOptions:
    missing = {key: getattr(settings, key) for key in SAMPLING_KEYS if getattr(options, key) is None}
    return replace(options, **missing)
