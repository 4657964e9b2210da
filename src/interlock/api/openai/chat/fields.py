"""Fields of other servers and of OpenAI that are not in ``wire``: refused or ignored, one table.

A field that would change the output is refused, unless its value is the one that changes nothing. Every
other unknown field, also of nested objects, is ignored and named in the response header
``x-interlock-ignored``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from interlock.errors import InterlockError

MAX_NAMED = 32
MAX_NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class Refused:
    """neutral: values that ask for nothing (``null`` always does). hint: what to use instead."""

    neutral: tuple[Any, ...] = ()
    hint: str | None = None


_FORMAT = "use response_format or structured_outputs"
_THINKING = "use reasoning_effort, thinking_budget or chat_template_kwargs.enable_thinking"
_TEMPLATE = "the model's own chat template is always used"
_TRUNCATED = "shorten the prompt in the client"

REFUSED: Mapping[str, Refused] = {
    # OpenAI
    "n": Refused((1,), "send several requests"),
    "logprobs": Refused((False,)),
    "top_logprobs": Refused((0,)),
    "audio": Refused(),
    "modalities": Refused((["text"],), "only text is generated"),
    "prediction": Refused(),
    "web_search_options": Refused(),
    "verbosity": Refused(("medium",), "ask for it in the prompt"),
    "functions": Refused(([],), "use tools"),
    "function_call": Refused((), "use tool_choice"),
    # fields of other endpoints and other servers' spellings
    "prompt": Refused((), "use messages"),
    "input": Refused((), "use messages"),
    "system": Refused((), "use a message of role system"),
    "text": Refused((), _FORMAT),
    "format": Refused((), _FORMAT),
    "output_format": Refused((), _FORMAT),
    "output_config": Refused((), _FORMAT),
    "json_schema": Refused((), _FORMAT),
    "grammar": Refused((), "use structured_outputs.grammar"),
    "regex": Refused((), "use structured_outputs.regex"),
    "ebnf": Refused((), "use structured_outputs.grammar"),
    "structural_tag": Refused((), _FORMAT),
    "guided_json": Refused((), "use structured_outputs.json"),
    "guided_regex": Refused((), "use structured_outputs.regex"),
    "guided_choice": Refused((), "use structured_outputs.choice"),
    "guided_grammar": Refused((), "use structured_outputs.grammar"),
    "guided_decoding_backend": Refused((), "leave it out"),
    "guided_whitespace_pattern": Refused((), "use interlock.whitespace"),
    "thinking": Refused((), _THINKING),
    "reasoning": Refused((), _THINKING),
    "enable_thinking": Refused((), _THINKING),
    "think": Refused((), _THINKING),
    "max_output_tokens": Refused((), "use max_completion_tokens"),
    "stop_sequences": Refused(([],), "use stop"),
    "repeat_penalty": Refused((1,), "use repetition_penalty"),
    # sampling and decoding
    "best_of": Refused((1,)),
    "use_beam_search": Refused((False,)),
    "length_penalty": Refused((1,)),
    "early_stopping": Refused((False,)),
    "min_tokens": Refused((0,)),
    "bad_words": Refused(([],)),
    "ignore_eos": Refused((False,)),
    "stop_token_ids": Refused(([],)),
    "allowed_token_ids": Refused(([],)),
    "logits_processors": Refused(([],)),
    "custom_logit_processor": Refused(),
    "typical_p": Refused((1,)),
    "top_a": Refused((0,)),
    "tfs_z": Refused((1,)),
    "mirostat": Refused((0,)),
    "xtc_probability": Refused((0,)),
    "dry_multiplier": Refused((0,)),
    "no_repeat_ngram_size": Refused((0,)),
    # prompt and text
    "echo": Refused((False,)),
    "suffix": Refused(("",)),
    "prompt_logprobs": Refused((0,)),
    "chat_template": Refused((), _TEMPLATE),
    "documents": Refused(([],)),
    "add_generation_prompt": Refused((True,)),
    "continue_final_message": Refused((False,)),
    "add_special_tokens": Refused((False,)),
    "truncate_prompt_tokens": Refused((), _TRUNCATED),
    "truncation": Refused(("disabled",), _TRUNCATED),
    "include_stop_str_in_output": Refused((False,)),
    "skip_special_tokens": Refused((True,)),
    "spaces_between_special_tokens": Refused((True,)),
    "lora_path": Refused(),
}

# Options that other servers take inside an object of ``wire``; false and null ask for nothing.
_STRUCTURED_HINTS: Mapping[str, str] = {
    "structural_tag": "use tools with tool_choice, or structured_outputs.grammar",
    "whitespace_pattern": "use interlock.whitespace",
    "disable_any_whitespace": "leave it out: white space is fixed unless interlock.whitespace is flexible",
    "disable_additional_properties": "leave it out: objects are closed unless interlock.open_objects is true",
}


def refuse_unsupported(extra: Mapping[str, Any]) -> None:
    """Raise ``unsupported_parameter`` for the first field of the body that asks for what is not there."""
    for name, value in extra.items():
        rule = REFUSED.get(name)
        if rule is not None and value is not None and value not in rule.neutral:
            raise _unsupported(name, rule.hint)


def refuse_structured_options(extra: Mapping[str, Any]) -> None:
    """The same for unknown keys of ``structured_outputs``."""
    for name, value in extra.items():
        if value not in (None, False):
            raise _unsupported(f"structured_outputs.{name}", _STRUCTURED_HINTS.get(name))


def ignored_header(names: Iterable[str]) -> str:
    """Sorted, separated by commas, safe in a header whatever the client called its fields; bounded."""
    safe = sorted({quote(name[:MAX_NAME_CHARS], safe="[]") for name in names})
    return ", ".join([*safe[:MAX_NAMED], *(["..."] if len(safe) > MAX_NAMED else [])])


def ignored(wire: BaseModel) -> Iterator[str]:
    """Names of the fields that were dropped: present, not null, and not in the table; those of nested
    objects with their path, ``messages[].cache_control``."""
    return (name for name in _unknown(wire, "") if name not in REFUSED)


def _unknown(wire: BaseModel, path: str) -> Iterator[str]:
    for name, value in (wire.model_extra or {}).items():
        if value is not None:
            yield path + name
    for name, field in type(wire).model_fields.items():
        value = getattr(wire, name)
        spelling = path + (field.alias or name)
        if isinstance(value, BaseModel):
            yield from _unknown(value, f"{spelling}.")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, BaseModel):
                    yield from _unknown(item, f"{spelling}[].")


def _unsupported(name: str, hint: str | None) -> InterlockError:
    return InterlockError("unsupported_parameter", f"`{name}` is not supported", param=name, hint=hint)
