"""What a request says about thinking, made consistent; and the budget that ends thinking in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interlock.core.engine import ThinkingBudget
from interlock.core.request import ReasoningOptions
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.families.base import ReasoningFormat, Thinking
from interlock.resolve.closing import opener_id

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def resolve_reasoning(
    options: ReasoningOptions, template_kwargs: Mapping[str, Any], format_: ReasoningFormat | None
) -> ReasoningOptions:
    """The options with ``enabled`` set wherever the request says something about it.

    Thinking can be switched by ``enabled``, by the effort ``none``, and by the family's own template
    variable; they must agree. Raises ``invalid_value``, ``conflicting_parameters``, and
    ``unsupported_parameter`` where a model that cannot think is asked to.
    """
    if options.effort is not None and options.effort not in EFFORTS:
        raise InterlockError(
            "invalid_value", f"reasoning_effort must be one of {', '.join(EFFORTS)}", param="reasoning_effort"
        )
    if options.budget is not None and options.budget < 0:
        raise InterlockError("invalid_value", "thinking_budget must not be negative", param="thinking_budget")
    enabled = _enabled(options, template_kwargs, format_)
    asked = enabled is True or options.effort not in (None, "none")
    if format_ is None and asked:
        raise InterlockError(
            "unsupported_parameter",
            "this model does not think, so thinking cannot be asked of it",
            param="reasoning_effort" if options.effort else "enable_thinking",
        )
    return replace(options, enabled=enabled)


def _enabled(
    options: ReasoningOptions, template_kwargs: Mapping[str, Any], format_: ReasoningFormat | None
) -> bool | None:
    said = {}
    if options.enabled is not None:
        said["enable_thinking"] = options.enabled
    if options.effort is not None:
        said["reasoning_effort"] = options.effort != "none"
    if format_ is not None and format_.enabled_kwarg in template_kwargs:
        said[f"chat_template_kwargs.{format_.enabled_kwarg}"] = bool(template_kwargs[format_.enabled_kwarg])
    if len(set(said.values())) > 1:
        raise InterlockError(
            "conflicting_parameters",
            f"{' and '.join(said)} contradict each other about thinking",
            param=list(said)[-1],
        )
    return next(iter(said.values()), None)


def resolve_thinking_budget(
    requested: int | None,
    *,
    thinking: Thinking,
    format_: ReasoningFormat | None,
    tokenizer: Tokenizer,
    openers: tuple[str, ...] = (),
    constrained: bool,
    max_tokens: int,
    cap: int,
) -> tuple[ThinkingBudget | None, tuple[str, ...]]:
    """The budget, and a note for the caller where the server chose it.

    A constrained answer needs room after thinking, so without a requested budget half of ``max_tokens``
    (at most ``cap``) is kept for it. A free answer is never cut unasked. The engine counts tokens between
    markers that it knows by their ids. A marker may be several tokens (``<|close|>think<|sep|>``) if the first and
    the last are special tokens, so that nothing around it can merge with it; else ``unsupported_parameter``. Of an
    opener that ends in text the first token counts. openers: what begins calls; where a call ends thinking, their first
    special tokens end it.
    """
    if format_ is None or thinking not in ("open", "optional"):
        return None, ()
    closer, reopener = (
        _marker_ids(format_.close, tokenizer),
        _marker_ids(format_.resume + format_.open, tokenizer),
    )
    opener = _marker_ids(format_.open, tokenizer)
    if opener is None and not format_.repeats:  # <|channel>thought: its first token says enough
        opener = reopener = _first_special(format_.open, tokenizer)
    if opener is None or closer is None or reopener is None:
        if requested is not None:
            raise InterlockError(
                "unsupported_parameter",
                f"thinking_budget needs {format_.open} and {format_.close} to begin and end with tokens of the vocabulary",
                param="thinking_budget",
            )
        return None, ()
    notes: tuple[str, ...] = ()
    if requested is None:
        if not constrained:
            return None, ()
        requested = min(max_tokens // 2, cap)
        notes = (f"thinking ends after {requested} tokens so that the constrained answer has room",)
    budget = ThinkingBudget(
        max_tokens=requested,
        close_ids=closer,
        open_ids=opener if thinking == "optional" else (),
        reopen_ids=reopener if format_.repeats else (),
        end_ids=_call_ids(openers, tokenizer) if format_.closed_by_tool_call else (),
    )
    return budget, notes


def _marker_ids(marker: str, tokenizer: Tokenizer) -> tuple[int, ...] | None:
    """The ids of ``marker``; ``None`` where text around it could merge with its first or last token."""
    ids = tuple(tokenizer.encode(marker))
    special = tokenizer.vocabulary.special_ids
    return ids if ids and ids[0] in special and ids[-1] in special else None


def _first_special(marker: str, tokenizer: Tokenizer) -> tuple[int, ...] | None:
    """The id of the special token that ``marker`` begins with."""
    ids = tokenizer.encode(marker)
    return (ids[0],) if ids and ids[0] in tokenizer.vocabulary.special_ids else None


def _call_ids(openers: tuple[str, ...], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The first special token in each of ``openers`` that has one."""
    found = (opener_id(opener, tokenizer) for opener in openers)
    return tuple(dict.fromkeys(token for token in found if token is not None))
