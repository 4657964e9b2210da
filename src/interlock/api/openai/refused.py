"""What OpenAI's endpoints refuse: fields of OpenAI's own and of other servers' that would change the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.api.fields import Refused, RefusedFields, unsupported

_FORMAT = "use response_format or structured_outputs"
_TRUNCATED = "shorten the prompt in the client"

# Decoding, constraints under other servers' names, and what is done to prompt and text.
COMMON: RefusedFields = {
    "regex": Refused((), "use structured_outputs.regex"),
    "ebnf": Refused((), "use structured_outputs.grammar"),
    "structural_tag": Refused((), _FORMAT),
    "guided_json": Refused((), "use structured_outputs.json"),
    "guided_regex": Refused((), "use structured_outputs.regex"),
    "guided_choice": Refused((), "use structured_outputs.choice"),
    "guided_grammar": Refused((), "use structured_outputs.grammar"),
    "guided_decoding_backend": Refused((), "leave it out"),
    "guided_whitespace_pattern": Refused((), "use interlock.whitespace"),
    "stop_sequences": Refused(([],), "use stop"),
    "repeat_penalty": Refused((1,), "use repetition_penalty"),
    "best_of": Refused((1,)),
    "use_beam_search": Refused((False,)),
    "length_penalty": Refused((1,)),
    "early_stopping": Refused((False,)),
    "logits_processors": Refused(([],)),
    "custom_logit_processor": Refused(),
    "top_a": Refused((0,)),
    "tfs_z": Refused((1,)),
    "mirostat": Refused((0,)),
    "xtc_probability": Refused((0,)),
    "dry_multiplier": Refused((0,)),
    "no_repeat_ngram_size": Refused((0,)),
    "truncate_prompt_tokens": Refused((), _TRUNCATED),
    "truncation": Refused(("disabled",), _TRUNCATED),
    "lora_path": Refused(),
}

# Where no prompt is scored.
NO_PROMPT_LOGPROBS: RefusedFields = {
    "prompt_logprobs": Refused((), "use /v1/completions or /v1/chat/completions")
}

# Options that other servers take inside ``structured_outputs``; false and null ask for nothing.
_STRUCTURED_HINTS: Mapping[str, str] = {
    "whitespace_pattern": "use interlock.whitespace",
}


def refuse_structured_options(extra: Mapping[str, Any]) -> None:
    """Raise ``unsupported_parameter`` for an unknown key of ``structured_outputs``."""
    for name, value in extra.items():
        if value not in (None, False):
            raise unsupported(f"structured_outputs.{name}", _STRUCTURED_HINTS.get(name))
