"""Fields that chat completions refuse."""

from __future__ import annotations

from interlock.api.fields import Refused, RefusedFields
from interlock.api.openai.refused import COMMON

_FORMAT = "use response_format or structured_outputs"
_THINKING = "use reasoning_effort, thinking_budget or chat_template_kwargs.enable_thinking"
_TEMPLATE = "the model's own chat template is always used"

REFUSED: RefusedFields = {
    **COMMON,
    "audio": Refused(),
    "modalities": Refused((["text"],), "only text is generated"),
    "prediction": Refused(),
    "web_search_options": Refused(),
    "verbosity": Refused(("medium",), "ask for it in the prompt"),
    "functions": Refused(([],), "use tools"),
    "function_call": Refused((), "use tool_choice"),
    "prompt": Refused((), "use messages"),
    "input": Refused((), "use messages"),
    "system": Refused((), "use a message of role system"),
    "text": Refused((), _FORMAT),
    "format": Refused((), _FORMAT),
    "output_format": Refused((), _FORMAT),
    "output_config": Refused((), _FORMAT),
    "thinking": Refused((), _THINKING),
    "reasoning": Refused((), _THINKING),
    "enable_thinking": Refused((), _THINKING),
    "think": Refused((), _THINKING),
    "max_output_tokens": Refused((), "use max_completion_tokens"),
    "echo": Refused((False,)),
    "suffix": Refused(("",)),
    "chat_template": Refused((), _TEMPLATE),
    "documents": Refused(([],)),
    "add_generation_prompt": Refused((True,)),
    "continue_final_message": Refused((False,)),
    "add_special_tokens": Refused((False,)),
}
