"""Models whose chat template shows no tools: the system prompt states tools and call format.

The format is the one most models have met in training: JSON in ``<tool_call>`` tags.
"""

from __future__ import annotations

from interlock.families.base import (
    JsonEnvelope,
    Lit,
    Mark,
    ModelFamily,
    ReasoningFormat,
    ToolCallSyntax,
    ToolPrompt,
)

_SYSTEM = """\
# Tools

You may call one or more of these functions to help the user:
<tools>
{% for tool in tools %}
{{ tool | tojson }}
{% endfor %}
</tools>

To call a function, write a JSON object with its name and its arguments between <tool_call> tags:
<tool_call>
{"name": <function-name>, "arguments": <arguments-object>}
</tool_call>"""

_RESULT = """\
<tool_response>
{{ content }}
</tool_response>"""

FAMILY = ModelFamily(
    name="generic",
    aliases=("json", "text"),
    title="any model, by a system prompt",
    tool_calls=ToolCallSyntax(
        call=(Mark("<tool_call>"), Lit("\n"), JsonEnvelope(), Lit("\n"), Mark("</tool_call>")),
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    tool_prompt=ToolPrompt(system=_SYSTEM, result=_RESULT),
)
